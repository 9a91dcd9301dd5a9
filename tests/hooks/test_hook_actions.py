"""An answer is read whole or refused whole, and the refusal names the place."""

from __future__ import annotations

import copy
import math

import pytest
from hook_samples import ACTIONS, SESSION_WRITE, USER, action, answers, contract, read, refused
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


def test_outcome_of_a_command_may_stand_flat_beside_the_kind(raw):
    flat = {"status": "rejected", "code": "c"}
    expected = Action("emit_command_outcome", {"outcome": flat})
    assert read(INPUT, {"kind": "emit_command_outcome", **flat}).primary == expected
    assert read(INPUT, {"kind": "emit_command_outcome", "payload": flat}).primary == expected
    error = refused(INPUT, {"kind": "emit_command_outcome", **flat, "surprise": 1})
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
    assert (error.code, "65" in error.message) == ("resource_limit", True)


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


# --- what is wrong in one ---

WRONG = [
    ("replace_input", {"message": "hello"}, "message: must be an object, not text"),
    ("replace_input", {"message": {"content": "x"}}, "message.role: is missing"),
    ("replace_input", {"message": {"role": "user"}}, "message.content: is missing"),
    (
        "replace_input",
        {"message": {"role": 1, "content": "x"}},
        "message.role: must be text that is not empty, not a nu",
    ),
    (
        "replace_input",
        {"message": {"role": "", "content": "x"}},
        "message.role: must be text that is not empty, not emp",
    ),
    (
        "replace_input",
        {"message": {"role": "user", "content": 1}},
        "message.content: must be text or an array, not a n",
    ),
    (
        "emit_command_outcome",
        {"outcome": {"status": "maybe"}},
        "outcome: is no outcome of a command: $.status: 'maybe'",
    ),
    ("emit_command_outcome", {"outcome": 3}, "outcome: is no outcome of a command"),
    ("patch_run_context", {"system_prompt": 1}, "system_prompt: must be text, not a number"),
    ("patch_run_context", {"messages": [USER, {}]}, "messages[1].role: is missing"),
    ("patch_run_context", {"options": {}}, "options: is not known here"),
    ("replace_context", {"messages": {}}, "messages: must be an array, not an object"),
    ("replace_context", {"messages": ["x"]}, "messages[0]: must be an object, not text"),
    ("replace_model_request", {"request": []}, "request: must be an object, not an array"),
    ("replace_provider_headers", {"request": None}, "request: must be an object, not null"),
    ("replace_provider_payload", {"request": "x"}, "request: must be an object, not text"),
    ("replace_text", {"text": None}, "text: must be text, not null"),
    ("replace_text", {"text": "abc", "hold": 4}, "hold: must be from 0 to 3, not 4"),
    ("replace_text", {"hold": -1}, "hold: must be from 0 to"),
    ("replace_text", {"hold": True}, "hold: must be a whole number"),
    ("replace_text", {"text": "\ud800"}, "text: holds half of a surrogate pair"),
    ("replace_message", {"message": None}, "message: must be an object, not null"),
    ("replace_arguments", {"arguments": "ls"}, "arguments: must be an object, not text"),
    ("replace_tool_result", {"result": "x"}, "result: must be an object, not text"),
    ("replace_tool_result", {"result": {}}, "result.content: must be an array, not nothing"),
    ("replace_tool_result", {"result": {"content": "x"}}, "result.content: must be an array, not text"),
    ("replace_tool_result", {"is_error": 1}, "is_error: must be true or false, not a number"),
    ("set_state", {"key": ""}, "key: must be 1 to 256 characters"),
    ("set_state", {"key": "k" * 257}, "key: must be 1 to 256 characters"),
    ("set_state", {"key": "a\nb"}, "key: must be 1 to 256 characters, none of control"),
    ("set_state", {"if_revision": -1}, "if_revision: must be from 0 to"),
    ("set_state", {"if_revision": "1"}, "if_revision: must be a whole number"),
    ("add_state", {"by": True}, "by: must be a number, not true or false"),
    ("add_state", {"by": "1"}, "by: must be a number, not text"),
    ("add_state", {"by": math.inf}, "by: must be finite, not inf"),
    ("delete_state", {"value": 1}, "value: is not known here"),
    ("append_custom_event", {"event_id": "\x85"}, "event_id: must be 1 to 256 characters"),
    ("append_custom_event", {"custom_type": "-a"}, "custom_type: must be 1 to 128 of"),
    ("append_custom_event", {"custom_type": "a."}, "custom_type: must be 1 to 128 of"),
    ("append_custom_event", {"custom_type": "a" * 129}, "custom_type: must be 1 to 128 of"),
    ("append_model_context", {"placement": "footer"}, "placement: must be one of system_prompt_section, message"),
    ("append_model_context", {"content": {}}, "content: must be text, not an object"),
    ("append_model_context", {"placement": "message"}, "content: must be an object, not text"),
    ("enqueue_follow_up", {"follow_up_id": "  "}, "follow_up_id: must be 1 to 128 characters"),
    ("enqueue_follow_up", {"follow_up_id": "f" * 129}, "follow_up_id: must be 1 to 128 characters"),
    ("enqueue_follow_up", {"message": {"role": "system", "content": "x"}}, "message.role: must be user, not 'system'"),
    ("emit_diagnostic", {"code": " "}, "code: must not be blank"),
    ("emit_diagnostic", {"severity": "fatal"}, "severity: must be one of info, warning, error"),
    ("emit_diagnostic", {"message": "\n"}, "message: must not be blank"),
    ("emit_diagnostic", {"message": "é" * 8193}, "message: must have at most 16384 bytes, not 16386"),
    ("emit_diagnostic", {"details": []}, "details: must be an object, not an array"),
    ("emit_diagnostic", {"redacted_fields": [1]}, "redacted_fields[0]: must be text, not a number"),
    ("register_effect", {"registration_id": 0}, "registration_id: must be from 1 to"),
    ("register_effect", {"effect": {"kind": "toool", "descriptor": {}}}, "effect.kind: must be one of"),
    (
        "register_effect",
        {"effect": {"kind": "tool", "descriptor": 1}},
        "effect.descriptor: must be an object, not a nu",
    ),
    ("register_effect", {"effect": {"kind": "tool"}}, "effect.descriptor: is missing"),
    (
        "register_effect",
        {"effect": {"kind": "tool", "descriptor": {}, "binding": {"scope": "session", "id": "s"}}},
        "effect.binding.scope: must be one of",
    ),
    ("dispose_effect", {"registration_id": "1"}, "registration_id: must be a whole number"),
]
OPTIONAL = {
    "patch_run_context": {"system_prompt", "messages"},
    "replace_text": {"hold"},
    "replace_tool_result": {"is_error"},
    "set_state": {"if_revision"},
    "delete_state": {"if_revision"},
    "emit_diagnostic": {"details", "redacted_fields"},
}
KEYS = [(kind, key) for kind, fields in ACTIONS.items() for key in fields]
NULLABLE = [("patch_run_context", "system_prompt"), ("replace_tool_result", "is_error"), ("set_state", "if_revision")]


