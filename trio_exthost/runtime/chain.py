"""Asking interceptors and hooks of a point, one after the other, and folding their answers into a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import EffectKind
from trio_exthost.errors import CallAborted, CallError, CallTimedOut, MalformedReply, Overloaded, PayloadError
from trio_exthost.hooks import INTERCEPT_POINTS, Batch, Event, HookClass, InterceptPoint, fold
from trio_exthost.policy import Answer, Chain, Failure, Outcome, StepKind, Verdict
from trio_exthost.policy.rules import MemberKind
from trio_exthost.runtime.calls import Request, call
from trio_exthost.runtime.guards import Absent, way_out
from trio_exthost.runtime.heirs import as_it_stands, heir_of
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.occasion import POINTS, Occasion, check_payload, shown_to_hooks
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.replacements import answer_from, check_size
from trio_exthost.runtime.views import HookMember, Member
from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.words import DecisionKind

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


async def intercept(session: Session, occasion: Occasion) -> Verdict:
    """Ask everybody who takes part at a point, one after the other: see `Session.intercept`."""
    event, payload = occasion.event, occasion.payload
    living = session.views.asked(event, **where(occasion.run))
    absent = session.guards.absent(event, payload, living)
    if occasion.first:
        living = (*occasion.first, *living)
    if not living and not absent and occasion.prompt is None:
        await trio.lowlevel.checkpoint()
        _tell_observers(session, occasion, payload)
        return Verdict(event, Outcome.ALLOW, payload, payload, run_id=occasion.id_of_run, is_dry=occasion.is_dry)
    check_payload(occasion, living)
    begun = trio.current_time()
    asking = Asking(session, occasion, living)
    chain: Chain[Member | Absent] = Chain(asking.point, payload, _in_order(living, absent))
    while not occasion.stop() and (member := chain.next_member()) is not None:
        await asking.take_turn(chain, member)
    verdict = chain.verdict()
    if run_id := occasion.id_of_run:
        verdict = attrs.evolve(verdict, run_id=run_id)
    if occasion.prompt is not None and verdict.allowed:
        verdict = attrs.evolve(verdict, outcome=Outcome.ASK, by=occasion.prompt[0], reason=occasion.prompt[1])
    _report_ignored_rewrites(verdict, living)
    if not asking.has_waited:
        await trio.lowlevel.checkpoint()  # nobody was waited for, and callers rely on a checkpoint
    if occasion.is_dry:
        return attrs.evolve(verdict, is_dry=True, unaware=tuple(asking.unaware))
    session.host.books.outcomes.chain_ended(session.id, verdict, trio.current_time() - begun)
    _tell_observers(session, occasion, verdict.value)
    return verdict


def _tell_observers(session: Session, occasion: Occasion, payload: Mapping[str, Any]) -> None:
    """Every point may be observed as well: with the value as the chain left it."""
    if occasion.event in session.views.observers and not occasion.is_dry and not session.is_closed:
        session.observing.tell(
            occasion.event,
            shown_to_hooks(occasion, payload),
            run=occasion.run,
            message_id=occasion.message_id,
            tool_call_id=occasion.tool_call_id,
        )


def _in_order(living: Sequence[Member], absent: Sequence[Absent]) -> Sequence[Member | Absent]:
    """Manifest priority descending, then catalogue order, then registration: those who are not there keep their place."""
    if not absent:
        return living
    placed: list[tuple[tuple[float, float, float], Member | Absent]] = [
        ((-instance_of(each).priority, instance_of(each).rank, place), each) for place, each in enumerate(living)
    ]
    placed += [(each.rank, each) for each in absent]
    placed.sort(key=lambda pair: pair[0])
    return [each for _, each in placed]


def instance_of(member: Member) -> Instance:
    """Whose part it is."""
    return member.instance if isinstance(member, HookMember) else member


def _report_ignored_rewrites(verdict: Verdict, members: Sequence[Member]) -> None:
    by_name = {member.name: instance_of(member) for member in members}
    for step in verdict.steps:
        if step.rewrite_ignored:
            by_name[step.extension].report(
                Code.REWRITE_IGNORED,
                Severity.WARNING,
                f"{verdict.event}: asked again about the final value, it rewrote it again; that is ignored",
            )


class Asking:
    """One pass at a point: the time that is left, and what the policy says of who gives no usable answer."""

    def __init__(self, session: Session, occasion: Occasion, members: Sequence[Member] = ()) -> None:
        """Begin: the chain's time runs from now."""
        self.point: InterceptPoint = POINTS[occasion.event]
        self._occasion = occasion
        self._session = session
        self._members = members
        self._policy = session.host.policy
        self._tool = occasion.payload.get("tool_name") if self.point.event == Event.TOOL_CALL else None
        self._budget = Patience(session.host.config.deadlines.chain_s)
        self.unaware: dict[str, None] = {}
        """Who was asked in a protocol that knows no dry run, in order."""
        self._is_rewritten = False
        self.has_waited: bool = False
        """Whether anybody was waited for."""

    async def take_turn(self, chain: Chain[Member | Absent], member: Member | Absent) -> None:
        """Ask the member whose turn it is, or pass it over; whether a checkpoint was made is `has_waited`."""
        if isinstance(member, Absent):
            # Before the question whose call it is: a guard that is not there cannot vouch for its own call either.
            chain.answer(self.answer_for(member))
            return
        if self._occasion.origin and member.name == self._occasion.origin:
            chain.skip(StepKind.OWN_CALL)
            return
        member = as_it_stands(self._session, member)
        if not isinstance(member, HookMember):
            self.unaware[member.name] = None
        elif not self.concerns(member, chain.payload):
            chain.skip(StepKind.FILTERED)
            return
        self.has_waited = True
        asked = trio.current_time()
        answer = await self.ask(member, chain.payload)
        self._is_rewritten = self._is_rewritten or (isinstance(answer, Answer) and answer.replaces)
        chain.answer(answer, trio.current_time() - asked)

    def answer_for(self, member: Absent) -> Failure:
        """What the policy says in the place of a guard that is not there."""
        kind = MemberKind.INTERCEPTOR if self.point.event in INTERCEPT_POINTS else MemberKind.GATE
        why = f"is required here and is {member.why}"
        failure = self._failure(member.name, kind, member.manifest_blocks, StepKind.NOT_RUNNING, why)
        failure = attrs.evolve(failure, code="guard_absent", hint=member.hint)
        self._session.host.report(
            Code.GUARD_ABSENT,
            Severity.WARNING,
            f"{self.point.event}: it {failure.reason}; the policy says {failure.policy.value}",
            session=self._session,
            extension=member.name,
        )
        return failure

    def concerns(self, member: HookMember, payload: Mapping[str, Any]) -> bool:
        """Whether the payload is one that the hook wants to be asked about."""
        schema = member.hook.payload_schema
        return schema is None or not schema.explain(shown_to_hooks(self._occasion, payload))

    async def ask(self, member: Member, payload: Mapping[str, Any]) -> Answer | Failure:
        """One member's answer, or that of who takes part in its place; or why there is none and what the policy says."""
        while True:
            heir = heir_of(self._session, member, self.point.event, payload, self._occasion.run, self._members)
            if heir is None:
                return Answer(reason="it does not take part here any more")
            if isinstance(heir, Absent):
                return self.answer_for(heir)
            life = instance_of(heir).life
            if life.is_held_up and self._budget.left_s > 0:  # its own time begins once it can be asked
                await life.until_in_order(self._budget.deadline)
                member = as_it_stands(self._session, heir)
                continue
            try:
                return await self._ask(heir, payload)
            except CallAborted:
                member = heir  # its successor is asked: a question is never lost between the two

    async def _ask(self, member: Member, payload: Mapping[str, Any]) -> Answer | Failure:
        event, instance = self.point.event, instance_of(member)
        kind = _kind_of(member)
        own_s = self._policy.deadline_s(member.name, event, kind, deadlines=instance.deadlines).value
        seconds = min(own_s, self._budget.left_s)
        if seconds <= 0:
            return self._failed(member, StepKind.TIMED_OUT, "was not asked: the chain's time is used up")
        patience = Patience(seconds, within=self._budget)
        try:
            if isinstance(member, HookMember):
                return await self._invoke(member, payload, patience)
            answer = await self._intercept(member, payload, patience)
            check_size(answer, self.point, payload, member)
            return answer
        except CallTimedOut:
            return self._failed(member, StepKind.TIMED_OUT, f"gave no answer within {seconds:.3g} s")
        except Overloaded as exc:
            return self._failed(member, StepKind.OVERLOADED, f"reads too slowly: {exc.message}")
        except PayloadError as exc:
            if not self._is_rewritten:
                raise  # the embedder's payload, not the member's fault: the caller is told
            return self._failed(member, StepKind.FAILED, f"was not asked about what others made of it: {exc.message}")
        except MalformedReply as exc:
            return self._failed(member, StepKind.FAILED, exc.message)
        except CallError as exc:
            if isinstance(exc, CallAborted) and instance.successor is not None:
                raise
            kind_of_step = StepKind.FAILED if exc.may_have_run else StepKind.NOT_RUNNING
            return self._failed(member, kind_of_step, f"gave no usable answer: {exc.message}")

    async def _intercept(self, member: Instance, payload: Mapping[str, Any], patience: Patience) -> Answer:
        event = self.point.event
        request = Request(
            make_frame=lambda id: to_extension.EventIntercept(id, event, payload),
            expected=from_extension.EventInterceptResponse.TYPE,
            what=f"interception of {event}",
            accept=lambda frame: answer_from(frame, self.point, member),
        )
        answer: Answer = await call(member, request, patience)
        return answer

    async def _invoke(self, member: HookMember, payload: Mapping[str, Any], patience: Patience) -> Answer:
        hook, occasion = member.hook, self._occasion
        is_policy = member.record.registration.kind is EffectKind.REQUEST_POLICY
        what = "a request policy" if is_policy else f"a {hook.hook_class.value} of {hook.event.value}"
        batches: list[Batch] = []

        def read(batch: Batch) -> Answer:
            answer = self._answer_of(member, payload, batch, what)
            check_size(answer, self.point, payload, member.instance)
            batches.append(batch)
            return answer

        invoked = Invoked(
            record=member.record,
            event="policy" if is_policy else hook.event.value,
            payload=shown_to_hooks(self._occasion, payload),
            what=what,
            contract=hook.contract,
            read=read,
            run=occasion.run,
            message_id=occasion.message_id,
            tool_call_id=occasion.tool_call_id,
            is_dry=occasion.is_dry,
        )
        answer: Answer = await invoke(member.instance, invoked, patience)
        occasion.took(batches[-1])
        return answer

    def _answer_of(self, member: HookMember, payload: Mapping[str, Any], batch: Batch, what: str) -> Answer:
        """What a hook's answer means for the chain.

        Raises:
          MalformedReply: It replaces the value by something that cannot stand there.
        """
        self._occasion.check(member, batch)
        decision = batch.decision
        reason, code = (decision.message, decision.code) if decision is not None else ("", "")
        if decision is not None and decision.kind in (DecisionKind.DENY, DecisionKind.CANCEL):
            return Answer(block=True, reason=reason or code, code=code)
        asks = decision is not None and decision.kind is DecisionKind.ASK
        if batch.primary is None or batch.primary.kind == "emit_command_outcome":
            return Answer(ask=asks, reason=reason)
        if batch.primary.kind == "replace_arguments":
            arguments = batch.primary.fields["arguments"]
            return Answer(ask=asks, reason=reason, replaces=True, replacement=arguments)
        folded = fold(
            member.hook.event,
            payload,
            batch,
            base=self._occasion.payload,
            max_tokens=self._occasion.max_tokens,
            extension=member.name,
            what=what,
        )
        return Answer(replaces=True, replacement=folded)

    def _failed(self, member: Member, kind: StepKind, reason: str) -> Failure:
        instance = instance_of(member)
        manifest_blocks = instance.manifest.exthost.on_failure == "block"
        failure = self._failure(member.name, _kind_of(member), manifest_blocks, kind, reason)
        if kind is StepKind.NOT_RUNNING:
            failure = attrs.evolve(failure, code="guard_absent", hint=way_out(member.name))
        elif isinstance(member, HookMember):
            failure = attrs.evolve(failure, code="extension_gate_failed")
        message = f"{self.point.event}: it {reason}; the policy says {failure.policy.value}"
        instance.report(Code.POLICY_DECIDED, Severity.WARNING, message)
        return failure

    def _failure(self, name: str, member: MemberKind, manifest_blocks: bool, kind: StepKind, reason: str) -> Failure:
        ruling = self._policy.on_failure(
            name, self.point.event, member, tool=self._tool, manifest_blocks=manifest_blocks
        )
        return Failure(kind, reason, ruling.value, ruling.rule.value, ruling.where)


def _kind_of(member: Member) -> MemberKind:
    if not isinstance(member, HookMember):
        return MemberKind.INTERCEPTOR
    return MemberKind.GATE if member.hook.hook_class is HookClass.GATE else MemberKind.TRANSFORM
