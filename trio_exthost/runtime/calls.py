"""One request to one extension, and its one answer.

Issued without an await in between, so a call is wholly issued or not at all; the answer arrives on a memory channel of its
own. A reply that is already in the pipe when the deadline passes counts: the pipe is drained before the deadline decides.
(After a stall of the loop past the deadline, 20 of 20 calls timed out with the answer waiting; with the drain, none.)

Ctrl-C ends a call where it waits, as a cancellation does. (Inside of it, it left calls open for ever, and answers unknown.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallAborted, CallError, CallTimedOut, ClosedError, Overloaded, Reloaded
from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.replies import Answer, PendingCall
from trio_exthost.wire import to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

CancelReason = Literal["caller", "deadline", "reload", "shutdown"]
"""Why a call is cancelled, in the words of the wire."""


def _as_it_is(frame: Any) -> Any:
    return frame


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """What is asked, and how the answer is dealt with."""

    make_frame: Callable[[str], to_extension.Frame]
    """Makes the frame with the correlation id given to it."""
    expected: str
    """The frame type of the answer."""
    what: str
    """Named in errors, as "command 'deploy'"."""
    hint: str = ""
    """What to do about a time-out."""
    accept: Callable[[Any], Any] = _as_it_is
    """Makes the caller's value of the answer, at the moment it arrives; raises a `CallError` where it cannot be used."""
    on_issued: Callable[[str], None] | None = None
    """Told the correlation id once the call is queued, before anything is awaited."""
    on_progress: Callable[[Any], None] | None = None
    """Told each progress frame; the idle limit has begun again by then. None: progress means nothing here."""
    make_cancel: Callable[[str, CancelReason, float], to_extension.Frame | None] | None = None
    """Makes the frame that tells the extension to give a call up (id, reason, grace in seconds); None: it cannot be told."""
    grace_s: float = 0.0
    """After a deadline and the cancel frame, so long for an answer that is kept as a partial one."""
    even_at_the_end: bool = False
    """Whether it goes to one that is on its way out, too."""


@trio.lowlevel.enable_ki_protection
async def call(instance: Instance, request: Request, patience: Patience | float) -> Any:
    """Send a request and wait for its answer.

    If this raises `trio.Cancelled`, the call was withdrawn where it had not begun to be written; otherwise the extension is
    told (where it can be), and its answer is dropped.

    Args:
      instance: Who is asked.
      request: What.
      patience: How long, from now: queueing and writing count. A number is a deadline in seconds.

    Returns:
      What `request.accept` made of the answer.

    Raises:
      CallTimedOut: No answer in time; `partial` holds what came within the grace.
      Overloaded: Too much waits for it already.
      ExtensionExited: It ended before it answered.
      CallAborted: It is not running.
      MalformedReply: It answered with an unusable frame.
      CallError: The answer could not be accepted.
      PayloadError: The request cannot be sent.
    """
    if not isinstance(patience, Patience):
        patience = Patience(patience)
    if instance.life.is_migrating and not request.even_at_the_end:
        await _until_in_order(instance, request, patience)
    pending, entry = _issue(instance, request, patience)
    epoch = instance.health.begin()
    error: BaseException | None = None
    try:
        return await _await_answer(instance, request, patience, pending, entry)
    except BaseException as exc:  # also a cancellation: the books are told how it ended, whichever way
        error = exc
        raise
    finally:
        instance.health.ended(epoch, error)


async def _until_in_order(instance: Instance, request: Request, patience: Patience) -> None:
    """Wait while its state is being migrated: who is asked then would be asked about a state it cannot read."""
    if not await instance.life.until_in_order(patience.deadline):
        raise CallTimedOut(
            f"{request.what} was not begun: its state was still being migrated after {patience.limit_s:g} s",
            extension=instance.name,
            may_have_run=False,
        )


