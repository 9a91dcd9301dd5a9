"""What each frame of an extension does, on arrival, in the order of the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError, MalformedReply
from trio_exthost.runtime import storing
from trio_exthost.runtime.registration import ZOT_KINDS, tell_refused
from trio_exthost.runtime.replies import Answer
from trio_exthost.wire import EFFECTS, Fault, effects_from_extension, from_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

LEVELS = ("info", "success", "warn", "error")
MAX_NOTE = 16 * 1024


def _hello(instance: Instance, frame: from_extension.Hello) -> None:
    instance.on_hello(frame)


def _register(instance: Instance, frame: Any) -> None:
    instance.registering.take(frame)


def _ready(instance: Instance, _frame: from_extension.Ready) -> None:
    instance.registering.on_ready()


def _reply(instance: Instance, frame: Any) -> None:
    """An answer: to whoever awaits exactly this type under this id."""
    pending = instance.replies.find(frame.id)
    if pending is not None and pending.request.expected == frame.TYPE:
        try:
            answer = Answer(pending.request.accept(frame))
        except CallError as exc:
            answer = Answer(error=exc)
        instance.replies.resolve(frame.id, answer)
    elif pending is not None:
        instance.replies.strays += 1
        message = f"{frame.TYPE} for id {frame.id!r}, which awaits {pending.request.expected}"
        instance.report(Code.REPLY_WRONG_TYPE, Severity.WARNING, message)
    elif instance.replies.was_given_up(frame.id):
        instance.report(Code.REPLY_LATE, Severity.WARNING, f"{frame.TYPE} for id {frame.id!r} came too late; dropped")
    else:
        instance.replies.strays += 1
        instance.report(
            Code.REPLY_UNKNOWN,
            Severity.WARNING,
            f"{frame.TYPE} for id {frame.id!r}, an unknown reply id: never asked, or answered already",
        )


def _call_tool(instance: Instance, frame: from_extension.CallTool) -> None:
    instance.nested.start(frame)


def _call_tool_cancel(instance: Instance, frame: from_extension.CallToolCancel) -> None:
    instance.nested.cancel(frame.id)


def _notify(instance: Instance, frame: from_extension.Notify) -> None:
    level = frame.level if frame.level in LEVELS else "info"
    instance.session.tell_client("notify", instance.name, level, frame.message[:MAX_NOTE])


def _clear_notes(instance: Instance, _frame: from_extension.ClearNotes) -> None:
    instance.tell_client("clear_notes", instance.name)


def _open_panel(instance: Instance, frame: from_extension.OpenPanel) -> None:
    instance.session.panels.open(instance, frame.panel)


def _panel_render(instance: Instance, frame: from_extension.PanelRender) -> None:
    instance.session.panels.render(
        instance, from_extension.PanelSpec(frame.panel_id, frame.title, frame.lines, frame.footer)
    )


def _panel_close(instance: Instance, frame: from_extension.PanelClose) -> None:
    instance.session.panels.close_by_extension(instance, frame.panel_id)


def _submit(instance: Instance, frame: from_extension.Submit) -> None:
    if text := frame.text.strip():
        instance.tell_client("submit", instance.name, text)


def _submit_slash(instance: Instance, frame: from_extension.SubmitSlash) -> None:
    text = frame.text.strip()
    if text.startswith("/"):
        instance.tell_client("submit_slash", instance.name, text)
    else:
        instance.report(
            Code.SUBMIT_REFUSED, Severity.WARNING, f"submit_slash must begin with a slash: {frame.text[:80]!r}"
        )


def _ignore(_instance: Instance, _frame: Any) -> None:
    """shutdown_ack: the end of the process counts."""


def _progress(instance: Instance, frame: effects_from_extension.Progress) -> None:
    """Of a call that listens to it: the idle limit begins again."""
    pending = instance.replies.find(frame.id)
    if pending is None:
        if not instance.replies.is_given_up(frame.id):
            instance.report(Code.REPLY_UNKNOWN, Severity.WARNING, f"progress for id {frame.id!r}, which is not running")
    elif pending.request.on_progress is not None:
        pending.patience.restart()
        pending.request.on_progress(frame)


def _ask_user(instance: Instance, frame: effects_from_extension.AskUser) -> None:
    instance.questions.ask(frame)


def _broker_call(instance: Instance, frame: effects_from_extension.BrokerCall) -> None:
    instance.brokers.call(frame)


def _state_commit(instance: Instance, frame: effects_from_extension.StateCommit) -> None:
    storing.commit(instance, frame.id, frame.space.value, frame.actions)


_ANSWERED = ("register", "update")
"""Types whose registration awaits `registered`, `updated` or `rejected`."""
_REGISTRATIONS = (*_ANSWERED, *ZOT_KINDS)
"""Types without which something that its author counts on is missing."""
_ANSWERS = EFFECTS.replies
"""Types that answer a call; those of zot's dialect are among them."""


