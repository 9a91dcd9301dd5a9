"""Frames that only the effect dialect has, sent by the host: a frozen class each, named as their `type`.

A field at its default is left out of the encoded frame, except those marked `ALWAYS`. Times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from trio_exthost.wire.values import ABSENT, ALWAYS, NULL_COUNTS, ErrorDetail, Json, RegistrationId
from trio_exthost.wire.words import AskOutcome, CancelReason, DisposalCause, RejectionCode


@attrs.frozen
class DialectTerms:
    """What `hello_ack` tells an extension that speaks the effect dialect."""

    session_id: str
    instance: int
    """Another number at each start."""
    revision: int = attrs.field(default=1, metadata=ALWAYS)
    """Of the dialect."""
    events: tuple[str, ...] = attrs.field(default=(), metadata=ALWAYS)
    """The life-cycle points this embedder has; a hook for another is rejected."""
    granted: tuple[str, ...] = attrs.field(default=(), metadata=ALWAYS)
    """The permissions it has."""
    limits: Mapping[str, Any] = attrs.field(factory=dict, metadata=ALWAYS)
    """Name to number, the unit in the name."""


# --- answers to registrations ----------------------------------------------------------------------------------------


@attrs.frozen
class Registered:
    """Answer to `register`: it is in force from now on."""

    TYPE: ClassVar[str] = "registered"
    registration_id: RegistrationId
    handle: int


@attrs.frozen
class Updated:
    """Answer to `update`: the new descriptor is in force, under the handle it had."""

    TYPE: ClassVar[str] = "updated"
    registration_id: RegistrationId
    handle: int


@attrs.frozen
class Rejected:
    """Answer to `register` or `update`: nothing changed."""

    TYPE: ClassVar[str] = "rejected"
    registration_id: RegistrationId
    code: RejectionCode
    message: str


@attrs.frozen
class Disposed:
    """A registration is over."""

    TYPE: ClassVar[str] = "disposed"
    registration_id: RegistrationId
    cause: DisposalCause


# --- invocations -----------------------------------------------------------------------------------------------------


@attrs.frozen
class InvocationScope:
    """Where in the conversation it happens; what does not apply is None and left out."""

    run_id: str | None = None
    parent_run_id: str | None = None
    turn_id: str | None = None
    request_id: str | None = None
    message_id: str | None = None
    tool_call_id: str | None = None


@attrs.frozen
class Agent:
    """The sub-agent whose run it is."""

    id: str
    name: str


@attrs.frozen
class Model:
    """The model in use."""

    provider: str
    model: str


@attrs.frozen
class Context:
    """Under which circumstances an extension is invoked."""

    extension_id: str
    session_id: str
    cwd: str
    sequence: int
    """The session's, strictly growing."""
    scope: InvocationScope = attrs.field(factory=InvocationScope, metadata=ALWAYS)
    agent: Agent | None = None
    """None, and left out, in the main agent's run or outside any."""
    model: Model | None = None
    """None, and left out, while none is chosen."""
    has_interactive_client: bool = attrs.field(default=False, metadata=ALWAYS)
    """Whether there is somebody to ask."""
    dry_run: bool = attrs.field(default=False, metadata=ALWAYS)
    """Whether the answer will be looked at and not applied."""


@attrs.frozen
class Envelope:
    """What an extension is invoked with."""

    event: str
    """The life-cycle point; `command`, `tool`, `policy` or `migration` where none applies."""
    context: Context
    payload: Mapping[str, Any] = attrs.field(factory=dict, metadata=ALWAYS)


@attrs.frozen
class Invoke:
    """Calls what was registered; answered by `invoke_result`."""

    TYPE: ClassVar[str] = "invoke"
    id: str
    registration_id: RegistrationId
    envelope: Envelope
    deadline_ms: int
    """Counted from when the frame was written."""


@attrs.frozen
class Cancel:
    """Gives an invocation up; an answer within the grace is kept as a partial one."""

    TYPE: ClassVar[str] = "cancel"
    id: str
    reason: CancelReason
    grace_ms: int


# --- answers to its requests -----------------------------------------------------------------------------------------


@attrs.frozen
class AskUserResult:
    """Answer to `ask_user`."""

    TYPE: ClassVar[str] = "ask_user_result"
    id: str
    outcome: AskOutcome
    value: Json = None
    """The answer, if there is one."""


@attrs.frozen
class BrokerResult:
    """Answer to `broker_call`: a value if `ok`, else an error."""

    TYPE: ClassVar[str] = "broker_result"
    id: str
    ok: bool
    value: Json = attrs.field(default=ABSENT, metadata=NULL_COUNTS)
    """None is a value, and written; `ABSENT` where there is none."""
    error: ErrorDetail | None = None


@attrs.frozen
class StateResult:
    """Answer to `state_commit`: `revision` and `values` if `ok`, else an error and nothing was written."""

    TYPE: ClassVar[str] = "state_result"
    id: str
    ok: bool
    revision: int | None = None
    """Of the space, after this commit."""
    values: Mapping[str, Any] | None = None
    """Key to what stands there now, of the keys that were written."""
    error: ErrorDetail | None = None


@attrs.frozen
class EventsDropped:
    """Events it missed because it read too slowly; comes before the next event. Only to those that named `gaps`."""

    TYPE: ClassVar[str] = "events_dropped"
    count: int
    first_sequence: int
    last_sequence: int


Frame = (
    Registered
    | Updated
    | Rejected
    | Disposed
    | Invoke
    | Cancel
    | AskUserResult
    | BrokerResult
    | StateResult
    | EventsDropped
)
