"""A verdict as it is remembered and logged: small, masked, and read back strictly.

One decision is one JSON object in one line. Fields at their default are left out; unknown ones are ignored in reading, so
that an older program reads a newer log. All else is checked.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import attrs
import msgspec

from trio_exthost.errors import HostError
from trio_exthost.policy.diff import Diff
from trio_exthost.policy.shown import masked_text, plain
from trio_exthost.policy.verdict import OnFailure, Outcome, Step, StepKind, Verdict, step_line, verdict_text

ID_CHARACTERS = 256
"""Characters of an id or a name that are kept."""
LINE_BYTES = 1024 * 1024
"""The longest line. A decision that would make a longer one is written without its diffs, or with fewer steps."""
STEPS = 50
"""Steps that are written of a decision that is too long even without its diffs."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""What a reader takes for a duration, or for a time since the epoch; infinity is neither."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""What a reader takes for a number of things."""

_LEVELS = 32
"""Levels of a decision that is read; those that are written have fewer, and code that shows it may recurse."""
_NO_CHANGES = Diff()


class DecisionError(HostError, ValueError):
    """A line of a decision log cannot be read; `path` and `line` (from 1) say which, where they are known."""

    code = "decision_invalid"

    def __init__(self, reason: str, *, path: str = "", line: int = 0) -> None:
        """Say where it stands and what is wrong with it."""
        place = ", ".join(each for each in (path, f"line {line}" if line else "") if each)
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason = reason
        self.path = path
        self.line = line


@attrs.frozen(kw_only=True)
class DecisionStep:
    """One member's part: as `Step`, with a masked diff in place of the values."""

    extension: str
    """Who."""
    kind: StepKind
    """What it did."""
    seconds: Seconds = 0.0
    """How long it took, from being asked."""
    reason: str = ""
    """Its own words, or what went wrong; masked and cut."""
    diff: Diff = _NO_CHANGES
    """What it changed; masked and cut."""
    policy: OnFailure | None = None
    """The policy that decided in its place, if one did."""
    is_again: bool = False
    """Whether it was asked a second time, about the final value."""
    rewrite_ignored: bool = False
    """Whether it tried to change the value when it no longer could."""
    rule: str = ""
    """The rule of the policy that decided."""
    where: str = ""
    """Where that rule is written."""

    @classmethod
    def of(cls, step: Step, mask: Sequence[str] | None = None) -> DecisionStep:
        """The step without its values."""
        return cls(
            extension=step.extension,
            kind=step.kind,
            seconds=step.seconds,
            reason=masked_text(step.reason, mask),
            diff=step.diff(mask),
            policy=step.policy,
            is_again=step.is_again,
            rewrite_ignored=step.rewrite_ignored,
            rule=step.rule,
            where=step.where,
        )

    def explain(self) -> str:
        """As `Step.explain` with the mask it was made with."""
        return step_line(self, plain(self.reason), self.diff)


