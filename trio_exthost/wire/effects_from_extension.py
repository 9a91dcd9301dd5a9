"""Frames that only the effect dialect has, sent by an extension: a frozen class each, named as their `type`.

The rules are those of `from_extension.py`: names of the wire, unknown keys ignored, wrong types refused. What a
descriptor, an action or a value must hold depends on its kind and is not looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from trio_exthost.wire.values import ABSENT, NULL_COUNTS, ErrorDetail, Json, Milliseconds, RegistrationId
from trio_exthost.wire.words import AskKind, BindingScope, DecisionKind, RegistrationKind, StateSpace

# --- registrations ---------------------------------------------------------------------------------------------------


@attrs.frozen
class Binding:
    """The one run or request in which a registration is active; it ends with it."""

    scope: BindingScope
    id: str


@attrs.frozen
class Register:
    """Registers an effect; answered by `registered` or `rejected`. The order of arrival is the order of acceptance."""

    TYPE: ClassVar[str] = "register"
    registration_id: RegistrationId
    kind: RegistrationKind
    descriptor: Mapping[str, Any]
    binding: Binding | None = None


@attrs.frozen
class Update:
    """Replaces a descriptor in place, same kind and key; answered by `updated` or `rejected`."""

    TYPE: ClassVar[str] = "update"
    registration_id: RegistrationId
    descriptor: Mapping[str, Any]


@attrs.frozen
class Dispose:
    """Takes a registration back; idempotent."""

    TYPE: ClassVar[str] = "dispose"
    registration_id: RegistrationId


# --- answers ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class Decision:
    """What a gate decided; `code` and `message` say why."""

    kind: DecisionKind
    code: str = ""
    message: str = ""


@attrs.frozen
class InvokeResult:
    """Answer to `invoke`: applied as a whole or not at all."""

    TYPE: ClassVar[str] = "invoke_result"
    id: str
    decision: Decision | None = None
    value: Json = attrs.field(default=ABSENT, metadata=NULL_COUNTS)
    """None is a value; `ABSENT` where there is none."""
    actions: tuple[Mapping[str, Any], ...] = ()
    """Raw, in the order in which they are to be applied."""
    dispose: tuple[RegistrationId, ...] = ()
    """Registrations it takes back with this answer."""
    error: ErrorDetail | None = None
    """It failed."""


@attrs.frozen
class Progress:
    """Sign of life of an open invocation; begins its idle limit anew, never its deadline."""

    TYPE: ClassVar[str] = "progress"
    id: str
    fraction: float | None = None
    """How much is done, 0 to 1. Any number is taken: rounding must not cost a sign of life, so the reader cuts it."""
    text: str | None = None
    """Replaces the status line, the empty string too; None keeps it."""
    output: str = ""
    """Text appended to the output, in the order of the frames. Content blocks are for the result only."""


# --- requests of its own ---------------------------------------------------------------------------------------------


@attrs.frozen
class AskUser:
    """Asks the user while `invocation` is open, whose deadline stands still for that time."""

    TYPE: ClassVar[str] = "ask_user"
    id: str
    invocation: str
    """The id of the `invoke` it belongs to."""
    kind: AskKind
    title: str
    message: str = ""
    options: tuple[str, ...] = ()
    """For `select`: what is shown and what is answered."""
    default: Json = None
    """What is preselected; null is as good as absent."""
    timeout_ms: Milliseconds | None = None
    """After so long it is given up; None leaves that to the user."""


@attrs.frozen
class BrokerCall:
    """Asks for a capability of the host while `invocation` is open."""

    TYPE: ClassVar[str] = "broker_call"
    id: str
    invocation: str
    """The id of the `invoke` it belongs to."""
    operation: str
    """Any string: the broker refuses what it does not have."""
    arguments: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class StateCommit:
    """Durable writes outside an invocation: all of them or none."""

    TYPE: ClassVar[str] = "state_commit"
    id: str
    space: StateSpace
    actions: tuple[Mapping[str, Any], ...] = ()
    """Raw, in the order in which they are to be applied."""


Frame = Register | Update | Dispose | InvokeResult | Progress | AskUser | BrokerCall | StateCommit
