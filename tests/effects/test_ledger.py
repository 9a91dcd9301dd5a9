"""The ledger, one rule at a time."""

from __future__ import annotations

import pytest
from ledger_invariants import check_invariants

from trio_exthost.effects import (
    Change,
    ChangeAction,
    Conflict,
    Disposal,
    DisposeCause,
    DisposedHandle,
    EffectKind,
    EffectLedger,
    EffectOwner,
    EffectView,
    LedgerStatistics,
    MissingScopeId,
    OverrideDenied,
    Registration,
    Scope,
    ScopeBinding,
    UnknownHandle,
)

GUARD, SANDBOX, AUDIT = (EffectOwner(name, "s1", 1) for name in ("guard", "sandbox", "audit"))
SESSION = ScopeBinding.session()
TOOL, COMMAND, PROVIDER = EffectKind.TOOL, EffectKind.COMMAND, EffectKind.PROVIDER


def tool(key="bash", *, override=False, value=None):
    return Registration(TOOL, key, value, 1, override=override)


def accept(ledger, owner, registration, binding=SESSION):
    return ledger.accept(owner, binding, registration, override_authorized=registration.override).handle


def stack(*layers):
    """A ledger with one tool, overridden by each further owner."""
    ledger = EffectLedger()
    for number, owner in enumerate(layers):
        accept(ledger, owner, tool(override=number > 0))
    return ledger


def told(changes):
    """Changes as (action, handle, cause)."""
    return [(change.action.value, change.record.handle, change.cause and change.cause.value) for change in changes]


def in_force(ledger, key="bash", **where):
    record = ledger.active(TOOL, key, **where)
    return record and record.handle


# --- acceptance and look-up --------------------------------------------------------------------------------------


def test_accepted_record_is_found_by_handle_key_owner_and_scope():
    ledger = EffectLedger()
    accepted = ledger.accept(GUARD, SESSION, tool(value={"any": []}))
    record = ledger.record(accepted.handle)
    assert (record.handle, record.owner, record.binding, record.registration) == (
        1,
        GUARD,
        SESSION,
        tool(value={"any": []}),
    )
    assert accepted.changes == (Change(ChangeAction.ACCEPTED, record),)
    assert ledger.active(TOOL, "bash") is record
    assert (
        ledger.active_records(TOOL)
        == ledger.records_for_owner(GUARD)
        == ledger.records_for_scope(Scope.SESSION)
        == (record,)
    )
    assert ledger.active_count == 1
    assert hash(record) == hash(record)
    assert len({record.registration, tool(value={"any": []})}) == 1


def test_empty_ledger_answers_nothing():
    ledger = EffectLedger()
    assert ledger.active(TOOL, "bash", run_id="r", request_id="q") is None
    assert ledger.active_records(TOOL, run_id="r", request_id="q") == ()
    assert ledger.records_for_owner(GUARD) == ledger.records_for_scope(Scope.RUN, "r") == ()
    assert ledger.dispose_owner(GUARD) == ledger.dispose_all() == ()
    assert ledger.active_count == 0


def test_same_key_of_another_kind_is_no_conflict():
    ledger = EffectLedger()
    accept(ledger, GUARD, tool("deploy"))
    accept(ledger, SANDBOX, Registration(COMMAND, "deploy", None, 1))
    assert ledger.active(COMMAND, "deploy").owner == SANDBOX
    assert ledger.active(TOOL, "deploy").owner == GUARD


def test_occupied_key_is_refused_with_holder_and_way_out():
    ledger = stack(GUARD)
    with pytest.raises(Conflict) as caught:
        ledger.accept(SANDBOX, SESSION, tool())
    assert caught.value.extension == "sandbox"
    assert str(caught.value) == (
        "sandbox: tool 'bash' is held by extension 'guard' (instance 1, handle 1)"
        " (choose another key, or dispose of the other first, or ask for an override, which needs a grant of the operator)"
    )


def test_own_key_twice_is_a_conflict_that_says_so():
    with pytest.raises(Conflict, match=r"already registered by this instance \(handle 1\)"):
        stack(GUARD).accept(GUARD, SESSION, tool())


