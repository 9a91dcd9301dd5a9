"""Invoking a registration of the effect dialect: the envelope that goes out, and the answer, applied wholly or not at all.

An answer is applied on arrival, before the next frame of the stream is looked at: what it disposes of is gone when the
extension's next `register` comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import EffectRecord
from trio_exthost.errors import CallError, CallTimedOut, ClosedError, MalformedReply, RemoteError, StateError
from trio_exthost.hooks import DURABLE, MAX_ACTIONS, Batch, Contract, read_batch
from trio_exthost.runtime import acting
from trio_exthost.runtime.brokered import Brokered
from trio_exthost.runtime.calls import CancelReason as CallCancelReason
from trio_exthost.runtime.calls import Request, call
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.results import clean_text
from trio_exthost.wire import effects_from_extension as inbound
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.values import ABSENT
from trio_exthost.wire.words import CancelReason

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.turns import Turn
    from trio_exthost.state import Action as StateAction


@attrs.frozen(kw_only=True, eq=False)
class Invoked:
    """What is invoked, and how its answer is read."""

    record: EffectRecord
    """The registration."""
    event: str
    """`command`, `tool`, `policy`, `migration`, or a point of the agent's life."""
    payload: Mapping[str, Any]
    """What it is about."""
    what: str
    """Named in errors."""
    read: Callable[[Any], Any]
    """Makes the caller's value of the answer's (of a hook: of its `Batch`); raises `MalformedReply` where it is not usable."""
    contract: Contract | None = None
    """Of a hook: what its answer may hold."""
    is_dry: bool = False
    """Whether the answer is only looked at."""
    even_at_the_end: bool = False
    """Whether it is told to one that is on its way out, as its last word."""
    run: Run | None = None
    """The run it belongs to."""
    message_id: str = ""
    """The model's message it belongs to, if any."""
    tool_call_id: str = ""
    """The tool call it belongs to, if any."""
    hint: str = ""
    """What to do about a time-out."""
    grace_s: float = 0.0
    """After the deadline, so long for a partial answer."""
    on_issued: Callable[[str], None] | None = None
    """As `Request.on_issued`."""
    on_progress: Callable[[inbound.Progress], None] | None = None
    """As `Request.on_progress`."""

    @property
    def may_store(self) -> bool:
        """Whether its answer may hold durable actions: hooks as their contract says, and tools and commands."""
        if self.contract is not None:
            return not DURABLE.isdisjoint(self.contract.allowed_actions)
        return self.event != "migration"


async def invoke(instance: Instance, invoked: Invoked, patience: Patience) -> Any:
    """Send an `invoke` and wait for its `invoke_result`; as `calls.call`.

    Raises:
      RemoteError: It answered that it failed; nothing of the answer was applied.
      MalformedReply: A part of the answer is not usable, so nothing of it was applied.
      CallError: As `calls.call`; with the code of the refusal where what it stores could not be stored.
    """
    brokered: list[Brokered] = []
    late: CallTimedOut | None = None
    try:
        try:
            answer = await _ask(instance, invoked, patience, brokered)
        except CallTimedOut as exc:
            late, answer = exc, exc.partial
        if isinstance(answer, _ToStore):  # also of one that came within the grace: it counts like any other
            answer = await _store(instance, invoked, answer)
        if late is not None:
            late.partial = answer
            raise late
        return answer
    finally:
        for each in brokered:
            each.leave()


async def _ask(instance: Instance, invoked: Invoked, patience: Patience, brokered: list[Brokered]) -> Any:
    """Send it, and wait for a usable answer; `brokered` gets what the invocation writes meanwhile."""
    registration_id = invoked.record.registration.value.registration_id
    envelope = envelope_for(instance, invoked)
    deadline_ms = math.ceil(patience.limit_s * 1000)
    run_id = invoked.run.id if invoked.run is not None else ""
    with (
        instance.questions.invocation(patience, run_id=run_id, tool_call_id=invoked.tool_call_id) as asker,
        instance.brokers.invocation() as begin,
    ):

        def on_issued(id: str) -> None:
            asker.begin(id)
            brokered.append(begin(id))
            if invoked.on_issued is not None:
                invoked.on_issued(id)

        def make_cancel(id: str, reason: CallCancelReason, grace_s: float) -> outbound.Cancel:
            # What it has asked is withdrawn at once: it would use up its grace waiting for an answer.
            asker.end(f"the invocation is given up ({reason})")
            return outbound.Cancel(id, CancelReason(reason), math.ceil(grace_s * 1000))

        return await call(
            instance,
            Request(
                make_frame=lambda id: outbound.Invoke(id, registration_id, envelope, deadline_ms),
                expected=inbound.InvokeResult.TYPE,
                what=invoked.what,
                hint=invoked.hint,
                accept=lambda frame: _apply(instance, invoked, frame, brokered[0]),
                on_issued=on_issued,
                on_progress=invoked.on_progress,
                make_cancel=make_cancel,
                grace_s=invoked.grace_s,
                even_at_the_end=invoked.even_at_the_end,
            ),
            patience,
        )


@attrs.frozen(eq=False)
class _ToStore:
    """An answer that is good, and counts once what it stores is stored."""

    value: Any
    actions: tuple[StateAction, ...]
    do: Callable[[], None]
    turn: Turn
    brokered: Brokered


