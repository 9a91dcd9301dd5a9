"""How answers fold into a verdict: a pure machine that says whom to ask next, and takes what came back.

The order is the caller's. Each member sees the value the previous one left; the first block ends the chain, and wins over
whoever wants a person asked. If the value
changed after a member had answered, that member is asked once more about the final value, and a rewrite then is ignored:
what it consented to is what will happen.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import attrs

from trio_exthost.hooks.points import WHOLE, InterceptPoint
from trio_exthost.policy.diff import same_json
from trio_exthost.policy.verdict import OnFailure, Outcome, Step, StepKind, Verdict


class Member(Protocol):
    """Who is asked: only its name matters to the fold."""

    @property
    def name(self) -> str:
        """The extension's name."""


M = TypeVar("M", bound=Member)


@attrs.frozen
class Answer:
    """A usable answer. `replacement` counts only if `replaces`; `block` wins over `ask`."""

    block: bool = False
    ask: bool = False
    reason: str = ""
    replaces: bool = False
    replacement: Any = None
    code: str = ""
    """A stable word of its own for a refusal."""


@attrs.frozen
class Failure:
    """No usable answer: what happened, and the policy for it."""

    kind: StepKind
    reason: str
    policy: OnFailure
    rule: str = ""
    """The rule that decided."""
    where: str = ""
    """Where it is written."""
    code: str = ""
    """A stable word for a refusal because of it."""
    hint: str = ""
    """The way out."""


@attrs.define
class _Consent(Generic[M]):
    member: M
    value: Any


class Chain(Generic[M]):
    """One pass through the members. Ask `next_member`, give `answer` or `skip`, until it returns None; then `verdict`."""

    def __init__(self, point: InterceptPoint, payload: Mapping[str, Any], members: Sequence[M]) -> None:
        """Begin with this payload. Nothing of it is changed: a rewrite makes a new one.

        The value that may be rewritten is copied once, so that a caller who goes on changing its own object changes
        neither what members consent to nor what the verdict says. Replacements belong to the chain once given.
        """
        self.point = point
        self._original: dict[str, Any] = copy.deepcopy(dict(payload)) if point.value_key == WHOLE else dict(payload)
        if point.value_key in self._original:
            self._original[point.value_key] = copy.deepcopy(self._original[point.value_key])
        self._payload = self._original
        self._todo = list(reversed(members))
        self._consents: list[_Consent[M]] = []
        self._is_again = False
        self._current: M | None = None
        self._steps: list[Step] = []
        self._blocked: tuple[str, str] | None = None
        self._asks: tuple[str, str] | None = None
        self._code = self._hint = ""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload as it stands; the next member is shown it."""
        return self._payload

    @property
    def is_again(self) -> bool:
        """Whether members are being asked for the second time."""
        return self._is_again

    def next_member(self) -> M | None:
        """Whom to ask now; None when the verdict stands."""
        if self._blocked is not None:
            return None
        if not self._todo and not self._is_again:
            self._is_again = True
            self._todo = [each.member for each in reversed(self._consents) if not same_json(each.value, self._value())]
        self._current = self._todo.pop() if self._todo else None
        return self._current

    def _value(self) -> Any:
        if self.point.value_key == WHOLE:
            return self._payload
        return self._payload.get(self.point.value_key) if self.point.value_key else None

    def answer(self, answer: Answer | Failure, seconds: float = 0.0) -> None:
        """What the member said, or why it said nothing usable."""
        member = self._current
        assert member is not None, "nobody was asked"
        self._current = None
        if isinstance(answer, Failure):
            self._fail(member, answer, seconds)
        elif answer.block and self.point.can_block:
            reason = answer.reason or f"{member.name} refused without giving a reason"
            self._blocked, self._code = (member.name, reason), answer.code
            self._steps.append(Step(member.name, StepKind.BLOCKED, seconds, answer.reason, is_again=self._is_again))
        else:
            self._accept(member, answer, seconds)

    def _accept(self, member: M, answer: Answer, seconds: float) -> None:
        before, key = self._value(), self.point.value_key
        changes = answer.replaces and key is not None and not same_json(answer.replacement, before)
        asks = answer.ask and self.point.can_block
        if asks and self._asks is None:
            self._asks = (member.name, answer.reason or f"{member.name} wants a person asked")
        if changes and key is not None and not self._is_again:
            self._payload = answer.replacement if key == WHOLE else {**self._payload, key: answer.replacement}
            step = Step(member.name, StepKind.REWROTE, seconds, answer.reason, before, answer.replacement)
        else:
            step = Step(
                member.name,
                StepKind.ASKS if asks else StepKind.ALLOWED,
                seconds,
                answer.reason,
                is_again=self._is_again,
                rewrite_ignored=changes,
            )
        self._steps.append(step)
        if not self._is_again and self.point.can_block:
            self._consents.append(_Consent(member, self._value()))

    def _fail(self, member: M, failure: Failure, seconds: float) -> None:
        self._steps.append(
            Step(
                member.name,
                failure.kind,
                seconds,
                failure.reason,
                policy=failure.policy,
                is_again=self._is_again,
                rule=failure.rule,
                where=failure.where,
            )
        )
        if failure.policy is OnFailure.BLOCK and self.point.can_block:
            self._blocked = (member.name, f"{member.name} {failure.reason}, and its policy is to refuse then")
            self._code, self._hint = failure.code, failure.hint

    def skip(self, kind: StepKind) -> None:
        """The member has no say here: it made the call itself, or wants to be asked about others only."""
        assert self._current is not None, "nobody was asked"
        self._steps.append(Step(self._current.name, kind))
        self._current = None

    def verdict(self) -> Verdict:
        """What was decided; complete once `next_member` returned None."""
        outcome, said = Outcome.ALLOW, self._blocked or self._asks
        if said is not None:
            outcome = Outcome.BLOCK if self._blocked is not None else Outcome.ASK
        return Verdict(
            event=self.point.event,
            outcome=outcome,
            value=self._payload,
            original=self._original,
            reason=said[1] if said is not None else "",
            by=said[0] if said is not None else None,
            steps=tuple(self._steps),
            code=self._code,
            hint=self._hint,
        )
