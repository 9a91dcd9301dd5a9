"""Who may register what, and where: permissions, scopes, bindings, overrides."""

from __future__ import annotations

import attrs
import pytest
from descriptor_strategies import BASE, EVERYTHING
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.effects import (
    MAX_EFFECTS,
    PERMISSIONS,
    REGISTRABLE,
    Admitted,
    EffectKind,
    EffectLedger,
    EffectOwner,
    KindRules,
    Registrant,
    Registration,
    Scope,
    ScopeBinding,
    read_descriptor,
)
from trio_exthost.effects.permissions import REGISTRATION_NEEDS
from trio_exthost.errors import RegistrationRefused

KINDS = sorted(BASE)
SCOPED = [kind for kind in KINDS if kind != "migration"]


def admit(kind, raw=None, *, registrant=EVERYTHING, binding=None, **changes):
    return read_descriptor(kind, (BASE[kind] if raw is None else raw) | changes, registrant=registrant, binding=binding)


def refused(kind, code, **arguments):
    with pytest.raises(RegistrationRefused) as caught:
        admit(kind, **arguments)
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def with_scope(scope):
    return attrs.evolve(EVERYTHING, scope=scope)


def test_limit_of_effects_is_the_field_s():
    assert MAX_EFFECTS == 128


@pytest.mark.parametrize(
    ("kind", "key"),
    [("tool", "look"), ("command", "deploy"), ("provider", "own"), ("prompt_section", "style"), ("request_policy", "trim"),
     ("contribution", "note"), ("migration", "guard")],
)  # fmt: skip
def test_key_is_what_others_collide_on(kind, key):
    admitted = admit(kind)
    assert admitted == Admitted(EffectKind(kind), key, admitted.descriptor, ScopeBinding.setup(Scope.PROCESS))
    assert type(admitted.kind) is EffectKind
    assert admit(EffectKind(kind)) == admitted


def test_admitted_goes_into_a_ledger_as_it_is():
    admitted = admit("tool", scope="run", binding=ScopeBinding.run("r1"))
    registration = Registration(admitted.kind, admitted.key, admitted.descriptor, 1, admitted.override)
    ledger = EffectLedger()
    ledger.accept(EffectOwner("guard", "s", 1), admitted.binding, registration)
    assert ledger.active(EffectKind.TOOL, "look", run_id="r1").registration.value == admitted.descriptor


# --- kinds ---


@pytest.mark.parametrize("kind", ["hook", "subscription", "interception", "", "tools"])
def test_kind_that_cannot_be_registered_is_refused(kind):
    error = refused(kind, "invalid_payload", raw={})
    assert (error.field, error.extension) == ("kind", EVERYTHING.extension_id)


def test_misspelt_kind_is_told_the_nearest():
    assert refused("promptsection", "invalid_payload", raw={}).hint == "did you mean prompt_section?"


@attrs.frozen
class Thing:
    scope: Scope


def test_another_layer_adds_a_kind_by_a_row():
    row = KindRules(
        lambda _raw, _extension, scope: Thing(scope), lambda _thing, registrant: f"{registrant.extension_id}:x"
    )
    kinds = {**REGISTRABLE, EffectKind.HOOK: row}
    admitted = read_descriptor("hook", {}, registrant=EVERYTHING, kinds=kinds)
    assert admitted == Admitted(EffectKind.HOOK, "guard:x", Thing(Scope.PROCESS), ScopeBinding.process())
    assert read_descriptor("migration", {}, registrant=EVERYTHING, kinds=kinds).kind is EffectKind.MIGRATION


def test_descriptor_that_is_no_object_is_refused():
    with pytest.raises(RegistrationRefused) as caught:
        read_descriptor("tool", None, registrant=EVERYTHING)
    assert (caught.value.field, caught.value.reason) == ("descriptor", "must be an object, not null")


# --- permissions ---


@pytest.mark.parametrize("kind", KINDS)
def test_kind_needs_its_permission_and_no_other(kind):
    needed = REGISTRATION_NEEDS.get(EffectKind(kind))
    others = attrs.evolve(EVERYTHING, granted=set(PERMISSIONS) - {needed})
    alone = attrs.evolve(EVERYTHING, granted={needed} - {None})
    assert admit(kind, registrant=alone).kind == kind
    if needed is None:
        assert admit(kind, registrant=others).kind == kind
    else:
        error = refused(kind, "permission_denied", registrant=others)
        assert (error.field, error.reason) == ("kind", f"this needs the permission {needed}")


