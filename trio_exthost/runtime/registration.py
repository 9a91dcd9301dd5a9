"""From zot's registration frames to records of the ledger.

What an extension sends before it is ready is staged; all of it is accepted together when it is admitted. One bad
registration is refused alone, with a diagnostic that says why and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from trio_exthost.diagnostics import Code, Severity, cut_message
from trio_exthost.effects import EffectKind, EffectOwner, Registration, Scope, ScopeBinding
from trio_exthost.errors import LedgerError, PayloadError
from trio_exthost.hooks import INTERCEPT_POINTS
from trio_exthost.runtime.commands import ZotCommand
from trio_exthost.runtime.extension_tools import ZotTool
from trio_exthost.runtime.places import check_place
from trio_exthost.runtime.views import Entry
from trio_exthost.wire import from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session

RegistrationFrame = from_extension.RegisterCommand | from_extension.RegisterTool | from_extension.Subscribe
ZOT_REGISTRATIONS = (from_extension.RegisterCommand, from_extension.RegisterTool, from_extension.Subscribe)
ZOT_KINDS = MappingProxyType(
    {
        from_extension.RegisterCommand.TYPE: EffectKind.COMMAND,
        from_extension.RegisterTool.TYPE: EffectKind.TOOL,
        from_extension.Subscribe.TYPE: EffectKind.SUBSCRIPTION,
    }
)
"""What a frame of a type registers."""
EXPOSURES = ("", "direct", "codemode", "deferred", "model-only")
MAX_SCHEMA_BYTES = 256 * 1024
_NAME = 256
"""Characters of a refused name that its owner is told."""
_TOLD_POINTS = 16
"""Of one frame's points that there are not, those that are told one by one: a frame has room for a million."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMAND_NAME = re.compile(r"[^\s/\x00-\x1f\x7f]{1,64}")
_PROPERTY_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def owner_of(instance: Instance) -> EffectOwner:
    """The ledger's name for one incarnation of an extension in a session."""
    return EffectOwner(instance.name, instance.session.id, instance.number)


class Registrar:
    """Accepts what the instances of one session register."""

    def __init__(self, session: Session) -> None:
        """Work on this session's ledger."""
        self._session = session

    def accept(self, instance: Instance, frame: RegistrationFrame) -> None:
        """Put what it registers into the ledger, in order; each that cannot be is refused alone."""
        session = self._session
        binding = ScopeBinding.setup(Scope.SESSION)
        owner = owner_of(instance)
        for registration in self.registrations(instance, frame):
            if instance.registrations >= instance.limits.registrations:
                self.refuse_registration(
                    instance, registration, f"it already holds {instance.registrations} registrations"
                )
                return
            try:
                check_place(session, owner, binding, registration)
                session.registrations.accept(owner, binding, registration)
                if registration.kind is EffectKind.INTERCEPTION:
                    session.guards.registered(instance.name, registration.value.descriptor)
            except LedgerError as exc:
                self.refuse_registration(instance, registration, str(exc))
            else:
                instance.registrations += 1

    def refuse(self, instance: Instance, kind: EffectKind, name: str, why: str) -> None:
        """Tell that something was not registered, and why: the diagnostics, its row, and the extension if it wants to know."""
        instance.report(Code.REGISTRATION_REFUSED, Severity.WARNING, why)
        tell_refused(instance, kind, name, why)

    def refuse_registration(self, instance: Instance, registration: Registration, why: str) -> None:
        """The same, of something that could be read."""
        self.refuse(instance, registration.kind, name_of(registration), why)

    def registrations(self, instance: Instance, frame: RegistrationFrame) -> Iterator[Registration]:
        """What a frame registers, in its order; what can be told to be wrong without the ledger is refused and left out."""
        if isinstance(frame, from_extension.Subscribe):
            yield from self._subscriptions(instance, frame)
            return
        if isinstance(frame, from_extension.RegisterTool):
            kind, key, problem = EffectKind.TOOL, frame.name, tool_problem(frame)
            offer: Any = ZotTool(frame)
        else:
            kind, key, problem = EffectKind.COMMAND, frame.name.casefold(), command_problem(frame)
            offer = ZotCommand(frame)
        if problem:
            self.refuse(instance, kind, frame.name, f"{kind.value} {frame.name!r} is refused: {problem}")
        else:
            yield self._registration(kind, key, Entry(instance, offer))

    def _subscriptions(self, instance: Instance, frame: from_extension.Subscribe) -> Iterator[Registration]:
        """Sets accumulate: what it has already is passed over in silence."""
        unknown: list[str] = []
        for kind, events in (
            (EffectKind.SUBSCRIPTION, frame.events),
            (EffectKind.INTERCEPTION, frame.intercept),
        ):
            for event in dict.fromkeys(events):
                if kind is EffectKind.INTERCEPTION and event not in INTERCEPT_POINTS:
                    unknown.append(event)
                    continue
                key = f"{instance.name}:{instance.number}:{event}"
                if self._session.ledger.active(kind, key) is None:
                    yield self._registration(kind, key, Entry(instance, event))
        points = ", ".join(INTERCEPT_POINTS)
        for event in unknown[:_TOLD_POINTS]:
            why = f"interception of {event!r:.80} is refused: the points are {points}"
            self.refuse(instance, EffectKind.INTERCEPTION, event, why)
        if len(unknown) > _TOLD_POINTS:
            more = len(unknown) - _TOLD_POINTS
            why = f"interception of {more} more is refused: the points are {points}"
            self.refuse(instance, EffectKind.INTERCEPTION, "", why)

    def _registration(self, kind: EffectKind, key: str, value: Entry) -> Registration:
        return Registration(kind, key, value, self._session.next_sequence())


