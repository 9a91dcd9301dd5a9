"""Frames the host sends: a frozen class each, named as their `type` on the wire.

Here stand those of zot's dialect; those that only the effect dialect has come from `effects_to_extension.py`.

A field at its default is left out of the encoded frame, as zot does, except those marked `always=True` in their
metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from trio_exthost.wire.effects_to_extension import (
    Agent,
    AskUserResult,
    BrokerResult,
    Cancel,
    Context,
    DialectTerms,
    Disposed,
    Envelope,
    EventsDropped,
    InvocationScope,
    Invoke,
    Model,
    Registered,
    Rejected,
    StateResult,
    Updated,
)
from trio_exthost.wire.effects_to_extension import Frame as EffectsFrame
from trio_exthost.wire.from_extension import ContentBlock
from trio_exthost.wire.values import ALWAYS, ErrorDetail, Json


@attrs.frozen
class HelloAck:
    """Answer to `hello`."""

    TYPE: ClassVar[str] = "hello_ack"
    protocol_version: int = attrs.field(metadata=ALWAYS)
    zot_version: str = attrs.field(default="", metadata=ALWAYS)
    capabilities: tuple[str, ...] = ()
    provider: str = attrs.field(default="", metadata=ALWAYS)
    model: str = attrs.field(default="", metadata=ALWAYS)
    cwd: str = attrs.field(default="", metadata=ALWAYS)
    extension_dir: str = ""
    data_dir: str = ""
    host: str = ""
    dialect: DialectTerms | None = None
    """Only to those that opted in to the effect dialect."""


@attrs.frozen
class CommandInvoked:
    """Run a command; `args` is the rest of the line, trimmed."""

    TYPE: ClassVar[str] = "command_invoked"
    id: str
    name: str
    args: str = ""


@attrs.frozen
class ToolCall:
    """Run a tool; `args` is always an object."""

    TYPE: ClassVar[str] = "tool_call"
    id: str
    name: str
    args: Mapping[str, Any] = attrs.field(factory=dict, metadata=ALWAYS)


@attrs.frozen
class ToolCancel:
    """Give up a tool call; only to those that opted in."""

    TYPE: ClassVar[str] = "tool_cancel"
    id: str


@attrs.frozen
class ToolResult:
    """Answer to the extension's `call_tool`."""

    TYPE: ClassVar[str] = "tool_result"
    id: str
    name: str = ""
    content: tuple[ContentBlock, ...] = attrs.field(default=(), metadata=ALWAYS)
    is_error: bool = False
    truncated: bool = False


@attrs.frozen
class Event:
    """Something happened. `payload` is spread over the top level of the frame; it cannot override the fields here."""

    TYPE: ClassVar[str] = "event"
    event: str
    payload: Mapping[str, Any] = attrs.field(factory=dict, metadata={"spread": True})
    session_id: str = ""
    cwd: str = ""
    sequence: int = 0


@attrs.frozen
class EventIntercept:
    """May this happen? `payload` is spread over the top level of the frame."""

    TYPE: ClassVar[str] = "event_intercept"
    id: str
    event: str
    payload: Mapping[str, Any] = attrs.field(factory=dict, metadata={"spread": True})


@attrs.frozen
class PanelKey:
    """A key pressed in an open panel; `text` only for `rune`."""

    TYPE: ClassVar[str] = "panel_key"
    panel_id: str
    key: str
    text: str = ""


@attrs.frozen
class PanelResize:
    """An open panel's new size in cells."""

    TYPE: ClassVar[str] = "panel_resize"
    panel_id: str
    width: int = attrs.field(metadata=ALWAYS)
    height: int = attrs.field(metadata=ALWAYS)


@attrs.frozen
class PanelClose:
    """The user closed the panel."""

    TYPE: ClassVar[str] = "panel_close"
    panel_id: str


@attrs.frozen
class Shutdown:
    """Finish and exit."""

    TYPE: ClassVar[str] = "shutdown"


@attrs.frozen
class RegisterRejected:
    """A registration of zot's kind is refused, and counts for nothing. Only to those that named `register_rejected`.

    zot itself has no such frame, so nobody is sent one that has not asked for it.
    """

    TYPE: ClassVar[str] = "register_rejected"
    kind: str = attrs.field(metadata=ALWAYS)
    """`tool`, `command`, `subscription` or `interception`."""
    name: str = attrs.field(default="", metadata=ALWAYS)
    """Of what was to be registered, its first 256 characters; empty where the frame could not be read, or had no room."""
    message: str = attrs.field(default="", metadata=ALWAYS)
    """Why, and who has the name."""


ZotFrame = (
    HelloAck
    | CommandInvoked
    | ToolCall
    | ToolCancel
    | ToolResult
    | Event
    | EventIntercept
    | PanelKey
    | PanelResize
    | PanelClose
    | Shutdown
    | RegisterRejected
)
Frame = ZotFrame | EffectsFrame
"""Any frame the host sends, in whichever dialect."""

__all__ = [
    "ALWAYS",
    "Agent",
    "AskUserResult",
    "BrokerResult",
    "Cancel",
    "CommandInvoked",
    "ContentBlock",
    "Context",
    "DialectTerms",
    "Disposed",
    "EffectsFrame",
    "Envelope",
    "ErrorDetail",
    "Event",
    "EventIntercept",
    "EventsDropped",
    "Frame",
    "HelloAck",
    "InvocationScope",
    "Invoke",
    "Json",
    "Model",
    "PanelClose",
    "PanelKey",
    "PanelResize",
    "RegisterRejected",
    "Registered",
    "Rejected",
    "Shutdown",
    "StateResult",
    "ToolCall",
    "ToolCancel",
    "ToolResult",
    "Updated",
    "ZotFrame",
]