def test_missing_permission_is_told_before_mistakes():
    refused("tool", "permission_denied", registrant=Registrant(extension_id="guard"), name=7)


def test_provider_needs_its_secret_too():
    assert admit("provider", credential_ref="key").descriptor.credential_ref == "key"
    error = refused("provider", "permission_denied", credential_ref="other")
    assert (error.field, error.reason) == ("credential_ref", "this needs the permission secrets.read:other")


def test_migration_needs_state_to_migrate():
    error = refused("migration", "invalid_payload", registrant=attrs.evolve(EVERYTHING, state_schema=None))
    assert error.reason == "there is no state to migrate"


def test_grants_are_kept_as_sets():
    registrant = Registrant(extension_id="guard", granted=["a", "a"], override_grants=["b"])
    assert registrant.granted == frozenset({"a"})
    assert registrant.override_grants == frozenset({"b"})


# --- scopes ---


@given(st.sampled_from(SCOPED), st.sampled_from(Scope), st.none() | st.sampled_from(Scope))
def test_scope_is_that_of_the_manifest_or_a_narrower_one(kind, manifest, scope):
    registrant, changes = with_scope(manifest), {} if scope is None else {"scope": scope.word}
    meant = manifest if scope is None else scope
    if meant < manifest:
        assert refused(kind, "scope_mismatch", registrant=registrant, **changes).field == "scope"
    else:
        admitted = admit(kind, registrant=registrant, **changes)
        assert admitted.descriptor.scope is meant
        assert admitted.binding == ScopeBinding.setup(meant)
        assert admitted.binding.realm is None


bindings = st.builds(
    ScopeBinding, st.sampled_from([Scope.RUN, Scope.REQUEST]), st.sampled_from(["1", "r2"])
) | st.sampled_from([ScopeBinding.setup(scope) for scope in Scope])


@given(st.sampled_from(SCOPED), st.sampled_from(Scope), bindings)
def test_binding_is_of_the_scope_of_a_run_or_request_effect(kind, scope, binding):
    if scope >= Scope.RUN and binding.scope is scope:
        assert admit(kind, scope=scope.word, binding=binding).binding is binding
    else:
        error = refused(kind, "scope_mismatch", scope=scope.word, binding=binding)
        assert error.field.startswith("binding")


def test_binding_does_not_make_the_scope():
    error = refused("tool", "scope_mismatch", registrant=with_scope(Scope.SESSION), binding=ScopeBinding.run("r1"))
    assert error.reason == "an effect of scope session takes no binding, and this is to run 'r1'"


def test_migration_takes_the_scope_of_the_manifest():
    assert admit("migration", registrant=with_scope(Scope.RUN)).binding == ScopeBinding.setup(Scope.RUN)
    assert refused("migration", "invalid_payload", scope="run").field == "scope"


# --- overrides ---


@pytest.mark.parametrize(("kind", "name"), [("tool", "look"), ("command", "deploy")])
def test_override_needs_a_grant_of_the_operator(kind, name):
    for grants in (["tools.override"], [f"tools.override:{name}"]):
        assert admit(kind, override=True, registrant=attrs.evolve(EVERYTHING, override_grants=grants)).override
    for grants in ([], [f"tools.override:{name}s"], ["tools.register"]):
        registrant = attrs.evolve(EVERYTHING, override_grants=grants)
        error = refused(kind, "override_denied", override=True, registrant=registrant)
        assert error.field == "override"
        assert f"tools.override:{name}" in error.hint
        assert not admit(kind, override=False, registrant=registrant).override


def test_permission_to_override_that_was_asked_for_is_no_grant():
    registrant = attrs.evolve(EVERYTHING, granted=[*PERMISSIONS, "tools.override:look"], override_grants=())
    refused("tool", "override_denied", override=True, registrant=registrant)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not EffectKind(kind).can_be_overridden])
def test_kind_without_override_knows_no_such_key(kind):
    assert refused(kind, "invalid_payload", override=True).field == "override"