def name_of(registration: Registration) -> str:
    """What the extension called it."""
    offer = registration.value.descriptor
    return offer if isinstance(offer, str) else str(offer.frame.name)


def tell_refused(instance: Instance, kind: EffectKind, name: str, why: str) -> None:
    """Send `register_rejected` to an extension that asked for it in its `hello`; to others nothing."""
    if to_extension.RegisterRejected.TYPE not in instance.capabilities:
        return
    try:
        instance.post(to_extension.RegisterRejected(kind.value, name[:_NAME], cut_message(why)))
    except PayloadError as exc:
        instance.cannot_answer("a registration", exc)


def command_problem(frame: from_extension.RegisterCommand) -> str:
    """Why this command cannot be registered, or nothing."""
    if not _COMMAND_NAME.fullmatch(frame.name):
        return "a command's name has 1 to 64 characters, none of them a space, a slash or a control character"
    return ""


def tool_problem(frame: from_extension.RegisterTool) -> str:
    """Why this tool cannot be registered, or nothing: one bad tool makes a provider refuse every request."""
    if not _TOOL_NAME.fullmatch(frame.name):
        return "a tool's name has 1 to 64 characters out of A-Z a-z 0-9 _ -"
    if frame.exposure not in EXPOSURES:
        return f"exposure {frame.exposure!r} is none of {', '.join(filter(None, EXPOSURES))}"
    return schema_problem(frame.schema)


def schema_problem(schema: Any) -> str:
    """Why model providers would refuse this schema of a tool's arguments, or nothing."""
    if not isinstance(schema, dict):
        return f"its schema must be a JSON object, not {type(schema).__name__}"
    if schema.get("type", "object") != "object":
        return f"its schema must have type 'object', not {schema['type']!r}"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return "its schema's `properties` must be an object"
    for key in properties:
        if not _PROPERTY_KEY.fullmatch(key):
            return f"property {key!r} is refused by model providers: 1 to 64 characters out of A-Z a-z 0-9 _ . -"
    size = len(msgspec.json.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        return f"its schema has {size} bytes, more than {MAX_SCHEMA_BYTES}"
    return ""
