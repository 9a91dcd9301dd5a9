"""The descriptor of a hook: which point, which class, and what it says of the contract."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import attrs

from trio_exthost.effects import KindRules, Registrant, Schema, Scope, compile_schema
from trio_exthost.effects.descriptors_fields import Fields, did_you_mean, noun, shown
from trio_exthost.errors import RegistrationRefused
from trio_exthost.hooks.contract import Contract, classes_of, contract_of
from trio_exthost.hooks.events import DeadlineClass, Delivery, HookClass, HookEvent, HookFailure
from trio_exthost.hooks.life_points import DISPATCHED

RAW_PERMISSION = "provider.raw"
"""Without it an extension does not see what goes to a provider."""

_KEYS = ("event", "class", "payload_schema", "allowed_actions", "priority", "deadline", "delivery", "failure")
_RAW_EVENTS = (HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS, HookEvent.BEFORE_PROVIDER_REQUEST_RAW)


@attrs.frozen(kw_only=True)
class Hook:
    """An extension's part in a point of the agent's life."""

    event: HookEvent
    """The point."""
    hook_class: HookClass
    """What it does there: on the wire, `class`."""
    payload_schema: Schema | None
    """Which payloads it is asked about: another one skips it. None for all of them."""
    priority: int
    """Higher comes first, among the hooks of one extension."""
    contract: Contract
    """What holds for it."""
    scope: Scope
    """That of the manifest: a hook has no scope of its own."""


def read_hook(raw: object, extension: str, scope: Scope, *, dispatched: Collection[str] = DISPATCHED) -> Hook:
    """A hook's descriptor.

    Args:
      raw: As received.
      extension: Whose it is.
      scope: Of its manifest.
      dispatched: The points that this agent has.

    Raises:
      RegistrationRefused: It is not one, or says something else than the contract (`invalid_payload`), or it is for a point
        that this agent does not have (`event_not_dispatched`).
    """
    fields = Fields(raw, _KEYS, extension=extension)
    event = _read_event(fields, dispatched)
    contract = _read_contract(fields, event)
    return Hook(
        event=event,
        hook_class=contract.hook_class,
        payload_schema=_read_filter(fields),
        priority=fields.priority(),
        contract=contract,
        scope=scope,
    )


def hook_rules(dispatched: Collection[str] = DISPATCHED) -> KindRules:
    """How hooks are registered where these points are dispatched, for `read_descriptor`.

    The key is `extension:event:class`. An extension may have several hooks of one class at a point, so who accepts them
    adds what tells them apart.
    """
    return KindRules(
        lambda raw, extension, scope: read_hook(raw, extension, scope, dispatched=dispatched), _key, _check_permission
    )


def _key(hook: Hook, registrant: Registrant) -> str:
    return f"{registrant.extension_id}:{hook.event.value}:{hook.hook_class.value}"


def _check_permission(hook: Hook, registrant: Registrant) -> None:
    if hook.event in _RAW_EVENTS and RAW_PERMISSION not in registrant.granted:
        raise RegistrationRefused(
            f"{hook.event.value} needs the permission {RAW_PERMISSION}",
            code="permission_denied",
            field="event",
            extension=registrant.extension_id,
            hint="name it in exthost.permissions of the manifest; it must be granted as well",
        )


def _read_event(fields: Fields, dispatched: Collection[str]) -> HookEvent:
    word = fields.string("event")
    if word not in _EVENTS:
        fields.fail("event", f"there is no life-cycle point {shown(word)}", hint=did_you_mean(word, _EVENTS))
    if word not in dispatched:
        fields.fail(
            "event",
            f"{shown(word)} does not happen here: this agent does not dispatch it",
            code="event_not_dispatched",
            hint="hello_ack.dialect.events names the points it does dispatch",
        )
    return HookEvent(word)


def _read_contract(fields: Fields, event: HookEvent) -> Contract:
    """The contract of the class that is named, which the rest of the descriptor may repeat."""
    possible = classes_of(event)
    hook_class = HookClass(fields.choice("class", tuple(HookClass), possible[0]))
    contract = contract_of(event, hook_class)
    if contract is None:
        fields.fail("class", f"a hook of {event.value} can be {' or '.join(possible)}, not {hook_class.value}")
    if fields.has("allowed_actions"):
        _check_actions(fields, contract)
    for key, words in _REPEATED.items():
        _check_word(fields, key, words, contract)
    return contract


def _check_actions(fields: Fields, contract: Contract) -> None:
    given: list[str] = []
    for where, value in fields.items("allowed_actions", 0, len(contract.allowed_actions) + 1):
        if not isinstance(value, str):
            fields.fail(where, f"must be text, not {noun(value)}")
        if value in given:
            fields.fail(where, f"{shown(value)} stands twice")
        given.append(value)
    if contract.allowed_actions != set(given):
        fields.fail(
            "allowed_actions",
            f"the contract of {_named(contract)} has {_listed(contract.allowed_actions)}, and this has {_listed(given)}",
            hint="leave it out, or name exactly those of the contract",
        )


def _check_word(fields: Fields, key: str, words: tuple[str, ...], contract: Contract) -> None:
    agreed: str = getattr(contract, key)
    word = fields.choice(key, words, agreed)
    if word != agreed:
        fields.fail(
            key,
            f"the contract of {_named(contract)} has {agreed}, and this has {word}",
            hint="leave it out: a contract is not chosen",
        )


def _read_filter(fields: Fields) -> Schema | None:
    if not fields.has("payload_schema"):
        return None
    schema = compile_schema(fields.value("payload_schema"), at="payload_schema", extension=fields.extension)
    # Every payload is an object, so these two let all of them pass.
    return None if schema.raw is True or schema.raw == {"type": "object"} else schema


def _named(contract: Contract) -> str:
    return f"{contract.event.value} ({contract.hook_class.value})"


def _listed(kinds: Collection[str]) -> str:
    return ", ".join(shown(kind) for kind in sorted(kinds)) or "none"


_EVENTS = tuple(event.value for event in HookEvent)
_REPEATED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"deadline": tuple(DeadlineClass), "delivery": tuple(Delivery), "failure": tuple(HookFailure)}
)
