"""Admission: whether what an extension wants to register may be registered, before any ledger is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs

from trio_exthost.effects.descriptors import (
    read_command,
    read_migration,
    read_prompt_section,
    read_request_policy,
    read_tool,
)
from trio_exthost.effects.descriptors_contribution import read_contribution
from trio_exthost.effects.descriptors_fields import did_you_mean, shown
from trio_exthost.effects.descriptors_provider import read_provider
from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.permissions import REGISTRATION_NEEDS, may_override, secret_permission
from trio_exthost.effects.scopes import Scope, ScopeBinding
from trio_exthost.errors import RegistrationRefused

MAX_EFFECTS = 128
"""Effects one instance may hold at the same time, hooks apart. Who accepts them counts."""


def _words(words: Iterable[str]) -> frozenset[str]:
    return frozenset(words)


@attrs.frozen(kw_only=True)
class Registrant:
    """What counts of the extension that registers."""

    extension_id: str
    """Its name."""
    scope: Scope = Scope.SESSION
    """Of its manifest: the default of its effects, and the widest they may have."""
    granted: frozenset[str] = attrs.field(default=frozenset(), converter=_words)
    """The permissions it has."""
    override_grants: frozenset[str] = attrs.field(default=frozenset(), converter=_words)
    """`tools.override` and `tools.override:<name>` of the operator's policy; what the manifest asks for is no grant."""
    state_schema: int | None = None
    """Of its manifest; without one there is no state to migrate."""


@attrs.frozen
class Admitted:
    """A registration that may go to the ledger. Whether its key is free is the ledger's question."""

    kind: EffectKind
    """What it is."""
    key: str
    """What it collides with others on, within its kind and realm."""
    descriptor: Any
    """As it was read: a `Tool`, `Command`, `Provider` ..."""
    binding: ScopeBinding
    """Where it is active: the binding that was given, else the scope of the descriptor, unbound."""
    override: bool = False
    """Whether it takes the place of who has the key; the grant for that was there."""


@attrs.frozen
class KindRules:
    """What makes one kind registrable."""

    read: Callable[[object, str, Scope], Any]
    """Makes the descriptor from what was received, the extension's name and its manifest's scope. The descriptor has a
    `scope`, and where the kind can be overridden an `override`."""
    key: Callable[[Any, Registrant], str]
    """The key of a descriptor."""
    check: Callable[[Any, Registrant], None] = lambda _descriptor, _registrant: None
    """Refuses a descriptor that this registrant may not register."""


KindTable: TypeAlias = Mapping[EffectKind, KindRules]


def read_descriptor(
    kind: str,
    raw: object,
    *,
    registrant: Registrant,
    binding: ScopeBinding | None = None,
    kinds: KindTable | None = None,
) -> Admitted:
    """Read a descriptor strictly, and check what the registrant may do. Changes nothing; `raw` is not kept.

    The permission of the kind is asked first, so that nobody learns more than that it is missing; then the descriptor is
    read; then scope, binding and override are checked.

    Args:
      kind: An `EffectKind`, or its word.
      raw: The descriptor as it was received.
      registrant: Who registers.
      binding: The run or the request it is bound to; None for none.
      kinds: The kinds that can be registered; `REGISTRABLE` if not given.

    Raises:
      RegistrationRefused: It may not be registered. `code` is invalid_payload or resource_limit for what is wrong in the
        descriptor, permission_denied, scope_mismatch or override_denied.
    """
    table = REGISTRABLE if kinds is None else kinds
    rules = next((rules for each, rules in table.items() if each == kind), None)
    extension = registrant.extension_id
    if rules is None:
        reason = f"{shown(kind)} cannot be registered"
        raise RegistrationRefused(
            reason, code="invalid_payload", field="kind", extension=extension, hint=did_you_mean(kind, tuple(table))
        )
    known = EffectKind(kind)
    if (needed := REGISTRATION_NEEDS.get(known)) is not None:
        _require(registrant, needed, "kind")
    descriptor = rules.read(raw, extension, registrant.scope)
    rules.check(descriptor, registrant)
    key = rules.key(descriptor, registrant)
    override = bool(getattr(descriptor, "override", False))
    place = _placed(descriptor.scope, registrant, binding)
    if override and not may_override(key, registrant.override_grants):
        raise RegistrationRefused(
            f"{known.value} {key!r} asks for an override without a grant",
            code="override_denied",
            field="override",
            extension=extension,
            hint=f"the operator can grant tools.override:{key}; or register without it, under a free name",
        )
    return Admitted(known, key, descriptor, place, override)


def _placed(scope: Scope, registrant: Registrant, binding: ScopeBinding | None) -> ScopeBinding:
    """Where an effect of this scope is active."""

    def mismatch(field: str, reason: str, hint: str) -> RegistrationRefused:
        return RegistrationRefused(
            reason, code="scope_mismatch", field=field, extension=registrant.extension_id, hint=hint
        )

    if scope < registrant.scope:
        widest = registrant.scope.word
        reason = f"{scope.word} is wider than the scope of the manifest, which is {widest}"
        raise mismatch("scope", reason, f"exthost.scope in the manifest is the widest its effects may have: {widest}")
    if binding is None:
        return ScopeBinding.setup(scope)
    if scope < Scope.RUN:
        hint = "leave the binding out, or give the descriptor the scope run or request"
        raise mismatch("binding", f"an effect of scope {scope.word} takes no binding, and this is to {binding}", hint)
    if binding.scope is not scope:
        reason = f"must be of the effect's scope, which is {scope.word}, not {binding.scope.word}"
        raise mismatch("binding.scope", reason, "the scope of the descriptor and that of its binding are the same")
    return binding


def _require(registrant: Registrant, permission: str, field: str) -> None:
    if permission not in registrant.granted:
        raise RegistrationRefused(
            f"this needs the permission {permission}",
            code="permission_denied",
            field=field,
            extension=registrant.extension_id,
            hint="name it in exthost.permissions of the manifest; it must be granted as well",
        )


def _check_provider(descriptor: Any, registrant: Registrant) -> None:
    if descriptor.credential_ref is not None:
        _require(registrant, secret_permission(descriptor.credential_ref), "credential_ref")


def _check_migration(_descriptor: Any, registrant: Registrant) -> None:
    if registrant.state_schema is None:
        raise RegistrationRefused(
            "there is no state to migrate",
            code="invalid_payload",
            field="kind",
            extension=registrant.extension_id,
            hint="exthost.state_schema in the manifest says which version of state it keeps",
        )


REGISTRABLE: KindTable = MappingProxyType(
    {
        EffectKind.TOOL: KindRules(read_tool, lambda tool, _: tool.name),
        EffectKind.COMMAND: KindRules(read_command, lambda command, _: command.name),
        EffectKind.PROVIDER: KindRules(read_provider, lambda provider, _: provider.provider_id, _check_provider),
        EffectKind.PROMPT_SECTION: KindRules(read_prompt_section, lambda section, _: section.section_id),
        EffectKind.REQUEST_POLICY: KindRules(read_request_policy, lambda policy, _: policy.policy_id),
        EffectKind.CONTRIBUTION: KindRules(read_contribution, lambda contribution, _: contribution.contribution_id),
        # One for each extension, whatever others migrate.
        EffectKind.MIGRATION: KindRules(
            read_migration, lambda _, registrant: registrant.extension_id, _check_migration
        ),
    }
)
"""The kinds that can be registered by descriptor. A layer above adds a kind with a table of its own, this one in it."""