def test_conflict_of_a_kind_without_overrides_does_not_recommend_one():
    ledger = EffectLedger()
    accept(ledger, GUARD, Registration(EffectKind.PROMPT_SECTION, "style", None, 1))
    with pytest.raises(Conflict, match=r"prompt section 'style' is held") as caught:
        accept(ledger, SANDBOX, Registration(EffectKind.PROMPT_SECTION, "style", None, 2))
    assert "override" not in caught.value.hint


@pytest.mark.parametrize("holder", [(), (GUARD,)])
def test_override_without_authority_is_denied_whether_the_key_is_free_or_not(holder):
    ledger = stack(*holder)
    with pytest.raises(OverrideDenied, match="tool 'bash' asks for an override without authority") as caught:
        ledger.accept(SANDBOX, SESSION, tool(override=True))
    assert ("held by extension 'guard'" in str(caught.value)) is bool(holder)
    assert "the operator can grant" in caught.value.hint
    assert ledger.active_count == len(holder)


def test_override_of_a_kind_without_overrides_is_denied_even_with_authority():
    with pytest.raises(OverrideDenied, match="only command and tool can be overridden"):
        accept(EffectLedger(), GUARD, Registration(PROVIDER, "p", None, 1, override=True))


def test_refused_registration_takes_no_handle():
    ledger = stack(GUARD)
    with pytest.raises(Conflict):
        ledger.accept(SANDBOX, SESSION, tool())
    assert accept(ledger, SANDBOX, tool("other")) == 2


@pytest.mark.parametrize("handle", [-1, 0, 2])
def test_handle_never_given_out_is_unknown(handle):
    ledger = stack(GUARD)
    with pytest.raises(UnknownHandle, match=f"had handle {handle} .handles so far are 1 to 1"):
        ledger.record(handle)
    with pytest.raises(UnknownHandle):
        ledger.dispose(handle)


def test_first_handle_of_an_empty_ledger_is_unknown():
    with pytest.raises(UnknownHandle, match="none has been given out yet"):
        EffectLedger().record(1)


# --- realms ------------------------------------------------------------------------------------------------------


def test_look_up_goes_request_then_run_then_unbound():
    ledger = EffectLedger()
    unbound, run, request = (
        accept(ledger, owner, tool(), binding)
        for owner, binding in ((GUARD, SESSION), (SANDBOX, ScopeBinding.run("r1")), (AUDIT, ScopeBinding.request("q1")))
    )
    assert in_force(ledger) == unbound
    assert in_force(ledger, run_id="r1") == run
    assert in_force(ledger, run_id="r1", request_id="q1") == request
    assert in_force(ledger, run_id="r2", request_id="q2") == unbound
    assert [r.handle for r in ledger.active_records(TOOL, run_id="r1", request_id="q1")] == [request]
    ledger.dispose_scope(Scope.REQUEST, "q1")
    assert in_force(ledger, run_id="r1", request_id="q1") == run


def test_two_overlapping_runs_do_not_collide():
    ledger = EffectLedger()
    first = accept(ledger, GUARD, tool(), ScopeBinding.run("r1"))
    second = accept(ledger, GUARD, tool(), ScopeBinding.run("r2"))
    assert told(ledger.dispose_scope(Scope.RUN, "r1")) == [("disposed", first, "scope")]
    assert in_force(ledger, run_id="r1") is None
    assert in_force(ledger, run_id="r2") == second


def test_a_run_and_a_request_of_the_same_id_are_two_realms():
    ledger = EffectLedger()
    run = accept(ledger, GUARD, tool(), ScopeBinding.run("1"))
    request = accept(ledger, GUARD, tool(), ScopeBinding.request("1"))
    assert (in_force(ledger, run_id="1"), in_force(ledger, request_id="1")) == (run, request)


def test_conflict_within_a_run_names_the_run():
    ledger = EffectLedger()
    accept(ledger, GUARD, tool(), ScopeBinding.run("r1"))
    with pytest.raises(Conflict, match="tool 'bash' in run 'r1' is held"):
        accept(ledger, SANDBOX, tool(), ScopeBinding.run("r1"))


