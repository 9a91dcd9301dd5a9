"""Statistics of a host: how often each extension was asked for what, how long it took, and what it missed.

Always on, so it costs little: a dict look-up and a logarithm once per member asked and once per call, nothing per event. The
memory is bounded: so many points, each a histogram of so many buckets (`policy.quantiles`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.policy import StepKind
from trio_exthost.policy.quantiles import Durations
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.stats_table import Row, table

if TYPE_CHECKING:
    from trio_exthost.policy import Verdict
    from trio_exthost.policy.decision import Decision

POINTS = 4096
"""Points that are told apart; what comes beyond is counted together, as `OTHERS`."""
OTHERS = "(others)"
"""Stands for the extensions and names beyond `POINTS`."""
INTERCEPTION = "interception"
"""The kind of a point at which an extension is asked; the other kinds are `command` and `tool`."""

_FAILURES = frozenset({StepKind.FAILED, StepKind.NOT_RUNNING, StepKind.OVERLOADED})
_NOT_ASKED = frozenset({StepKind.NOT_RUNNING, StepKind.OVERLOADED})
_OF_THE_CALLER = frozenset({"ok", "cancelled", "invalid_arguments"})
_NOT_CALLED = frozenset({"invalid_arguments", "overloaded"})


@attrs.frozen(kw_only=True)
class PointStats:
    """One extension and one thing it was asked for."""

    extension: str
    """Who."""
    kind: str
    """`interception`, `command` or `tool`."""
    name: str
    """The point, the command or the tool."""
    count: int
    """How often; those that failed count, too."""
    p50_s: float
    """The median in seconds, off by at most 2 % (`policy.quantiles.ERROR`). Times it could not be asked are not in it."""
    p95_s: float
    """What 95 % did not exceed, in seconds, with the same error."""
    max_s: float
    """The longest, in seconds, exactly."""
    timeouts: int
    """How often it gave no answer in time."""
    failures: int
    """How often it gave no usable answer for another reason. Calls its caller gave up, or made with bad arguments, are none."""


@attrs.frozen(kw_only=True)
class ExtensionStats:
    """One extension, whatever it was asked for."""

    extension: str
    """Who."""
    dropped: int
    """Events it did not get, as it reads too slowly."""
    waiting: int
    """Frames that wait for it now, in all sessions."""


@attrs.frozen(kw_only=True)
class HostStats:
    """The statistics at one moment; nothing changes them any more."""

    points: tuple[PointStats, ...] = ()
    """By extension, kind and name."""
    extensions: tuple[ExtensionStats, ...] = ()
    """By name: those that missed events, or for whom frames wait."""

    def explain(self) -> str:
        """A table for a person, at most 80 columns wide; names are cut, and nothing in it steers a terminal."""
        rows: list[Row] = []
        for each in self.points:
            name = f"{_MARKS.get(each.kind, each.kind + ' ')}{each.name}"
            times = (each.p50_s, each.p95_s, each.max_s)
            rows.append((each.extension, name, each.count, *times, each.timeouts, each.failures))
        return table(rows, [(each.extension, each.dropped, each.waiting) for each in self.extensions])

    def to_json(self) -> dict[str, Any]:
        """The statistics as a JSON object."""
        return {
            "points": [attrs.asdict(each) for each in self.points],
            "extensions": [attrs.asdict(each) for each in self.extensions],
        }


_MARKS: Mapping[str, str] = {INTERCEPTION: "", "command": "/", "tool": "tool "}


@attrs.define(eq=False)
class _Point:
    durations: Durations = attrs.field(factory=Durations)
    count: int = 0
    timeouts: int = 0
    failures: int = 0


class Stats(HostInstrument):
    """Counts what a host does. Not for use from other threads."""

    def __init__(self, waiting: Callable[[], Mapping[str, int]] = dict) -> None:
        """Count from now on.

        Args:
          waiting: Frames that wait for each extension now; asked by `snapshot`. (A dict that is empty, if not given.)
        """
        self._waiting = waiting
        self._points: dict[tuple[str, str, str], _Point] = {}
        self._dropped: Counter[str] = Counter()

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:  # noqa: ARG002 - the instrument's
        """Count each member that was asked, or should have been."""
        for step in verdict.steps:
            self._count_step(verdict.event, step.extension, step.kind, step.seconds)

    def call_ended(self, session_id: str, extension: str, kind: str, name: str, outcome: str, seconds: float) -> None:  # noqa: ARG002
        """Count a command or a tool."""
        point = self._point(extension, kind, name)
        point.count += 1
        if outcome not in _NOT_CALLED:
            point.durations.add(seconds)
        if outcome == "timed_out":
            point.timeouts += 1
        elif outcome not in _OF_THE_CALLER:
            point.failures += 1

    def dropped(self, session_id: str, extension: str, count: int, first_sequence: int, last_sequence: int) -> None:  # noqa: ARG002
        """Count events an extension did not get."""
        if extension not in self._dropped and len(self._dropped) >= POINTS:
            extension = OTHERS
        self._dropped[extension] += count

    def add_decision(self, decision: Decision) -> None:
        """Count each member of a decision that was read from a log."""
        for step in decision.steps:
            self._count_step(decision.event, step.extension, step.kind, step.seconds)

    def snapshot(self) -> HostStats:
        """The statistics as they are now."""
        waiting = self._waiting()
        missed = sorted({*self._dropped, *(name for name, frames in waiting.items() if frames)})
        return HostStats(
            points=tuple(
                PointStats(
                    extension=extension,
                    kind=kind,
                    name=name,
                    count=point.count,
                    p50_s=point.durations.quantile(0.5),
                    p95_s=point.durations.quantile(0.95),
                    max_s=point.durations.maximum_s,
                    timeouts=point.timeouts,
                    failures=point.failures,
                )
                for (extension, kind, name), point in sorted(self._points.items(), key=lambda item: item[0])
            ),
            extensions=tuple(
                ExtensionStats(extension=name, dropped=self._dropped[name], waiting=waiting.get(name, 0))
                for name in missed
            ),
        )

    def _count_step(self, event: str, extension: str, kind: StepKind, seconds: float) -> None:
        if kind is StepKind.OWN_CALL:
            return
        point = self._point(extension, INTERCEPTION, event)
        point.count += 1
        if kind not in _NOT_ASKED:
            point.durations.add(seconds)
        if kind is StepKind.TIMED_OUT:
            point.timeouts += 1
        elif kind in _FAILURES:
            point.failures += 1

    def _point(self, extension: str, kind: str, name: str) -> _Point:
        key = (extension, kind, name)
        point = self._points.get(key)
        if point is None:
            if len(self._points) >= POINTS:
                key = (OTHERS, kind, OTHERS)
            point = self._points.setdefault(key, _Point())
        return point
