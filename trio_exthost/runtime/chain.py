"""Asking the interceptors of a point, one after the other, and folding their answers into a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError, CallTimedOut, MalformedReply, Overloaded, PayloadError
from trio_exthost.hooks import INTERCEPT_POINTS, Event, InterceptPoint
from trio_exthost.policy import Answer, Chain, Failure, Outcome, StepKind, Verdict
from trio_exthost.policy.rules import MemberKind
from trio_exthost.runtime.calls import Request, call
from trio_exthost.runtime.guards import Absent, way_out
from trio_exthost.runtime.patience import Patience
from trio_exthost.wire import from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


async def intercept(
    session: Session,
    event: str,
    payload: Mapping[str, Any],
    origin: str = "",
    run_id: str = "",
    *,
    prompt: tuple[str | None, str] | None = None,
) -> Verdict:
    """Ask who intercepts `event`: see `Session.intercept`.

    With `prompt`, an extension and its reason, a person is to be asked where nobody refuses.
    """
    living = session.views.interceptors.get(event, ())
    absent = session.guards.absent(event, payload, living)
    if not living and not absent and prompt is None:
        await trio.lowlevel.checkpoint()
        return Verdict(event, Outcome.ALLOW, payload, payload)
    begun = trio.current_time()
    asking = _Asking(session, INTERCEPT_POINTS[event], payload.get("tool_name"))
    chain: Chain[Instance | Absent] = Chain(asking.point, payload, _in_order(living, absent))
    is_waited_for = False
    while (member := chain.next_member()) is not None:
        if isinstance(member, Absent):
            # Before the question whose call it is: a guard that is not there cannot vouch for its own call either.
            chain.answer(asking.answer_for(member))
            continue
        if origin and member.name == origin:
            chain.skip(StepKind.OWN_CALL)
            continue
        asked = trio.current_time()
        is_waited_for = True
        answer = await asking.ask(member, chain.payload)
        chain.answer(answer, trio.current_time() - asked)
    verdict = attrs.evolve(chain.verdict(), run_id=run_id or str(payload.get("agent_run_id", "")))
    if prompt is not None and verdict.allowed:
        verdict = attrs.evolve(verdict, outcome=Outcome.ASK, by=prompt[0], reason=prompt[1])
    _report_ignored_rewrites(verdict, living)
    if not is_waited_for:
        await trio.lowlevel.checkpoint()  # nobody was waited for, and callers rely on a checkpoint
    session.host.books.outcomes.chain_ended(session.id, verdict, trio.current_time() - begun)
    return verdict


def _in_order(living: Sequence[Instance], absent: Sequence[Absent]) -> Sequence[Instance | Absent]:
    """Manifest priority descending, then catalogue order, then registration: those who are not there keep their place."""
    if not absent:
        return living
    placed: list[tuple[tuple[float, float, float], Instance | Absent]] = [
        ((-each.priority, each.rank, place), each) for place, each in enumerate(living)
    ]
    placed += [(each.rank, each) for each in absent]
    placed.sort(key=lambda pair: pair[0])
    return [each for _, each in placed]


def _report_ignored_rewrites(verdict: Verdict, members: Sequence[Instance]) -> None:
    by_name = {member.name: member for member in members}
    for step in verdict.steps:
        if step.rewrite_ignored:
            by_name[step.extension].report(
                Code.REWRITE_IGNORED,
                Severity.WARNING,
                f"{verdict.event}: asked again about the final value, it rewrote it again; that is ignored",
            )


class _Asking:
    """One pass at a point: the budget that is left, and what the policy says of who gives no usable answer."""

    def __init__(self, session: Session, point: InterceptPoint, tool: str | None) -> None:
        self.point = point
        self._session = session
        self._policy = session.host.policy
        self._tool = tool if point.event == Event.TOOL_CALL else None
        self._until = trio.current_time() + session.host.config.deadlines.chain_s

    def answer_for(self, member: Absent) -> Failure:
        """What the policy says in the place of a guard that is not there."""
        failure = self._failure(
            member.name, member.manifest_blocks, StepKind.NOT_RUNNING, f"is required here and is {member.why}"
        )
        failure = attrs.evolve(failure, code="guard_absent", hint=member.hint)
        self._session.host.report(
            Code.GUARD_ABSENT,
            Severity.WARNING,
            f"{self.point.event}: it {failure.reason}; the policy says {failure.policy.value}",
            session=self._session,
            extension=member.name,
        )
        return failure

    async def ask(self, member: Instance, payload: Mapping[str, Any]) -> Answer | Failure:
        """One member's answer, or why there is none and what the policy says."""
        own_s = self._policy.deadline_s(member.name, self.point.event, deadlines=member.deadlines).value
        seconds = min(own_s, self._until - trio.current_time())
        if seconds <= 0:
            return self._failed(member, StepKind.TIMED_OUT, "was not asked: the chain's time is used up")
        event = self.point.event
        request = Request(
            make_frame=lambda id: to_extension.EventIntercept(id, event, payload),
            expected=from_extension.EventInterceptResponse.TYPE,
            what=f"interception of {event}",
            accept=lambda frame: _answer_from(frame, self.point, member),
        )
        try:
            answer: Answer = await call(member, request, Patience(seconds))
        except CallTimedOut:
            return self._failed(member, StepKind.TIMED_OUT, f"gave no answer within {seconds:.3g} s")
        except Overloaded as exc:
            return self._failed(member, StepKind.OVERLOADED, f"reads too slowly: {exc.message}")
        except PayloadError:
            # The embedder's payload, not the member's fault: the caller is told.
            raise
        except MalformedReply as exc:
            return self._failed(member, StepKind.FAILED, exc.message)
        except CallError as exc:
            kind = StepKind.FAILED if exc.may_have_run else StepKind.NOT_RUNNING
            return self._failed(member, kind, f"gave no usable answer: {exc.message}")
        return answer

    def _failed(self, member: Instance, kind: StepKind, reason: str) -> Failure:
        failure = self._failure(member.name, member.manifest.exthost.on_failure == "block", kind, reason)
        if kind is StepKind.NOT_RUNNING:
            failure = attrs.evolve(failure, code="guard_absent", hint=way_out(member.name))
        message = f"{self.point.event}: it {reason}; the policy says {failure.policy.value}"
        member.report(Code.POLICY_DECIDED, Severity.WARNING, message)
        return failure

    def _failure(self, name: str, manifest_blocks: bool, kind: StepKind, reason: str) -> Failure:
        ruling = self._policy.on_failure(
            name, self.point.event, MemberKind.INTERCEPTOR, tool=self._tool, manifest_blocks=manifest_blocks
        )
        return Failure(kind, reason, ruling.value, ruling.rule.value, ruling.where)


def _answer_from(frame: from_extension.EventInterceptResponse, point: InterceptPoint, member: Instance) -> Answer:
    """The answer of a frame.

    Raises:
      MalformedReply: It replaces the value by something that cannot stand there.
    """
    if (frame.block and point.can_block) or point.answer_key is None:
        return Answer(block=frame.block and point.can_block, reason=frame.reason)
    replacement = getattr(frame, point.answer_key)
    if replacement is None or (not replacement and not point.empty_replaces):
        return Answer(reason=frame.reason)
    if not isinstance(replacement, point.kind):
        raise MalformedReply(
            f"gave {point.answer_key} that is no {point.kind.__name__}: {replacement!r:.80}", extension=member.name
        )
    limit = member.limits.system_prompt_bytes
    if point.event == "before_agent_start" and len(str(replacement).encode()) > limit:
        raise MalformedReply(f"gave a system prompt of more than {limit} bytes", extension=member.name)
    return Answer(reason=frame.reason, replaces=True, replacement=replacement)
