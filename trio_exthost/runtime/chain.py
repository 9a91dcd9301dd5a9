"""Asking the interceptors of a point, one after the other, and folding their answers into a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError, CallTimedOut, Overloaded, PayloadError
from trio_exthost.hooks import INTERCEPT_POINTS, InterceptPoint
from trio_exthost.policy import Answer, Chain, Failure, OnFailure, Outcome, StepKind, Verdict
from trio_exthost.runtime.calls import Request, call
from trio_exthost.wire import from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


async def intercept(session: Session, event: str, payload: Mapping[str, Any], origin: str = "") -> Verdict:
    """Ask who intercepts `event`: see `Session.intercept`."""
    members = session.views.interceptors.get(event)
    if not members:
        await trio.lowlevel.checkpoint()
        return Verdict(event, Outcome.ALLOW, payload, payload)
    begun = trio.current_time()
    until = begun + session.host.config.deadlines.chain_s
    chain: Chain[Instance] = Chain(INTERCEPT_POINTS[event], payload, members)
    while (member := chain.next_member()) is not None:
        if origin and member.name == origin:
            chain.skip(StepKind.OWN_CALL)
            continue
        asked = trio.current_time()
        answer = await _ask(member, chain.point, chain.payload, until)
        chain.answer(answer, trio.current_time() - asked)
        if isinstance(answer, Failure):
            message = f"{event}: it {answer.reason}; the policy says {answer.policy.value}"
            member.report(Code.POLICY_DECIDED, Severity.WARNING, message)
    verdict = chain.verdict()
    _report_ignored_rewrites(verdict, members)
    if all(step.kind is StepKind.OWN_CALL for step in verdict.steps):
        await trio.lowlevel.checkpoint()  # nobody was waited for, and callers rely on a checkpoint
    if session.host.instrument is not None:
        session.host.instrument.chain_ended(session.id, verdict, trio.current_time() - begun)
    return verdict


def _report_ignored_rewrites(verdict: Verdict, members: tuple[Instance, ...]) -> None:
    by_name = {member.name: member for member in members}
    for step in verdict.steps:
        if step.rewrite_ignored:
            by_name[step.extension].report(
                Code.REWRITE_IGNORED,
                Severity.WARNING,
                f"{verdict.event}: asked again about the final value, it rewrote it again; that is ignored",
            )


async def _ask(member: Instance, point: InterceptPoint, payload: Mapping[str, Any], until: float) -> Answer | Failure:
    """One member's answer, or why there is none and what its policy says."""
    policy = member.on_failure
    seconds = min(member.deadlines.intercept_s, until - trio.current_time())
    if seconds <= 0:
        return Failure(StepKind.TIMED_OUT, "was not asked: the chain's time is used up", policy)
    try:
        frame = await call(
            member,
            Request(
                make_frame=lambda id: to_extension.EventIntercept(id, point.event, payload),
                expected=from_extension.EventInterceptResponse.TYPE,
                what=f"interception of {point.event}",
            ),
            seconds,
        )
    except CallTimedOut:
        return Failure(StepKind.TIMED_OUT, f"gave no answer within {seconds:.3g} s", policy)
    except Overloaded as exc:
        return Failure(StepKind.OVERLOADED, f"reads too slowly: {exc.message}", policy)
    except PayloadError:
        # The embedder's payload, not the member's fault: the caller is told.
        raise
    except CallError as exc:
        kind = StepKind.FAILED if exc.may_have_run else StepKind.NOT_RUNNING
        return Failure(kind, f"gave no usable answer: {exc.message}", policy)
    return _answer_from(frame, point, policy, member)


def _answer_from(
    frame: from_extension.EventInterceptResponse, point: InterceptPoint, policy: OnFailure, member: Instance
) -> Answer | Failure:
    block = frame.block and point.can_block
    if block or point.answer_key is None:
        return Answer(block=block, reason=frame.reason)
    replacement = getattr(frame, point.answer_key)
    if replacement is None or (not replacement and not point.empty_replaces):
        return Answer(reason=frame.reason)
    if not isinstance(replacement, point.kind):
        return Failure(
            StepKind.FAILED, f"gave {point.answer_key} that is no {point.kind.__name__}: {replacement!r:.80}", policy
        )
    limit = member.limits.system_prompt_bytes
    if point.event == "before_agent_start" and len(str(replacement).encode()) > limit:
        return Failure(StepKind.FAILED, f"gave a system prompt of more than {limit} bytes", policy)
    return Answer(reason=frame.reason, replaces=True, replacement=replacement)
