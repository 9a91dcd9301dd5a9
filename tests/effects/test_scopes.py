"""Bindings: what they may say, and how they say it."""

from __future__ import annotations

import attrs
import pytest

from trio_exthost.effects import EffectKind, EffectOwner, MissingScopeId, Scope, ScopeBinding


def test_scopes_are_ordered_from_wide_to_narrow():
    assert Scope.PROCESS < Scope.SESSION < Scope.RUN < Scope.REQUEST
    assert [scope.word for scope in Scope] == ["process", "session", "run", "request"]


def test_binding_at_setup_is_unbound_in_every_scope():
    for scope in Scope:
        binding = ScopeBinding.setup(scope)
        assert (binding.scope, binding.id, binding.realm, binding.place) == (scope, None, None, scope)
    assert ScopeBinding.setup(Scope.SESSION) == ScopeBinding.session() == ScopeBinding(Scope.SESSION)
    assert ScopeBinding.setup(Scope.PROCESS) == ScopeBinding.process()


def test_binding_to_an_id_has_a_realm():
    assert ScopeBinding.run("r1").realm == ScopeBinding.run("r1").place == (Scope.RUN, "r1")
    assert ScopeBinding.request("q1") == ScopeBinding(Scope.REQUEST, "q1")
    assert len({ScopeBinding.run("r1"), ScopeBinding.run("r1"), ScopeBinding.request("r1")}) == 2


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize(
    "make",
    [ScopeBinding.run, ScopeBinding.request, lambda it: ScopeBinding(Scope.RUN, it)],
    ids=["run", "request", "plain"],
)
def test_explicit_binding_without_id_is_refused_with_the_way_out(make, missing):
    with pytest.raises(MissingScopeId, match=r"needs the id of that (run|request), got (None|'').*ScopeBinding.setup"):
        make(missing)


def test_empty_id_is_refused_also_at_setup():
    with pytest.raises(MissingScopeId):
        ScopeBinding(Scope.RUN, "", unbound=True)


@pytest.mark.parametrize("scope", [Scope.PROCESS, Scope.SESSION])
def test_wide_scope_with_an_id_is_refused(scope):
    with pytest.raises(ValueError, match=f"a binding to {scope.word} scope takes no id, got 's1'"):
        ScopeBinding(scope, "s1")


def test_bindings_and_owners_cannot_be_changed():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        ScopeBinding.session().scope = Scope.RUN
    with pytest.raises(AttributeError):
        EffectOwner("a", "s", 1).instance = 2


@pytest.mark.parametrize(
    ("binding", "said"),
    [
        (ScopeBinding.session(), "session scope"),
        (ScopeBinding.setup(Scope.RUN), "every run"),
        (ScopeBinding.request("q1"), "request 'q1'"),
    ],
)
def test_binding_reads_as_a_person_would_say_it(binding, said):
    assert str(binding) == said


def test_only_tools_and_commands_can_be_overridden():
    assert {kind for kind in EffectKind if kind.can_be_overridden} == {EffectKind.TOOL, EffectKind.COMMAND}
