"""What a chain of interceptors decided, and why: plain values that explain themselves."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from trio_exthost.policy.diff import Diff, diff
from trio_exthost.policy.shown import cut, masked_text, plain


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
    FILTERED = "filtered"
    """It wants to be asked about payloads of another shape only, so it was not asked."""


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

    rule: str = ""
    """The rule of the policy that decided (`required_guard`), if one did and it is known."""
    where: str = ""
    """The place where that rule is written (`extensions.sandbox.required`), if it is known."""

    def diff(self, mask: Sequence[str] | None = None) -> Diff:
        """What it changed, masked; see `policy.diff.diff`."""
        return diff(self.before, self.after, mask=mask) if self.kind is StepKind.REWROTE else Diff()

    def explain(self, mask: Sequence[str] | None = None) -> str:
        """This step in a line: what it changed rather than the whole value, cut, without control characters.

        Args:
          mask: Regular expressions of secrets; the default ones if not given, nothing is masked if empty.
        """
        return step_line(self, plain(masked_text(self.reason, mask)), self.diff(mask))


class ExplainedStep(Protocol):
    """What a line about a step is made of, besides its reason and its diff."""

    @property
    def extension(self) -> str:
        """Who."""

    @property
    def kind(self) -> StepKind:
        """What it did."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def policy(self) -> OnFailure | None:
        """The policy that decided in its place."""

    @property
    def is_again(self) -> bool:
        """Whether it was asked a second time."""

    @property
    def rewrite_ignored(self) -> bool:
        """Whether it tried to change the value when it no longer could."""

    @property
    def rule(self) -> str:
        """The rule that decided."""

    @property
    def where(self) -> str:
        """Where that rule is written."""


def step_line(step: ExplainedStep, reason: str, changes: Diff) -> str:
    """A step in a line. The reason may be shown as it is."""
    words = f"{plain(cut(step.extension))} {step.kind.value.replace('_', ' ')}"
    if step.is_again:
        words += " (asked again about the final value)"
    if step.kind is StepKind.REWROTE:
        words += f" {changes.explain()}"
    if reason:
        words += f": {reason}"
    rule = ": ".join(plain(cut(each)) for each in (step.rule, step.where) if each)
    if step.policy is not None:
        words += f" [policy: {step.policy.value}{'; ' if rule else ''}{rule}]"
    elif rule:
        words += f" [{rule}]"
    if step.rewrite_ignored:
        words += " [rewrite ignored]"
    return f"{words} ({step.seconds * 1000:.1f} ms)"


def verdict_text(
    *, event: str, outcome: Outcome, by: str | None, code: str, reason: str, hint: str, steps: Sequence[str]
) -> str:
    """A head, a line per step, and the way out. Reason, hint and steps may be shown as they are."""
    head = f"{plain(cut(event))}: {outcome.value}"
    if by is not None:
        head += f" by {plain(cut(by))}"
    if code:
        head += f" [{plain(cut(code))}]"
    if reason:
        head += f": {reason}"
    return "\n".join([head, *(f"  {step}" for step in steps), *([f"  way out: {hint}"] if hint else [])])


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
    code: str = ""
    """A stable word for why it was refused or is asked (`guard_absent`), where there is one."""
    hint: str = ""
    """The way out, in a sentence, where one is known."""
    run_id: str = ""
    """In which run, where that is known."""
    is_dry: bool = False
    """Whether it was only tried: nothing was committed, and nobody acts on it."""
    unaware: tuple[str, ...] = ()
    """Of a dry run: extensions that were asked in a protocol that knows no dry run, so they may have acted on it."""

    @property
    def allowed(self) -> bool:
        """Nobody refused, nobody wants a person asked."""
        return self.outcome is Outcome.ALLOW

    @property
    def blocked(self) -> bool:
        """Somebody, or the policy in somebody's place, refused."""
        return self.outcome is Outcome.BLOCK

    def explain(self, mask: Sequence[str] | None = None) -> str:
        """The whole of it for a person: a head, a line per step, and the way out if one is known; safe to print.

        Args:
          mask: Regular expressions of secrets (`HostConfig.mask`); the default ones if not given, nothing is masked if empty.
        """
        return verdict_text(
            event=self.event,
            outcome=self.outcome,
            by=self.by,
            code=self.code,
            reason=plain(masked_text(self.reason, mask)),
            hint=plain(masked_text(self.hint, mask)),
            steps=[step.explain(mask) for step in self.steps] + self._dry_lines(),
        )

    def _dry_lines(self) -> list[str]:
        if not self.is_dry:
            return []
        asked = f"; asked as if it were real: {', '.join(plain(cut(each)) for each in self.unaware)}"
        return [f"dry run: nothing was committed{asked if self.unaware else ''}"]
