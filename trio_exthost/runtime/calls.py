"""One request to one extension, and its one answer.

Issued without an await in between, so a call is wholly issued or not at all; the answer arrives on a memory channel of its
own. A reply that is already in the pipe when the deadline passes counts: the pipe is drained before the deadline decides.
(After a stall of the loop past the deadline, 20 of 20 calls timed out with the answer waiting; with the drain, none.)

Ctrl-C ends a call where it waits, as a cancellation does. (Inside of it, it left calls open for ever, and answers unknown.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallAborted, CallError, CallTimedOut, ClosedError, Overloaded
from trio_exthost.runtime.outbox import Entry, Kind
from trio_exthost.runtime.replies import Answer, PendingCall
from trio_exthost.wire import to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


@trio.lowlevel.enable_ki_protection
async def call(
    instance: Instance,
    make_frame: Callable[[str], to_extension.Frame],
    expected: str,
    *,
    seconds: float,
    what: str,
    hint: str = "",
    on_issued: Callable[[str], None] | None = None,
) -> Any:
    """Send a request and wait for its answer.

    If this raises `trio.Cancelled`, the call was withdrawn where it had not begun to be written; otherwise the extension is
    told (if it wants to be: `tool_cancel`), and its answer is dropped.

    Args:
      instance: Who is asked.
      make_frame: Makes the frame with the correlation id given to it.
      expected: The frame type of the answer.
      seconds: Deadline, from now: queueing and writing count.
      what: Named in errors, as "command 'deploy'".
      hint: What to do about a time-out.
      on_issued: Told the correlation id once the call is queued, before anything is awaited.

    Raises:
      CallTimedOut: No answer in time.
      Overloaded: Too much waits for it already.
      ExtensionExited: It ended before it answered.
      CallAborted: It is not running.
      MalformedReply: It answered with an unusable frame.
      PayloadError: The request cannot be sent.
    """
    deadline = trio.current_time() + seconds
    pending, entry = _issue(instance, make_frame, expected, what)
    answer: Answer | None = None
    try:
        if on_issued is not None:
            on_issued(pending.id)
        with trio.move_on_at(deadline):
            answer = await pending.receive.receive()
        if answer is None:
            instance.drain()
            answer = pending.answer_nowait()
    finally:
        may_have_run = _leave(instance, pending, entry)
    if answer is None:
        message = f"{what} got no answer within {seconds:g} s"
        instance.report(Code.CALL_TIMED_OUT, Severity.WARNING, message)
        raise CallTimedOut(message, extension=instance.name, may_have_run=may_have_run, hint=hint)
    if answer.error is not None:
        raise answer.error
    return answer.frame


def _issue(
    instance: Instance, make_frame: Callable[[str], to_extension.Frame], expected: str, what: str
) -> tuple[PendingCall, Entry]:
    """Queue the request and open its entry in the reply table; no await in here."""
    if not instance.is_available:
        raise CallAborted(f"{what}: the extension is {instance.state}", extension=instance.name, may_have_run=False)
    if len(instance.replies) >= instance.limits.pending_calls:
        raise _overloaded(instance, f"{len(instance.replies)} calls already await its answer")
    pending = instance.replies.open(expected)
    try:
        entry = Entry(instance.connection.send(make_frame(pending.id)), Kind.CALL)
        instance.outbox.post_call(entry)
    except Overloaded as exc:
        instance.replies.give_up(pending, was_sent=False)
        raise _overloaded(instance, exc.message) from None
    except ClosedError as exc:
        instance.replies.give_up(pending, was_sent=False)
        raise CallAborted(f"{what}: {exc.message}", extension=instance.name, may_have_run=False) from None
    except BaseException:
        instance.replies.give_up(pending, was_sent=False)
        raise
    if instance.host.instrument is not None:
        instance.host.instrument.frame_queued(instance.session.id, instance.name, entry.data)
    return pending, entry


def _overloaded(instance: Instance, message: str) -> Overloaded:
    instance.report(Code.OVERLOADED, Severity.WARNING, message)
    return Overloaded(message, extension=instance.name, hint="it reads too slowly, or not at all")


def _leave(instance: Instance, pending: PendingCall, entry: Entry) -> bool:
    """Close the entry. An unanswered call is withdrawn or, if it is too late for that, cancelled; whether it may run."""
    was_open = pending.id in instance.replies
    was_withdrawn = was_open and instance.outbox.withdraw(entry)
    instance.replies.give_up(pending, was_sent=not was_withdrawn)
    if was_open and not was_withdrawn and pending.expected == "tool_result" and "tool_cancel" in instance.capabilities:
        instance.post(to_extension.ToolCancel(pending.id))
    return not was_withdrawn


def outcome_of(error: BaseException | None) -> str:
    """`ok`, `cancelled`, or the error's code: the word instruments are told."""
    if error is None:
        return "ok"
    return error.code if isinstance(error, CallError) else "cancelled"