@pytest.mark.parametrize(("kind", "changes", "says"), WRONG)
def test_what_is_wrong_in_an_action_is_refused_with_its_place(kind, changes, says):
    error = refused(answers(kind), action(kind, **changes))
    assert error.code == "invalid_payload"
    assert error.message.startswith(f"a hook: actions[0].{says}")


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_keys_that_must_be_there_are_missed_and_the_others_not(kind, key):
    raw = action(kind, **{key: ...})
    if key in OPTIONAL.get(kind, ()):
        assert read(answers(kind), raw) != read(answers(kind), action(kind))
    else:
        assert refused(answers(kind), raw).message == f"a hook: actions[0].{key}: is missing"


@pytest.mark.parametrize("kind", ACTIONS)
def test_keys_that_are_not_known_are_refused(kind):
    error = refused(answers(kind), action(kind, surprise=1))
    assert (error.code, error.message) == ("invalid_payload", "a hook: actions[0].surprise: is not known here")


@pytest.mark.parametrize(("kind", "key"), NULLABLE)
def test_null_says_nothing_where_it_may_stand(kind, key):
    assert read(answers(kind), action(kind, **{key: None})) is not None


def test_context_that_is_a_message_holds_an_object():
    raw = action("append_model_context", placement="message", content=USER)
    assert read(TRANSFORM, raw).common[0].fields["content"] == USER


def test_effect_needs_no_binding():
    raw = action("register_effect", effect={"kind": "hook", "descriptor": {"event": "input"}})
    assert read(REGISTER, raw).common[0].fields["effect"]["kind"] == "hook"


def test_a_text_may_be_held_as_a_whole_and_no_further():
    assert read(answers("replace_text"), action("replace_text", text="abc", hold=3)).primary is not None
    assert read(answers("replace_text"), {"kind": "replace_text", "text": ""}).primary == Action(
        "replace_text", {"text": ""}
    )


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
