"""Laws of the ledger, each on generated contents."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_machine import BINDINGS, KEYS, KINDS, PLACES, bound, owners, plains, registrations

from trio_exthost.effects import (
    ChangeAction,
    Disposal,
    EffectKind,
    EffectLedger,
    EffectOwner,
    EffectView,
    LedgerError,
    Registration,
)

fills = st.lists(st.tuples(owners, bound), max_size=25)


def filled(fill) -> EffectLedger:
    """A ledger with whatever of this is not refused."""
    ledger = EffectLedger()
    for owner, (binding, registration) in fill:
        with contextlib.suppress(LedgerError):
            ledger.accept(owner, binding, registration, override_authorized=True)
    return ledger


def state(ledger) -> dict:
    """Every answer but the counter."""
    answers = {
        (kind, run_id, request_id): plains(ledger.active_records(kind, run_id=run_id, request_id=request_id))
        for kind in KINDS
        for run_id, request_id in PLACES
    }
    for binding in BINDINGS:
        answers[binding] = plains(ledger.records_for_scope(binding.scope, binding.id))
    return answers


def some_of(items):
    return st.lists(st.sampled_from(items), unique=True) if items else st.just([])


def handles_of(ledger) -> list[int]:
    return [record.handle for binding in BINDINGS for record in ledger.records_for_scope(binding.scope, binding.id)]


@given(fill=fills, data=st.data())
def test_disposing_twice_equals_disposing_once(fill, data):
    ledger = filled(fill)
    for handle in (
        data.draw(st.lists(st.sampled_from(handles_of(ledger) or [0]), unique=True)) if handles_of(ledger) else ()
    ):
        assert ledger.dispose(handle).outcome is Disposal.DISPOSED
        once = state(ledger)
        again = ledger.dispose(handle)
        assert (again.outcome, again.changes) == (Disposal.ALREADY_DISPOSED, ())
        assert state(ledger) == once


@given(fill=fills, owner=owners, where=bound)
def test_accept_then_dispose_is_the_identity(fill, owner, where):
    ledger = filled(fill)
    before = state(ledger)
    counts = ledger.statistics()
    try:
        accepted = ledger.accept(owner, *where, override_authorized=True)
    except LedgerError:
        assert ledger.statistics() == counts
    else:
        ledger.dispose(accepted.handle)
        assert ledger.statistics().issued == counts.issued + 1
        assert ledger.statistics().held == counts.held
    assert state(ledger) == before


@given(fill=fills, data=st.data())
def test_disposing_of_a_set_in_any_order_ends_in_the_same_state(fill, data):
    one, other = filled(fill), filled(fill)
    doomed = [handle for handle in handles_of(one) if data.draw(st.booleans())]
    for handle in doomed:
        one.dispose(handle)
    for handle in data.draw(st.permutations(doomed)):
        other.dispose(handle)
    assert state(one) == state(other)


@given(fill=fills, owner=owners)
def test_disposing_of_an_owner_equals_disposing_of_each_of_its_records(fill, owner):
    one, other = filled(fill), filled(fill)
    one.dispose_owner(owner)
    for record in other.records_for_owner(owner):
        other.dispose(record.handle)
    assert state(one) == state(other)


@given(fill=fills, owner=owners, where=bound)
def test_refused_registration_changes_nothing(fill, owner, where):
    ledger = filled(fill)
    before, counts = state(ledger), ledger.statistics()
    try:
        ledger.accept(owner, *where)
    except LedgerError:
        assert (state(ledger), ledger.statistics()) == (before, counts)
    else:
        assert ledger.statistics().issued == counts.issued + 1


@given(fill=fills, old=owners, new=owners, batch=st.lists(bound, max_size=4))
def test_refused_replacement_changes_nothing(fill, old, new, batch):
    ledger = filled(fill)
    before, counts = state(ledger), ledger.statistics()
    try:
        ledger.replace_owner(old, new, batch)
    except LedgerError:
        assert (state(ledger), ledger.statistics()) == (before, counts)
    else:
        assert len(ledger.records_for_owner(new)) >= len(batch)


@given(fill=fills)
def test_handles_grow_in_order_of_acceptance_whatever_the_sequences(fill):
    ledger = filled(fill)
    handles = sorted(handles_of(ledger))
    assert handles == list(range(1, len(handles) + 1))
    for owner in {owner for owner, _ in fill}:
        held = [record.handle for record in ledger.records_for_owner(owner)]
        assert held == sorted(held)


@given(fill=fills)
def test_replacing_an_owner_by_its_equal_changes_nothing_visible_but_the_handles(fill):
    ledger = filled(fill)
    old, new = EffectOwner("a", "s", 1), EffectOwner("a", "s", 99)
    held = [(record.binding, record.registration) for record in ledger.records_for_owner(old)]

    def seen():
        return {
            (kind, key, place): (record.owner.extension_id, record.registration)
            for kind in KINDS
            for key in KEYS
            for place in PLACES
            if (record := ledger.active(kind, key, run_id=place[0], request_id=place[1])) is not None
        }

    before = seen()
    ledger.replace_owner(old, new, held)
    assert seen() == before
    assert ledger.records_for_owner(old) == ()
    assert [(record.binding, record.registration) for record in ledger.records_for_owner(new)] == held


@given(fill=fills, cut=st.integers(0, 25))
def test_view_that_saw_only_the_end_of_it_all_is_empty(fill, cut):
    ledger, view = EffectLedger(), EffectView()
    for number, (owner, (binding, registration)) in enumerate(fill):
        try:
            view.apply(ledger.accept(owner, binding, registration, override_authorized=True).changes)
        except LedgerError:
            continue
        if number == cut:
            view.apply(ledger.dispose_owner(owner))
    changes = ledger.dispose_all()
    view.apply(changes)
    assert view.active_count == ledger.active_count == 0
    assert all(change.action is ChangeAction.DISPOSED for change in changes)
    assert all(view.active(kind, key, run_id="r1", request_id="q1") is None for kind in KINDS for key in KEYS)


@given(depth=st.integers(3, 40), data=st.data())
def test_deep_stack_comes_down_in_the_order_in_which_it_stands(depth, data):
    ledger = EffectLedger()
    for number in range(depth):
        registration = Registration(EffectKind.TOOL, "x", number, 1, override=True)
        ledger.accept(EffectOwner("a", "s", number), BINDINGS[0], registration, override_authorized=True)
    standing = list(range(1, depth + 1))
    for handle in data.draw(st.permutations(standing)):
        ledger.dispose(handle)
        standing.remove(handle)
        top = ledger.active(EffectKind.TOOL, "x")
        assert (top and top.handle) == (standing[-1] if standing else None)


@given(registration=registrations)
def test_equal_registrations_have_equal_hashes(registration):
    twin = Registration(*(getattr(registration, name) for name in registration.__struct_fields__))
    assert registration == twin
    assert hash(registration) == hash(twin)
    with pytest.raises(AttributeError):
        registration.key = "other"