def test_unbound_run_effect_is_active_everywhere_and_outlives_each_run():
    ledger = EffectLedger()
    handle = accept(ledger, GUARD, tool(), ScopeBinding.setup(Scope.RUN))
    assert in_force(ledger) == in_force(ledger, run_id="r1") == handle
    assert ledger.dispose_scope(Scope.RUN, "r1") == ()
    assert [r.handle for r in ledger.records_for_scope(Scope.RUN)] == [handle]
    with pytest.raises(Conflict):
        accept(ledger, SANDBOX, tool(), SESSION)


@pytest.mark.parametrize("run_id", [None, ""])
def test_end_of_a_run_without_its_id_disposes_of_nothing(run_id):
    ledger = EffectLedger()
    accept(ledger, GUARD, tool(), ScopeBinding.setup(Scope.RUN))
    with pytest.raises(MissingScopeId):
        ledger.dispose_scope(Scope.RUN, run_id)
    assert ledger.active_count == 1


def test_active_records_come_in_order_of_acceptance_whatever_their_realm():
    ledger = EffectLedger()
    keys = [("c", ScopeBinding.run("r1")), ("a", SESSION), ("b", ScopeBinding.request("q1")), ("a2", SESSION)]
    handles = [accept(ledger, GUARD, tool(key), binding) for key, binding in keys]
    assert [r.handle for r in ledger.active_records(TOOL, run_id="r1", request_id="q1")] == handles


# --- overrides ---------------------------------------------------------------------------------------------------


def test_override_displaces_and_its_end_restores():
    ledger = stack(GUARD)
    accepted = ledger.accept(SANDBOX, SESSION, tool(override=True), override_authorized=True)
    assert told(accepted.changes) == [("accepted", 2, None), ("displaced", 1, None)]
    assert in_force(ledger) == 2
    assert ledger.active_count == 2
    disposed = ledger.dispose(2)
    assert disposed.outcome is Disposal.DISPOSED
    assert told(disposed.changes) == [("restored", 1, None), ("disposed", 2, "handle")]
    assert in_force(ledger) == 1


@pytest.mark.parametrize("handle", [1, 2])
def test_disposing_of_a_covered_record_changes_nothing_visible(handle):
    ledger = stack(GUARD, SANDBOX, AUDIT)
    assert told(ledger.dispose(handle).changes) == [("disposed", handle, "handle")]
    assert in_force(ledger) == 3
    assert told(ledger.dispose(3).changes)[0] == ("restored", 3 - handle, None)
    check_invariants(ledger)


def test_owner_with_two_levels_of_a_stack_restores_only_what_outlives_it():
    ledger = stack(AUDIT, SANDBOX, GUARD, SANDBOX)
    ledger.dispose(3)
    changes = ledger.dispose_owner(SANDBOX, cause=DisposeCause.FAULT)
    assert told(changes) == [("restored", 1, None), ("disposed", 4, "fault"), ("disposed", 2, "fault")]
    assert in_force(ledger) == 1


def test_owner_around_another_restores_the_other():
    changes = stack(SANDBOX, GUARD, SANDBOX).dispose_owner(SANDBOX)
    assert told(changes) == [("restored", 2, None), ("disposed", 3, "owner"), ("disposed", 1, "owner")]


# --- disposal ----------------------------------------------------------------------------------------------------


def test_second_disposal_is_no_error_and_changes_nothing():
    ledger = stack(GUARD)
    assert ledger.dispose(1, cause=DisposeCause.FAULT).changes[0].cause is DisposeCause.FAULT
    again = ledger.dispose(1)
    assert (again.outcome, again.changes) == (Disposal.ALREADY_DISPOSED, ())


def test_disposed_handle_is_told_from_an_unknown_one():
    ledger = stack(GUARD)
    ledger.dispose(1)
    with pytest.raises(DisposedHandle, match="handle 1 has been disposed of"):
        ledger.record(1)


def test_handle_is_not_used_again():
    ledger = stack(GUARD)
    ledger.dispose_all()
    assert accept(ledger, GUARD, tool()) == 2


def test_owner_scope_and_all_dispose_newest_first():
    def filled():
        ledger = EffectLedger()
        for key in "abc":
            accept(ledger, GUARD, tool(key), ScopeBinding.run("r1"))
        return ledger

    for dispose, cause in (
        (lambda ledger: ledger.dispose_owner(GUARD), "owner"),
        (lambda ledger: ledger.dispose_scope(Scope.RUN, "r1"), "scope"),
        (lambda ledger: ledger.dispose_all(), "shutdown"),
    ):
        assert told(dispose(filled())) == [("disposed", handle, cause) for handle in (3, 2, 1)]


