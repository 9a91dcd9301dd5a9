"""An answer is read whole or refused whole, and the refusal names the place."""

from __future__ import annotations

import copy

import pytest
from hook_samples import ACTIONS, OPTIONAL, SESSION_WRITE, action, answers, contract, read, refused
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.hooks import DURABLE, MAX_ACTIONS, Action, Batch, HookClass, HookEvent
from trio_exthost.wire.effects_from_extension import Decision
from trio_exthost.wire.words import DecisionKind

GATE = contract(HookEvent.BEFORE_COMPACTION, HookClass.GATE)
TRANSFORM = contract(HookEvent.MESSAGE_END, HookClass.TRANSFORM)
INPUT = contract(HookEvent.INPUT, HookClass.TRANSFORM)
OBSERVE = contract(HookEvent.MESSAGE_END, HookClass.OBSERVE)
REGISTER = contract(HookEvent.EXTENSION_LOAD, HookClass.REGISTER)
NO_DECISION = [TRANSFORM, OBSERVE, REGISTER]
COMMON = sorted(GATE.allowed_actions)
SAY = action("emit_diagnostic")


# --- what is read ---


@pytest.mark.parametrize("under", [GATE, TRANSFORM, OBSERVE, REGISTER])
def test_answer_may_be_empty(under):
    assert read(under) == Batch(None, None, ())


@pytest.mark.parametrize("kind", ACTIONS)
def test_action_is_read_where_it_has_a_place(kind):
    under = answers(kind)
    batch = read(under, action(kind))
    expected = Action(kind, ACTIONS[kind])
    assert batch == (Batch(None, expected, ()) if kind in under.primary else Batch(None, None, (expected,)))


@pytest.mark.parametrize("kind", ACTIONS)
def test_action_with_its_keys_in_a_payload_is_the_same_as_the_flat_one(kind):
    under = answers(kind)
    assert read(under, {"kind": kind, "payload": ACTIONS[kind]}) == read(under, action(kind))


def test_event_whose_payload_stands_beside_others_is_flat():
    kind = "append_custom_event"
    flat = {"kind": kind, "event_id": "e", "custom_type": "t", "payload": {"event_id": "inner"}}
    (only,) = read(TRANSFORM, flat).common
    assert only.fields["payload"] == {"event_id": "inner"}
    assert refused(TRANSFORM, flat | {"event_id": ...} | {"event_id": 1}).message.startswith(
        "a hook: actions[0].event_id"
    )


def test_outcome_of_a_command_may_stand_flat_beside_the_kind():
    flat = {"status": "rejected", "code": "c"}
    expected = Action("emit_command_outcome", {"outcome": flat})
    assert read(INPUT, {"kind": "emit_command_outcome", **flat}).primary == expected
    assert read(INPUT, {"kind": "emit_command_outcome", "payload": flat}).primary == expected
    error = refused(INPUT, {"kind": "emit_command_outcome", "status": "maybe"})
    assert error.message.startswith("a hook: actions[0].outcome: is no outcome of a command: ")


def test_kind_stands_outside_of_a_payload_only():
    error = refused(TRANSFORM, {"kind": "add_state", "payload": {"kind": "add_state", "key": "k", "by": 1}})
    assert (error.code, error.message) == ("invalid_payload", "a hook: actions[0].kind: is not known here")


@pytest.mark.parametrize("kind", DecisionKind)
@pytest.mark.parametrize("why", [("", ""), ("c", "m")])
def test_gate_decides_with_and_without_reasons(kind, why):
    decision = Decision(kind, *why)
    assert read(GATE, SAY, decision=decision) == Batch(
        decision, None, (Action("emit_diagnostic", ACTIONS["emit_diagnostic"]),)
    )


def test_gate_of_a_tool_call_decides_and_changes_the_arguments():
    under = contract(HookEvent.TOOL_CALL, HookClass.GATE)
    batch = read(under, action("replace_arguments"), decision=Decision(DecisionKind.ASK))
    assert batch.decision == Decision(DecisionKind.ASK)
    assert batch.primary == Action("replace_arguments", ACTIONS["replace_arguments"])


def test_sixty_four_actions_are_the_most():
    assert len(read(GATE, *[SAY] * MAX_ACTIONS).common) == MAX_ACTIONS == 64
    error = refused(GATE, *[SAY] * (MAX_ACTIONS + 1))
    assert (error.code, error.message) == ("resource_limit", "a hook: actions: 65 in one answer, of 64 allowed")


# --- what has no place ---