async def _store(instance: Instance, invoked: Invoked, answer: _ToStore) -> Any:
    """Store what an answer stores, with a limit of its own; then all else of it is done, in the order of the commits."""
    limit_s = instance.deadlines.commit_s
    try:
        with trio.fail_after(limit_s):
            await instance.session.persistence.commit(
                instance,
                answer.actions,
                answer.turn,
                on_stored=lambda _outcome: answer.do(),
                on_queued=answer.brokered.queue,
                on_settled=answer.brokered.end,
            )
    except trio.TooSlowError:
        raise CallError(
            f"{invoked.what}: what it stores was not on the disk within {limit_s:g} s; it may be later",
            extension=instance.name,
            code="persistence_failed",
        ) from None
    except (StateError, ClosedError) as exc:
        instance.report(Code.STATE_REFUSED, Severity.WARNING, f"{invoked.what}: {exc.message}")
        raise CallError(
            f"{invoked.what}: what it stores is refused: {exc.message}; nothing of its answer was applied",
            extension=instance.name,
            code=exc.code,
            hint=exc.hint,
        ) from None
    return answer.value


def envelope_for(instance: Instance, invoked: Invoked) -> outbound.Envelope:
    """The envelope of one invocation; draws the session's next sequence number."""
    session = instance.session
    context = context_for(
        session,
        invoked.run,
        sequence=session.next_sequence(),
        message_id=invoked.message_id,
        tool_call_id=invoked.tool_call_id,
    )
    context = attrs.evolve(context, extension_id=instance.name, dry_run=invoked.is_dry)
    return outbound.Envelope(invoked.event, context, invoked.payload)


def context_for(
    session: Session, run: Run | None, *, sequence: int, message_id: str = "", tool_call_id: str = ""
) -> outbound.Context:
    """Under which circumstances something happens; whom it is told, and whether it is only tried, is the caller's."""
    return outbound.Context(
        extension_id="",
        session_id=session.id,
        cwd=clean_text(str(session.cwd)),
        sequence=sequence,
        scope=outbound.InvocationScope(
            run_id=run.id if run is not None else None,
            parent_run_id=run.parent.id if run is not None and run.parent is not None else None,
            turn_id=run.turn_id if run is not None else None,
            request_id=run.request_id if run is not None else None,
            message_id=message_id or None,
            tool_call_id=tool_call_id or None,
        ),
        agent=outbound.Agent(run.agent.id, run.agent.name) if run is not None and run.agent is not None else None,
        model=(
            outbound.Model(session.model.provider, session.model.model)
            if session.model.provider or session.model.model
            else None
        ),
        has_interactive_client=session.is_interactive,
    )


def _apply(instance: Instance, invoked: Invoked, frame: inbound.InvokeResult, brokered: Brokered) -> Any:
    """Check all of an answer, then do all of it; the caller's value, or that with what is to be stored first."""
    if frame.error is not None:
        raise RemoteError(
            f"{invoked.what} failed: {frame.error.message} [{frame.error.code}]",
            extension=instance.name,
        )
    value, batch, durable = _read(instance, invoked, frame)
    unknown = [each for each in frame.dispose if not instance.declarations.knows(each)]
    if unknown:
        raise MalformedReply(
            f"{invoked.what}: it disposes of registration {unknown[0]}, which it never made", extension=instance.name
        )
    durable = [*brokered.pending, *durable]
    if durable and not invoked.may_store:
        raise MalformedReply(f"{invoked.what}: it may not store anything here", extension=instance.name)
    actions = _checked(instance, invoked.what, durable)
    if invoked.is_dry:
        return value

    def do() -> None:
        instance.brokers.remember(brokered)
        for registration_id in frame.dispose:
            instance.declarations.dispose(registration_id)
        acting.act(instance, batch, run=invoked.run)

    if actions:
        if frame.dispose:  # what it registers next may be in the place of that
            instance.registering.hold()
            brokered.on_end = instance.registering.release
        return _ToStore(value, actions, do, brokered.take_turn(instance.brokers.turns), brokered)
    do()
    return value


def _read(
    instance: Instance, invoked: Invoked, frame: inbound.InvokeResult
) -> tuple[Any, Batch, list[Mapping[str, Any]]]:
    """The caller's value, what else is to be done, and what is to be stored."""
    if invoked.contract is None:
        if frame.decision is not None:
            raise MalformedReply(f"{invoked.what}: only a gate may decide", extension=instance.name)
        _check_actions(instance, invoked.what, frame)
        return invoked.read(None if frame.value is ABSENT else frame.value), Batch(None, None, ()), list(frame.actions)
    if frame.value is not ABSENT:
        raise MalformedReply(f"{invoked.what}: a hook answers with actions, not with a value", extension=instance.name)
    batch = read_batch(
        invoked.contract,
        frame.decision,
        frame.actions,
        extension=instance.name,
        what=invoked.what,
        granted=instance.registrant.granted,
    )
    value = invoked.read(batch)
    return value, batch, [{**each.fields, "kind": each.kind} for each in batch.common if each.kind in DURABLE]


def _checked(instance: Instance, what: str, durable: Sequence[Mapping[str, Any]]) -> tuple[StateAction, ...]:
    """Durable actions that may be stored.

    Raises:
      MalformedReply: They may not; nothing of the answer counts.
    """
    if not durable:
        return ()
    try:
        return instance.session.persistence.read_actions(instance, durable)
    except StateError as exc:
        raise MalformedReply(f"{what}: {exc.message}", extension=instance.name, code=exc.code, hint=exc.hint) from None


def _check_actions(instance: Instance, what: str, frame: inbound.InvokeResult) -> None:
    """Of what is no hook: it can store something, and nothing else."""
    if len(frame.actions) > MAX_ACTIONS:
        raise MalformedReply(
            f"{what}: {len(frame.actions)} actions in one answer, of {MAX_ACTIONS} allowed", extension=instance.name
        )
    for action in frame.actions:
        kind = action.get("kind")
        if kind not in DURABLE:
            raise MalformedReply(f"{what}: an action {kind!r:.80} has no place here", extension=instance.name)
