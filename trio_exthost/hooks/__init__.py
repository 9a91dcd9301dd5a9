"""Life-cycle points: what is told and what is asked where, and what an answer may hold (pure)."""

from trio_exthost.hooks.actions import MAX_ACTIONS, Action, Batch, read_batch
from trio_exthost.hooks.contract import DURABLE, Contract, classes_of, contract_of
from trio_exthost.hooks.descriptors import Hook, hook_rules, read_hook
from trio_exthost.hooks.events import DeadlineClass, Delivery, HookClass, HookEvent, HookFailure
from trio_exthost.hooks.folding import fold
from trio_exthost.hooks.life_points import DISPATCHED, LIFE_POINTS, LifePoint
from trio_exthost.hooks.points import INTERCEPT_POINTS, NEVER_DROPPED, WHOLE, Event, InterceptPoint

__all__ = [
    "DISPATCHED",
    "DURABLE",
    "INTERCEPT_POINTS",
    "LIFE_POINTS",
    "MAX_ACTIONS",
    "NEVER_DROPPED",
    "WHOLE",
    "Action",
    "Batch",
    "Contract",
    "DeadlineClass",
    "Delivery",
    "Event",
    "Hook",
    "HookClass",
    "HookEvent",
    "HookFailure",
    "InterceptPoint",
    "LifePoint",
    "classes_of",
    "contract_of",
    "fold",
    "hook_rules",
    "read_batch",
    "read_hook",
]
