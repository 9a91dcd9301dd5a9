"""What a chain of interceptors decided, and why: plain values that explain themselves."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

SHOWN = 200
"""Characters of one value or reason that an explanation shows."""


def _plain(text: str) -> str:
    """At most `SHOWN` characters of it, in one line, with whatever is not printable as an escape."""
    head = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:SHOWN])
    return head if len(text) <= SHOWN else f"{head}... ({len(text)} characters)"


class Outcome(enum.Enum):
    """What the chain decided."""

    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


class StepKind(enum.Enum):
    """How one member took part."""

    ALLOWED = "allowed"
    """It answered and had nothing against the value."""
    REWROTE = "rewrote"
    """It answered with another value."""
    BLOCKED = "blocked"
    """It refused."""
    ASKS = "asks"
    """It wants a person asked."""
    TIMED_OUT = "timed_out"
    """It gave no answer in time; the policy decided."""
    FAILED = "failed"
    """It gave an unusable answer or ended; the policy decided."""
    NOT_RUNNING = "not_running"
    """It is required and not there; the policy decided."""
    OVERLOADED = "overloaded"
    """Too much waits for it already; the policy decided."""
    OWN_CALL = "own_call"
    """It made the call itself, so it was not asked."""


class OnFailure(enum.Enum):
    """What counts when a member gives no usable answer."""

    ALLOW = "allow"
    BLOCK = "block"


@attrs.frozen
class Step:
    """One member's part in a verdict."""

    extension: str
    """Who."""
    kind: StepKind
    """What it did."""
    seconds: float = 0.0
    """How long it took, from being asked."""
    reason: str = ""
    """Its own words, or what went wrong."""
    before: Any = None
    """The value it was shown, if it changed it."""
    after: Any = None
    """The value it gave back, if it changed it."""
    policy: OnFailure | None = None
    """The policy that decided in its place, if one did."""
    is_again: bool = False
    """Whether it was asked a second time, about the final value."""
    rewrite_ignored: bool = False
    """Whether it tried to change the value when it no longer could."""

    def explain(self) -> str:
        """This step in a line: no control characters, values and reasons cut to `SHOWN` characters each."""
        words = f"{_plain(self.extension)} {self.kind.value.replace('_', ' ')}"
        if self.is_again:
            words += " (asked again about the final value)"
        if self.kind is StepKind.REWROTE:
            words += f": {_plain(repr(self.before))} -> {_plain(repr(self.after))}"
        if self.reason:
            words += f": {_plain(self.reason)}"
        if self.policy is not None:
            words += f" [policy: {self.policy.value}]"
        if self.rewrite_ignored:
            words += " [rewrite ignored]"
        return f"{words} ({self.seconds * 1000:.1f} ms)"


@attrs.frozen
class Verdict:
    """What a chain decided about one value."""

    event: str
    """The point."""
    outcome: Outcome
    """What was decided."""
    value: Mapping[str, Any]
    """The request's payload as it stands at the end of the chain."""
    original: Mapping[str, Any]
    """The payload as it was before anybody was asked."""
    reason: str = ""
    """Why it was refused, in the words of who refused; a plain sentence where there were none."""
    by: str | None = None
    """Who refused."""
    steps: tuple[Step, ...] = ()
    """Everybody's part, in order."""

    @property
    def allowed(self) -> bool:
        """Nobody refused, nobody wants a person asked."""
        return self.outcome is Outcome.ALLOW

    @property
    def blocked(self) -> bool:
        """Somebody, or the policy in somebody's place, refused."""
        return self.outcome is Outcome.BLOCK

    def explain(self) -> str:
        """The whole of it for a person: a head, then a line per step; safe to print, as `Step.explain` is."""
        head = f"{self.event}: {self.outcome.value}"
        if self.by is not None:
            head += f" by {_plain(self.by)}"
        if self.reason:
            head += f": {_plain(self.reason)}"
        return "\n".join([head, *(f"  {step.explain()}" for step in self.steps)])