def test_late_end_of_an_old_instance_leaves_its_successor_alone():
    ledger = stack(EffectOwner("guard", "s1", 2))
    assert ledger.dispose_owner(EffectOwner("guard", "s1", 1)) == ()
    assert in_force(ledger) == 1


# --- replacement -------------------------------------------------------------------------------------------------

SUCCESSOR = EffectOwner("guard", "s1", 2)


def test_successor_takes_a_covered_place_and_is_restored_to_it():
    ledger = stack(GUARD, SANDBOX)
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool(value="new"))])
    assert replaced.handles == (3,)
    assert told(replaced.changes) == [
        ("accepted", 3, None),
        ("displaced", 3, None),
        ("restored", 2, None),
        ("disposed", 1, "reload"),
    ]
    assert in_force(ledger) == 2
    ledger.dispose(2)
    assert ledger.active(TOOL, "bash").registration.value == "new"


def test_successor_takes_the_top_without_a_gap():
    ledger = stack(AUDIT, GUARD)
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool(override=True))])
    assert told(replaced.changes) == [("accepted", 3, None), ("disposed", 2, "reload")]
    assert in_force(ledger) == 3
    assert told(ledger.dispose(3).changes) == [("restored", 1, None), ("disposed", 3, "handle")]


def test_what_the_successor_leaves_out_is_disposed_and_what_is_new_is_accepted():
    ledger = stack(AUDIT, GUARD)
    accept(ledger, GUARD, tool("old"))
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool("new"))])
    assert told(replaced.changes) == [
        ("accepted", 4, None),
        ("disposed", 3, "reload"),
        ("restored", 1, None),
        ("disposed", 2, "reload"),
    ]
    assert [record.registration.key for record in ledger.active_records(TOOL)] == ["bash", "new"]


def test_new_override_of_a_successor_displaces_what_remains():
    ledger = stack(AUDIT)
    batch = [(SESSION, tool(override=True))]
    with pytest.raises(OverrideDenied):
        ledger.replace_owner(GUARD, SUCCESSOR, batch)
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, batch, override_authorized=True)
    assert told(replaced.changes) == [("accepted", 2, None), ("displaced", 1, None)]


def test_successor_that_stops_asking_for_its_override_is_refused_and_nothing_changes():
    ledger = stack(AUDIT, GUARD)
    with pytest.raises(Conflict, match="tool 'bash' is held by extension 'audit'"):
        ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool("fine")), (SESSION, tool())])
    assert in_force(ledger) == 2
    assert in_force(ledger, "fine") is None
    assert ledger.statistics().issued == 2


def test_successor_at_the_bottom_needs_no_override_if_what_was_below_goes_too():
    ledger = stack(GUARD, GUARD)
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool())])
    assert told(replaced.changes) == [("accepted", 3, None), ("disposed", 2, "reload"), ("disposed", 1, "reload")]
    check_invariants(ledger)


def test_key_twice_in_one_replacement_is_a_conflict():
    with pytest.raises(Conflict, match="twice in one replacement"):
        EffectLedger().replace_owner(GUARD, SUCCESSOR, [(SESSION, tool()), (SESSION, tool())])


def test_key_held_by_another_is_a_conflict_in_a_replacement():
    with pytest.raises(Conflict, match="held by extension 'audit'"):
        stack(AUDIT).replace_owner(GUARD, SUCCESSOR, [(SESSION, tool())])


def test_of_several_with_one_key_the_first_takes_the_place_of_the_first():
    ledger = stack(GUARD, AUDIT, GUARD)
    batch = [(SESSION, tool(value="low")), (SESSION, tool(override=True, value="high"))]
    ledger.replace_owner(GUARD, SUCCESSOR, batch)
    assert ledger.active(TOOL, "bash").registration.value == "high"
    ledger.dispose_owner(AUDIT)
    ledger.dispose(5)
    assert ledger.active(TOOL, "bash").registration.value == "low"