async def _await_answer(
    instance: Instance, request: Request, patience: Patience, pending: PendingCall, entry: Entry
) -> Any:
    """Wait for the answer to a call that was issued, and close its entry, however it ends."""
    answer: Answer | None = None
    is_late = is_withdrawn = is_told = False
    try:
        if request.on_issued is not None:
            request.on_issued(pending.id)
        answer = await _receive(instance, pending, patience)
        if answer is None:
            is_late = True
            is_withdrawn = instance.outbox.withdraw(entry)
            if not is_withdrawn:
                _cancel(instance, request, pending.id, "deadline", request.grace_s)
                is_told = True
                if request.grace_s:
                    answer = await _receive(instance, pending, Patience(request.grace_s))
    finally:
        if pending.id in instance.replies and not is_told:
            is_withdrawn = is_withdrawn or instance.outbox.withdraw(entry)
            if not is_withdrawn:
                _cancel(instance, request, pending.id, "caller", 0)
        instance.replies.give_up(pending, was_sent=not is_withdrawn)
    if is_late:
        message = f"{request.what} got no answer within {patience.limit_s:g} s"
        instance.notices.call_overdue(message, patience.limit_s, is_first=not instance.health.failures_in_a_row)
        instance.report(Code.CALL_TIMED_OUT, Severity.WARNING, message)
        raise CallTimedOut(
            message,
            extension=instance.name,
            may_have_run=not is_withdrawn,
            hint=_hint(instance, pending),
            partial=answer.value if answer is not None else None,
        )
    assert answer is not None
    if answer.error is not None:
        raise answer.error
    return answer.value


def _hint(instance: Instance, pending: PendingCall) -> str:
    """What to do about a time-out; first of all where answers went that may have been meant for it."""
    if instance.replies.strays == pending.strays_before:
        return pending.request.hint
    stray = "meanwhile it answered under an id or with a type that nobody awaits: its diagnostics show which"
    return f"{stray}; {pending.request.hint}" if pending.request.hint else stray


async def _receive(instance: Instance, pending: PendingCall, patience: Patience) -> Answer | None:
    """The answer, or None once patience is over; what is in the pipe by then is looked at first, and may restart it."""
    while True:
        with patience.scope():
            return await pending.receive.receive()
        instance.drain()
        if (answer := pending.answer_nowait()) is not None or patience.is_over:
            return answer


def _issue(instance: Instance, request: Request, patience: Patience) -> tuple[PendingCall, Entry]:
    """Queue the request and open its entry in the reply table; no await in here."""
    if not (
        instance.is_available or (request.even_at_the_end and (instance.life.is_leaving or instance.life.is_migrating))
    ):
        raise CallAborted(
            f"{request.what}: the extension is {instance.state}", extension=instance.name, may_have_run=False
        )
    if len(instance.replies) >= instance.limits.pending_calls:
        raise _overloaded(instance, f"{len(instance.replies)} calls already await its answer")
    pending = instance.replies.open(request, patience)
    try:
        entry = Entry(instance.connection.send(request.make_frame(pending.id)), Kind.CALL)
        instance.outbox.post_call(entry)
    except Overloaded as exc:
        instance.replies.give_up(pending, was_sent=False)
        raise _overloaded(instance, exc.message) from None
    except ClosedError as exc:
        instance.replies.give_up(pending, was_sent=False)
        raise CallAborted(f"{request.what}: {exc.message}", extension=instance.name, may_have_run=False) from None
    except BaseException:  # whatever it is, nobody will wait for the answer
        instance.replies.give_up(pending, was_sent=False)
        raise
    if instance.host.instrument is not None:
        instance.host.instrument.frame_queued(instance.session.id, instance.name, entry.data)
    return pending, entry


def _overloaded(instance: Instance, message: str) -> Overloaded:
    instance.report(Code.OVERLOADED, Severity.WARNING, message)
    return Overloaded(message, extension=instance.name, hint="it reads too slowly, or not at all")


def _cancel(instance: Instance, request: Request, id: str, reason: CancelReason, grace_s: float) -> None:
    frame = request.make_cancel(id, reason, grace_s) if request.make_cancel is not None else None
    if frame is not None:
        instance.post(frame)


def cancel_all(instance: Instance, reason: CancelReason, grace_s: float) -> None:
    """Tell the extension to give up whatever it works on; what it answers within the grace still counts."""
    for pending in instance.replies.pending():
        _cancel(instance, pending.request, pending.id, reason, grace_s)


def cut_off(instance: Instance, ids: Collection[str]) -> None:
    """End these calls with `Reloaded`, those that have not ended; the extension is told where it can be."""
    for pending in instance.replies.pending():
        if pending.id in ids:
            _cancel(instance, pending.request, pending.id, "reload", 0.0)
            message = f"{pending.request.what}: the extension was reloaded before it answered"
            hint = "deadlines.reload_grace_s, or reload(grace_s=...), is how long calls in flight have"
            instance.replies.abort(pending.id, Reloaded(message, extension=instance.name, hint=hint))


def outcome_of(error: BaseException | None) -> str:
    """`ok`, `cancelled`, or the error's code: the word instruments are told."""
    if error is None:
        return "ok"
    return error.code if isinstance(error, CallError) else "cancelled"