@pytest.mark.parametrize("under", NO_DECISION)
def test_only_a_gate_may_decide(under):
    error = refused(under, decision=Decision(DecisionKind.ALLOW))
    assert (error.code, error.message) == ("contract_violation", "a hook: decision: only a gate may decide")


@pytest.mark.parametrize("kind", ACTIONS)
def test_who_observes_may_not_want_anything(kind):
    error = refused(OBSERVE, action(kind))
    assert error.code == "contract_violation"
    assert f"actions[0].kind: {kind}" in error.message


@pytest.mark.parametrize("under", [GATE, TRANSFORM, INPUT, REGISTER])
def test_actions_of_other_points_are_refused_with_those_of_this_one(under):
    foreign = set(ACTIONS) - under.allowed_actions
    for kind in foreign:
        error = refused(under, SAY, action(kind))
        assert error.code == "invalid_action"
        assert f"actions[1].kind: {kind} has no place in an answer of {under.event.value}" in error.message
        assert all(each in error.hint for each in under.allowed_actions)


@pytest.mark.parametrize(
    ("raw", "code", "says"),
    [
        (7, "invalid_action", "actions[0]: must be an object, not a number"),
        ({}, "invalid_action", "actions[0].kind: must be text, not nothing"),
        ({"kind": None}, "invalid_action", "actions[0].kind: must be text, not null"),
        ({"kind": "set_stat"}, "invalid_action", 'actions[0].kind: there is no action "set_stat"'),
    ],
)
def test_what_is_no_action_is_refused(raw, code, says):
    error = refused(GATE, raw)
    assert (error.code, says in error.message) == (code, True)


def test_misspelt_action_is_told_the_nearest_and_one_of_an_observer_all_there_are():
    assert refused(GATE, {"kind": "set_stat"}).hint == "did you mean set_state?"
    assert refused(OBSERVE, {"kind": "set_stat"}).hint == "did you mean set_state?"


@pytest.mark.parametrize("second", ["replace_input", "emit_command_outcome"])
def test_second_primary_action_refuses_the_answer(second):
    error = refused(INPUT, action("replace_input"), SAY, action(second))
    assert error.code == "contract_violation"
    assert "actions[2].kind: replace_input stands before it" in error.message


@pytest.mark.parametrize("kind", sorted(DURABLE))
def test_storing_needs_permission(kind):
    error = refused(GATE, SAY, action(kind), granted=["tools.register"])
    assert (error.code, error.message) == (
        "permission_denied",
        f"a hook: actions[1].kind: {kind} needs the permission session.write",
    )
    assert "exthost.permissions" in error.hint


def test_what_does_not_store_needs_no_permission():
    assert len(read(TRANSFORM, action("replace_message"), SAY, action("enqueue_follow_up"), granted=()).common) == 2


# --- whole or not at all ---

common_actions = st.lists(st.sampled_from(COMMON).map(action), max_size=8)
bad_actions = st.one_of(
    st.sampled_from(
        [None, 3, "set_state", [], {}, {"kind": "nothing"}, action("replace_text"), action("dispose_effect")]
    ),
    st.sampled_from(COMMON).map(lambda kind: action(kind, surprise=1)),
    st.sampled_from(COMMON).flatmap(
        lambda kind: st.sampled_from([key for key in ACTIONS[kind] if key not in OPTIONAL.get(kind, ())]).map(
            lambda key: action(kind, **{key: ...})
        )
    ),
)


@given(actions=common_actions, primary=st.none() | st.integers(0, 8))
def test_good_answer_is_kept_whole_and_in_order(actions, primary):
    raw = list(actions)
    if primary is not None:
        raw.insert(primary, action("replace_message"))
    before = copy.deepcopy(raw)
    batch = read(TRANSFORM, *raw)
    assert [{"kind": each.kind} | dict(each.fields) for each in batch.common] == actions
    assert (batch.primary is None) == (primary is None)
    assert raw == before


@given(actions=common_actions, bad=bad_actions, at=st.integers(0, 8))
def test_one_bad_action_refuses_the_answer_and_is_named(actions, bad, at):
    raw = [*actions[:at], bad, *actions[at:]]
    error = refused(TRANSFORM, *raw)
    assert error.message.startswith(f"a hook: actions[{min(at, len(actions))}]")
    assert error.may_have_run


@given(actions=common_actions)
def test_without_permission_the_first_that_stores_is_named(actions):
    storing = [index for index, each in enumerate(actions) if each["kind"] in DURABLE]
    if not storing:
        assert read(GATE, *actions, granted=()) == read(GATE, *actions, granted=SESSION_WRITE)
    else:
        assert refused(GATE, *actions, granted=()).message.startswith(f"a hook: actions[{storing[0]}].kind")
