"""Frames an extension sends: a frozen class each, named as their `type` on the wire.

Here stand those of zot's dialect; those that only the effect dialect has come from `effects_from_extension.py`.

Fields keep the wire's names; unknown keys are ignored, wrong types refused (the codec's work). A field that an
extension may leave out has the value the host then assumes.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from trio_exthost.wire.effects_from_extension import (
    AskUser,
    Binding,
    BrokerCall,
    Decision,
    Dispose,
    InvokeResult,
    Progress,
    Register,
    StateCommit,
    Update,
)
from trio_exthost.wire.effects_from_extension import Frame as EffectsFrame
from trio_exthost.wire.values import ErrorDetail, Json, JsonObject


@attrs.frozen
class Hello:
    """First frame: who it is, and which optional parts of the protocol it wants."""

    TYPE: ClassVar[str] = "hello"
    name: str
    version: str = ""
    capabilities: tuple[str, ...] = ()
    protocol_version: int | None = None


@attrs.frozen
class RegisterCommand:
    """A slash command, named without its slash."""

    TYPE: ClassVar[str] = "register_command"
    name: str
    description: str = ""


@attrs.frozen
class RegisterTool:
    """A tool the model may call."""

    TYPE: ClassVar[str] = "register_tool"
    name: str
    schema: Json
    description: str = ""
    output_schema: Json = None
    namespace: str = ""
    namespace_description: str = ""
    namespace_instructions: str = ""
    exposure: str = ""
    deferred: bool = False
    interactive: bool = False


@attrs.frozen
class Subscribe:
    """Events it wants to be told and points at which it wants to be asked; sets accumulate."""

    TYPE: ClassVar[str] = "subscribe"
    events: tuple[str, ...] = ()
    intercept: tuple[str, ...] = ()


@attrs.frozen
class Ready:
    """Its registrations are complete."""

    TYPE: ClassVar[str] = "ready"


@attrs.frozen
class ContentBlock:
    """A piece of a tool's result: `text`, or an `image` as standard base64."""

    type: str
    text: str = ""
    mime_type: str = ""
    data: str = ""
    format: str = ""


@attrs.frozen
class ToolResult:
    """Answer to `tool_call`."""

    TYPE: ClassVar[str] = "tool_result"
    id: str
    content: tuple[ContentBlock, ...] = ()
    is_error: bool = False
    activate_tools: tuple[str, ...] = ()
    structured_content: Json = None


@attrs.frozen
class PanelSpec:
    """What a panel shows."""

    id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


@attrs.frozen
class CommandResponse:
    """Answer to `command_invoked`."""

    TYPE: ClassVar[str] = "command_response"
    id: str
    action: str = "noop"
    prompt: str = ""
    tool_name: str = ""
    tool_args: Json = None
    insert: str = ""
    display: str = ""
    open_panel: PanelSpec | None = None
    error: str = ""


@attrs.frozen
class EventInterceptResponse:
    """Answer to `event_intercept`. None keeps `modified_args` or `system_prompt`; an empty prompt removes it."""

    TYPE: ClassVar[str] = "event_intercept_response"
    id: str
    block: bool = False
    reason: str = ""
    modified_args: Json = None
    replace_text: str = ""
    system_prompt: str | None = None


@attrs.frozen
class CallTool:
    """Asks the host to run a tool."""

    TYPE: ClassVar[str] = "call_tool"
    id: str = ""
    name: str = ""
    args: Json = None
    parent_id: str = ""
    displaced: bool = False
    """Runs what its own override displaced; of the effect dialect, where overrides come from."""


@attrs.frozen
class CallToolCancel:
    """Gives up a `call_tool` of its own."""

    TYPE: ClassVar[str] = "call_tool_cancel"
    id: str


@attrs.frozen
class Notify:
    """A note to the user."""

    TYPE: ClassVar[str] = "notify"
    level: str = "info"
    message: str = ""


@attrs.frozen
class ClearNotes:
    """Takes its own notes back."""

    TYPE: ClassVar[str] = "clear_notes"


@attrs.frozen
class OpenPanel:
    """Opens a panel without being asked."""

    TYPE: ClassVar[str] = "open_panel"
    panel: PanelSpec


@attrs.frozen
class PanelRender:
    """Replaces what its open panel shows."""

    TYPE: ClassVar[str] = "panel_render"
    panel_id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


@attrs.frozen
class PanelClose:
    """Closes its panel."""

    TYPE: ClassVar[str] = "panel_close"
    panel_id: str


@attrs.frozen
class Submit:
    """Text to be treated as typed by the user."""

    TYPE: ClassVar[str] = "submit"
    text: str = ""


@attrs.frozen
class SubmitSlash:
    """A slash command to be run as if typed."""

    TYPE: ClassVar[str] = "submit_slash"
    text: str = ""


@attrs.frozen
class ShutdownAck:
    """Accepted and ignored: the end of the process counts."""

    TYPE: ClassVar[str] = "shutdown_ack"


ZotFrame = (
    Hello
    | RegisterCommand
    | RegisterTool
    | Subscribe
    | Ready
    | ToolResult
    | CommandResponse
    | EventInterceptResponse
    | CallTool
    | CallToolCancel
    | Notify
    | ClearNotes
    | OpenPanel
    | PanelRender
    | PanelClose
    | Submit
    | SubmitSlash
    | ShutdownAck
)
Frame = ZotFrame | EffectsFrame
"""Any frame an extension sends, in whichever dialect."""

__all__ = [
    "AskUser",
    "Binding",
    "BrokerCall",
    "CallTool",
    "CallToolCancel",
    "ClearNotes",
    "CommandResponse",
    "ContentBlock",
    "Decision",
    "Dispose",
    "EffectsFrame",
    "ErrorDetail",
    "EventInterceptResponse",
    "Frame",
    "Hello",
    "InvokeResult",
    "Json",
    "JsonObject",
    "Notify",
    "OpenPanel",
    "PanelClose",
    "PanelRender",
    "PanelSpec",
    "Progress",
    "Ready",
    "Register",
    "RegisterCommand",
    "RegisterTool",
    "ShutdownAck",
    "StateCommit",
    "Submit",
    "SubmitSlash",
    "Subscribe",
    "ToolResult",
    "Update",
    "ZotFrame",
]
