"""The contract of each point and class, and the table of points."""

import attrs
import pytest
from hook_samples import PAYLOADS, contract

from trio_exthost.effects import compile_schema
from trio_exthost.hooks import (
    DISPATCHED,
    DURABLE,
    INTERCEPT_POINTS,
    LIFE_POINTS,
    DeadlineClass,
    Delivery,
    Event,
    HookClass,
    HookEvent,
    HookFailure,
    classes_of,
    contract_of,
)
from trio_exthost.hooks.action_shapes import SHAPES

GATES = {
    "before_session_switch", "before_session_fork", "before_model_selection", "tool_call", "before_compaction",
}  # fmt: skip
PRIMARY = {
    "input": ("replace_input", "emit_command_outcome"),
    "before_run": ("patch_run_context",),
    "context": ("replace_context",),
    "before_model_request": ("replace_model_request",),
    "before_provider_request_headers": ("replace_provider_headers",),
    "before_provider_request_raw": ("replace_provider_payload",),
    "message_delta": ("replace_text",),
    "message_end": ("replace_message",),
    "tool_result": ("replace_tool_result",),
}
COMMON = DURABLE | {"enqueue_follow_up", "emit_diagnostic"}
KEYS = [(event, key) for event, payload in PAYLOADS.items() for key in payload]


def test_there_are_36_points_in_the_order_of_the_enumeration():
    assert len(HookEvent) == 36
    assert list(LIFE_POINTS) == list(HookEvent)
    assert all(event is point.event for event, point in LIFE_POINTS.items())


def test_all_points_but_the_two_about_providers_are_dispatched():
    assert set(HookEvent) - DISPATCHED == {"before_provider_request_headers", "before_provider_request_raw"}


def test_those_who_observe_where_an_extension_begins_and_ends_are_waited_for():
    awaited = {event for event, point in LIFE_POINTS.items() if point.awaited}
    assert awaited == {"extension_load", "session_shutdown", "extension_unload"}


def test_points_name_events_and_interceptions_of_the_other_protocol():
    assert {point.zot_event for point in LIFE_POINTS.values()} - {None} == {
        "session_start", "user_prompt_submit", "turn_start", "turn_end", "assistant_message", "tool_call", "tool_result",
        "pre_compact", "post_compact", "session_end",
    } <= set(Event)  # fmt: skip
    assert {point.interception for point in LIFE_POINTS.values()} - {None} == set(INTERCEPT_POINTS)


@pytest.mark.parametrize("event", HookEvent)
def test_default_class_is_that_of_the_table(event):
    expected = HookClass.GATE if event in GATES else HookClass.TRANSFORM if event in PRIMARY else HookClass.OBSERVE
    assert LIFE_POINTS[event].default_class is expected
    assert classes_of(event)[0] is expected


@pytest.mark.parametrize("event", HookEvent)
def test_classes_of_a_point_are_its_own_and_observe(event):
    also = {HookClass.REGISTER} if event == "extension_load" else set()
    possible = {LIFE_POINTS[event].default_class, HookClass.OBSERVE} | also
    assert set(classes_of(event)) == possible
    assert {each for each in HookClass if contract_of(event, each) is not None} == possible


@pytest.mark.parametrize("event", HookEvent)
def test_observers_may_answer_nothing_and_hold_nobody_up(event):
    found = contract(event, HookClass.OBSERVE)
    assert (found.primary, found.allowed_actions, found.failure) == ((), frozenset(), HookFailure.CONTINUE)


@pytest.mark.parametrize("event", PRIMARY)
def test_transform_has_its_primary_actions_and_the_common_ones(event):
    found = contract(HookEvent(event), HookClass.TRANSFORM)
    assert found.primary == PRIMARY[event]
    assert found.allowed_actions == COMMON | set(PRIMARY[event])
    assert found.failure is HookFailure.KEEP_LAST_VALUE


@pytest.mark.parametrize("event", GATES)
def test_gate_denies_when_it_fails_and_only_that_of_a_tool_call_may_change_something(event):
    found = contract(HookEvent(event), HookClass.GATE)
    assert found.primary == (("replace_arguments",) if event == "tool_call" else ())
    assert found.allowed_actions == COMMON | set(found.primary)
    assert found.failure is HookFailure.DENY


def test_register_registers_and_tells():
    found = contract(HookEvent.EXTENSION_LOAD, HookClass.REGISTER)
    assert found.allowed_actions == {"register_effect", "dispose_effect", "emit_diagnostic"}
    assert (found.primary, found.failure) == ((), HookFailure.REJECT_REGISTRATION)


def test_only_the_two_streaming_points_are_fast_and_coalesce():
    fast = {event for event in HookEvent if contract(event, HookClass.OBSERVE).deadline is DeadlineClass.FAST}
    merged = {
        event for event in HookEvent if contract(event, HookClass.OBSERVE).delivery is Delivery.BOUNDED_COALESCING
    }
    assert fast == merged == {"message_update", "tool_execution_update"}


def test_begin_and_end_of_a_session_may_take_long():
    slow = {event for event in HookEvent if contract(event, HookClass.OBSERVE).deadline is DeadlineClass.LONG}
    assert slow == {"extension_load", "session_start", "session_shutdown", "extension_unload"}


def test_every_kind_of_action_has_a_shape_and_a_place():
    allowed = [
        each
        for event in HookEvent
        for hook_class in classes_of(event)
        for each in contract(event, hook_class).allowed_actions
    ]
    assert set(SHAPES) == set(allowed)


def test_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        LIFE_POINTS[HookEvent.INPUT] = LIFE_POINTS[HookEvent.CONTEXT]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        contract(HookEvent.INPUT, HookClass.OBSERVE).primary = ("replace_input",)


# --- payloads ---


@pytest.mark.parametrize("event", HookEvent)
def test_schema_of_a_payload_takes_it_with_more_keys(event):
    schema = compile_schema(LIFE_POINTS[event].payload_schema)
    assert schema.explain(PAYLOADS[event]) == ""
    assert schema.explain(PAYLOADS[event] | {"more": 1}) == ""


@pytest.mark.parametrize("event", HookEvent)
def test_schema_of_a_payload_looks_at_each_item_of_a_list(event):
    schema = compile_schema(LIFE_POINTS[event].payload_schema)
    for key, value in PAYLOADS[event].items():
        if isinstance(value, list):
            assert [each.path for each in schema.errors(PAYLOADS[event] | {key: [1.5]})] == [f"$.{key}[0]"]


@pytest.mark.parametrize(("event", "key"), KEYS)
def test_schema_of_a_payload_misses_each_of_its_keys_and_refuses_a_wrong_one(event, key):
    schema = compile_schema(LIFE_POINTS[event].payload_schema)
    (missing,) = schema.errors({each: value for each, value in PAYLOADS[event].items() if each != key})
    assert key in missing.message
    assert [each.path for each in schema.errors(PAYLOADS[event] | {key: 1.5})] == [f"$.{key}"]