def _fault(instance: Instance, fault: Fault) -> None:
    """A line or frame the protocol does not allow. A malformed answer ends the call it was meant for at once."""
    instance.report(fault.code, Severity.ERROR if fault.fatal else Severity.WARNING, fault.message)
    if fault.frame_type in _REGISTRATIONS:
        instance.notices.warn(f"a registration was left out: {fault.message}")
    kind = ZOT_KINDS.get(fault.frame_type or "")
    if kind is not None:
        tell_refused(instance, kind, "", fault.message)
    if fault.frame_id is not None:
        pending = instance.replies.find(fault.frame_id)
        if pending is not None and fault.frame_type in (pending.request.expected, None):
            error = MalformedReply(fault.message, extension=instance.name)
            instance.replies.resolve(fault.frame_id, Answer(error=error))
    elif fault.frame_type in _ANSWERS:
        instance.replies.strays += 1
    if fault.frame_id is not None and not fault.fatal:
        _refuse_unreadable(instance, fault, fault.frame_id)
    if fault.registration_id is not None and fault.frame_type in _ANSWERED:
        instance.declarations.reject_malformed(fault.registration_id, fault.message)
    if fault.fatal:
        instance.end(fault.code, fault.message)


def _refuse_unreadable(instance: Instance, fault: Fault, id: str) -> None:
    """Who awaits an answer to what was refused gets one."""
    if fault.frame_type == effects_from_extension.AskUser.TYPE:
        instance.questions.refuse_unreadable(id)
    elif fault.frame_type == effects_from_extension.BrokerCall.TYPE:
        instance.brokers.refuse_unreadable(id, fault.message)
    elif fault.frame_type == effects_from_extension.StateCommit.TYPE:
        code = "not_ready" if fault.code is Code.FRAME_ILLEGAL else "invalid_payload"
        storing.refuse_unreadable(instance, id, code, fault.message)


HANDLERS: Mapping[type, Callable[[Instance, Any], None]] = {
    Fault: _fault,
    from_extension.Hello: _hello,
    from_extension.RegisterCommand: _register,
    from_extension.RegisterTool: _register,
    from_extension.Subscribe: _register,
    from_extension.Ready: _ready,
    from_extension.ToolResult: _reply,
    from_extension.CommandResponse: _reply,
    from_extension.EventInterceptResponse: _reply,
    from_extension.CallTool: _call_tool,
    from_extension.CallToolCancel: _call_tool_cancel,
    from_extension.Notify: _notify,
    from_extension.ClearNotes: _clear_notes,
    from_extension.OpenPanel: _open_panel,
    from_extension.PanelRender: _panel_render,
    from_extension.PanelClose: _panel_close,
    from_extension.Submit: _submit,
    from_extension.SubmitSlash: _submit_slash,
    from_extension.ShutdownAck: _ignore,
    effects_from_extension.Register: _register,
    effects_from_extension.Update: _register,
    effects_from_extension.Dispose: _register,
    effects_from_extension.InvokeResult: _reply,
    effects_from_extension.Progress: _progress,
    effects_from_extension.AskUser: _ask_user,
    effects_from_extension.BrokerCall: _broker_call,
    effects_from_extension.StateCommit: _state_commit,
}
"""By frame class; every frame of every dialect has its row."""