def test_successor_above_a_leftover_that_goes_needs_no_override():
    """The guard inherits the place below its own record; of the two, the first accepted has a successor."""
    ledger = stack(AUDIT, GUARD)
    ledger.replace_owner(AUDIT, GUARD, [(SESSION, tool())])
    assert [record.handle for record in ledger.records_for_owner(GUARD)] == [2, 3]
    replaced = ledger.replace_owner(GUARD, SUCCESSOR, [(SESSION, tool())])
    assert told(replaced.changes) == [("accepted", 4, None), ("disposed", 3, "reload"), ("disposed", 2, "reload")]
    assert in_force(ledger) == 4
    check_invariants(ledger)


def test_instance_can_replace_its_own_records():
    ledger = stack(GUARD, GUARD)
    held = [(record.binding, record.registration) for record in ledger.records_for_owner(GUARD)]
    assert ledger.replace_owner(GUARD, GUARD, held).handles == (3, 4)
    assert in_force(ledger) == 4
    assert ledger.active_count == 2
    check_invariants(ledger)


def test_replacement_is_all_or_nothing_also_when_the_registrations_fail_to_come():
    ledger = stack(GUARD)

    def broken():
        yield SESSION, tool()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        ledger.replace_owner(GUARD, SUCCESSOR, broken())
    assert in_force(ledger) == 1


# --- counts and memory -------------------------------------------------------------------------------------------


def test_statistics_count_what_is_held_and_what_has_gone():
    ledger = stack(GUARD, SANDBOX, AUDIT)
    accept(ledger, GUARD, tool("other"), ScopeBinding.run("r1"))
    ledger.dispose(3)
    assert ledger.statistics() == LedgerStatistics(
        held=3, in_force=2, displaced=1, owners=2, scopes=2, issued=4, disposed=1
    )


def sizes(ledger):
    index = ledger._index
    inner = [table for tables in (index.tables, index.owners, index.bindings) for table in tables.values()]
    return sum(table.__sizeof__() for table in (index.records, index.above, index.below, *inner))


@pytest.mark.parametrize("in_one_call", [True, False])
def test_memory_of_many_records_is_given_back_when_they_go(in_one_call):
    ledger = stack(AUDIT, SANDBOX)
    before = sizes(ledger)
    for number in range(20_000):
        accept(ledger, GUARD, tool(f"tool{number}"))
    assert sizes(ledger) > 20 * before
    if in_one_call:
        ledger.dispose_owner(GUARD)
    else:
        for handle in range(3, 20_003):
            ledger.dispose(handle)
    assert sizes(ledger) < 200_000
    for number in range(2_000):
        ledger.dispose(accept(ledger, GUARD, tool(f"tool{number}")))
    assert sizes(ledger) < 30_000
    check_invariants(ledger)


def test_view_follows_changes_without_knowing_the_ledger():
    ledger, view = EffectLedger(), EffectView()
    view.apply(ledger.accept(GUARD, SESSION, tool()).changes)
    view.apply(ledger.accept(SANDBOX, SESSION, tool(override=True), override_authorized=True).changes)
    view.apply(ledger.accept(AUDIT, ScopeBinding.request("q"), tool()).changes)
    assert (in_force(view), in_force(view, run_id="r"), in_force(view, request_id="q")) == (2, 2, 3)
    view.apply(ledger.dispose_all())
    assert view.records() == ()
    assert in_force(view) is None


# --- update ------------------------------------------------------------------------------------------------------


def test_an_update_changes_the_value_and_nothing_else():
    ledger = stack(GUARD, SANDBOX, AUDIT)
    for handle in (1, 2, 3):
        before = ledger.record(handle)
        updated = ledger.update(handle, f"new {handle}")
        assert updated.record.registration.value == f"new {handle}"
        assert updated.previous == before
        assert told(updated.changes) == [("updated", handle, None)]
        check_invariants(ledger)
    assert in_force(ledger) == 3
    assert [ledger.below(handle) and ledger.below(handle).handle for handle in (1, 2, 3)] == [None, 1, 2]
    ledger.dispose(3)
    assert ledger.active(TOOL, "bash").registration.value == "new 2"


def test_an_update_of_what_is_not_there_is_refused():
    ledger = stack(GUARD)
    with pytest.raises(UnknownHandle):
        ledger.update(2, "new")
    ledger.dispose(1)
    with pytest.raises(DisposedHandle):
        ledger.update(1, "new")