@attrs.frozen(kw_only=True)
class Decision:
    """One verdict. Nothing of the payload is in it but the ids and what was changed, masked and cut."""

    time: Seconds
    """When it was decided, in seconds since the epoch."""
    session_id: str
    """In which session."""
    event: str
    """The point."""
    outcome: Outcome
    """What was decided."""
    run_id: str = ""
    """In which run; empty where that is not known."""
    tool_id: str = ""
    """Of a tool call: its id. Ids may repeat in other sessions."""
    tool_name: str = ""
    """Of a tool call: the tool."""
    code: str = ""
    """A stable word for why."""
    reason: str = ""
    """Why; masked and cut."""
    hint: str = ""
    """The way out; masked and cut."""
    by: str | None = None
    """Who refused, or wants a person asked."""
    steps: tuple[DecisionStep, ...] = ()
    """Everybody's part, in order."""
    steps_left_out: Count = 0
    """How many more steps there were; always the last ones."""
    seconds: Seconds = 0.0
    """How long the whole took."""

    @classmethod
    def of(
        cls,
        verdict: Verdict,
        *,
        time: float,
        session_id: str,
        seconds: float,
        mask: Sequence[str] | None = None,
    ) -> Decision:
        """The record of a verdict.

        Args:
          verdict: What was decided.
          time: When, in seconds since the epoch.
          session_id: In which session.
          seconds: How long it took.
          mask: Regular expressions of secrets; the default ones if not given, nothing is masked if empty.
        """
        return cls(
            time=time,
            session_id=kept_id(session_id),
            event=verdict.event,
            outcome=verdict.outcome,
            run_id=kept_id(verdict.run_id),
            tool_id=kept_id(verdict.original.get("tool_id")),
            tool_name=kept_id(verdict.original.get("tool_name")),
            code=verdict.code,
            reason=masked_text(verdict.reason, mask),
            hint=masked_text(verdict.hint, mask),
            by=verdict.by,
            steps=tuple(DecisionStep.of(step, mask) for step in verdict.steps),
            seconds=seconds,
        )

    def explain(self) -> str:
        """As `Verdict.explain` with the mask it was made with."""
        return verdict_text(
            event=self.event,
            outcome=self.outcome,
            by=self.by,
            code=self.code,
            reason=plain(self.reason),
            hint=plain(self.hint),
            steps=[step.explain() for step in self.steps]
            + ([f"and {self.steps_left_out} more"] if self.steps_left_out else []),
        )

    def to_json(self) -> dict[str, Any]:
        """The decision as a JSON object: `from_json` gives it back."""
        found: dict[str, Any] = _unstructured(self)
        return found

    @classmethod
    def from_json(cls, value: object, *, path: str = "", line: int = 0) -> Decision:
        """The decision in a JSON object.

        Args:
          value: The object, as `json.loads` gives it.
          path: The file, for the error.
          line: The line in it, from 1, for the error.

        Raises:
          DecisionError: A field is missing, or is not what it must be.
        """
        if _is_deeper(value, _LEVELS):
            raise DecisionError(f"is no decision: it has more than {_LEVELS} levels", path=path, line=line)
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as exc:
            raise DecisionError(f"is no decision: {exc}", path=path, line=line) from None

    def to_line(self) -> bytes:
        """The decision as a line of ASCII, with its line feed; what is too long for `LINE_BYTES` is left out and counted."""
        line = _line(self)
        if len(line) > LINE_BYTES:
            line = _line(smaller := _without_diffs(self))
            if len(line) > LINE_BYTES:
                line = _line(_with_few_steps(smaller))
        return line

    @classmethod
    def from_line(cls, data: bytes, *, path: str = "", line: int = 0) -> Decision:
        """The decision in a line, with or without its line feed; `path` and `line` as in `from_json`.

        Raises:
          DecisionError: It is no JSON (neither NaN nor 1e999 is), longer than `LINE_BYTES`, or no decision.
        """
        if len(data) > LINE_BYTES:
            raise DecisionError(f"has more than {LINE_BYTES} bytes", path=path, line=line)
        try:
            value = json.loads(data, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError) as exc:
            raise DecisionError(f"is no JSON: {exc}", path=path, line=line) from None
        return cls.from_json(value, path=path, line=line)


def kept_id(value: object) -> str:
    """As much of an id as a decision keeps; empty for what is no text."""
    return value[:ID_CHARACTERS] if isinstance(value, str) else ""


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        _no_constant(word)
    return number


def _line(decision: Decision) -> bytes:
    return json.dumps(decision.to_json(), allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def _without_diffs(decision: Decision) -> Decision:
    return attrs.evolve(decision, steps=tuple(attrs.evolve(each, diff=each.diff.counted()) for each in decision.steps))


def _with_few_steps(decision: Decision) -> Decision:
    more = len(decision.steps[STEPS:])
    return attrs.evolve(decision, steps=decision.steps[:STEPS], steps_left_out=decision.steps_left_out + more)


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    return not levels or any(
        _is_deeper(each, levels - 1) for each in (value.values() if isinstance(value, dict) else value)
    )


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _unstructured(value: Any) -> Any:
    """Plain JSON of our own values; what stands in a change's `before` and `after` is JSON already."""
    if attrs.has(type(value)):
        fields = ((field.name, getattr(value, field.name), field.default) for field in attrs.fields(type(value)))
        return {
            name: _unstructured(each) for name, each, default in fields if default is attrs.NOTHING or each != default
        }
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_unstructured(each) for each in value]
    return value
