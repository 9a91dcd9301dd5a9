"""Life-cycle points: what is told and what is asked where (pure)."""

from trio_exthost.hooks.points import INTERCEPT_POINTS, NEVER_DROPPED, Event, InterceptPoint

__all__ = ["INTERCEPT_POINTS", "NEVER_DROPPED", "Event", "InterceptPoint"]
