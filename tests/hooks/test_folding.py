"""What an answer makes of the payload, point by point."""

from __future__ import annotations

import copy

import pytest
from hook_samples import ACTIONS, ASSISTANT, PAYLOADS, REQUEST, USER, action, folded, not_folded

from trio_exthost.effects import compile_schema
from trio_exthost.hooks import LIFE_POINTS, Action, Batch, HookEvent, fold
from trio_exthost.hooks.contract import PRIMARY

OTHER = {"role": "user", "content": "other"}
EDITED = {"role": "assistant", "content": "edited"}
RESULT = {"content": [{"type": "text", "text": "x"}]}
CHANGES = [
    (HookEvent.INPUT, {"kind": "replace_input", "message": OTHER}, {"message": OTHER}),
    (HookEvent.BEFORE_RUN, {"kind": "patch_run_context", "system_prompt": "p"}, {"system_prompt": "p"}),
    (HookEvent.BEFORE_RUN, {"kind": "patch_run_context", "system_prompt": None}, {"system_prompt": None}),
    (HookEvent.BEFORE_RUN, {"kind": "patch_run_context", "messages": [OTHER]}, {"messages": [USER, OTHER]}),
    (HookEvent.BEFORE_RUN, {"kind": "patch_run_context"}, {}),
    (HookEvent.CONTEXT, {"kind": "replace_context", "messages": []}, {"messages": []}),
    (
        HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS,
        {"kind": "replace_provider_headers", "request": {"a": 1}},
        {"request": {"a": 1}},
    ),
    (HookEvent.BEFORE_PROVIDER_REQUEST_RAW, {"kind": "replace_provider_payload", "request": {}}, {"request": {}}),
    (HookEvent.MESSAGE_DELTA, {"kind": "replace_text", "text": "******"}, {"text": "******"}),
    (HookEvent.MESSAGE_DELTA, {"kind": "replace_text", "text": "abc", "hold": 2}, {"text": "abc"}),
    (HookEvent.MESSAGE_END, {"kind": "replace_message", "message": EDITED}, {"message": EDITED}),
    (HookEvent.TOOL_CALL, {"kind": "replace_arguments", "arguments": {}}, {"args": {}}),
    (HookEvent.TOOL_RESULT, {"kind": "replace_tool_result", "result": RESULT}, {"result": RESULT}),
    (
        HookEvent.TOOL_RESULT,
        {"kind": "replace_tool_result", "result": RESULT, "is_error": True},
        {"result": RESULT, "is_error": True},
    ),
    (HookEvent.TOOL_RESULT, {"kind": "replace_tool_result", "result": RESULT, "is_error": None}, {"result": RESULT}),
]
PAIRS = [(event, kind) for event, kinds in PRIMARY.items() for kind in kinds]


@pytest.mark.parametrize(("event", "raw", "changed"), CHANGES)
def test_primary_action_changes_these_keys_and_no_others(event, raw, changed):
    payload = PAYLOADS[event] | {"extra": "the embedder's"}
    assert folded(event, payload, raw) == payload | changed


@pytest.mark.parametrize("event", HookEvent)
def test_answer_without_primary_action_leaves_the_same_object(event):
    payload = PAYLOADS[event]
    assert fold(event, payload, Batch(None, None, ()), extension="e", what="w") is payload


def test_input_that_a_hook_handles_itself_is_left_as_it_is():
    payload = PAYLOADS[HookEvent.INPUT]
    assert folded(HookEvent.INPUT, payload, action("emit_command_outcome")) is payload


@pytest.mark.parametrize(("event", "kind"), PAIRS)
def test_nothing_that_is_given_is_changed_and_the_result_is_of_the_same_schema(event, kind):
    payload, raw = copy.deepcopy(PAYLOADS[event]), copy.deepcopy(action(kind))
    result = folded(event, payload, raw)
    assert (payload, raw) == (PAYLOADS[event], {"kind": kind} | ACTIONS[kind])
    schema = compile_schema(dict(LIFE_POINTS[event].payload_schema))
    assert schema.explain(result) == ""


def test_way_out_of_a_refused_request_is_told():
    payload = {"request": REQUEST | {"own": 1}}
    raw = action("replace_model_request", request=REQUEST | {"own": 2})
    assert not_folded(HookEvent.BEFORE_MODEL_REQUEST, payload, raw).hint == "it may be left out"


def test_role_of_a_message_must_stay():
    error = not_folded(HookEvent.MESSAGE_END, {"message": ASSISTANT}, action("replace_message", message=USER))
    assert error.code == "invalid_payload"
    assert error.message == "a hook: message.role: must stay assistant, not become 'user'"


@pytest.mark.parametrize("event", HookEvent)
def test_action_of_another_point_is_refused(event):
    foreign = [kind for other, kind in PAIRS if kind not in PRIMARY.get(event, ())]
    assert foreign
    for kind in foreign:
        error = not_folded(event, PAYLOADS[event], action(kind))
        assert error.code == "invalid_action"
        assert f"{kind}: has no place in an answer of {event.value}" in error.message


def test_run_context_begins_with_no_messages_where_there_are_none():
    batch = Batch(None, Action("patch_run_context", {"messages": [USER]}), ())
    assert fold(HookEvent.BEFORE_RUN, {}, batch, extension="e", what="w") == {"messages": [USER]}
