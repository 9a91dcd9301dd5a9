"""The table of points says what each may do, in the words of the wire."""

import attrs
import pytest

from trio_exthost.hooks import INTERCEPT_POINTS, NEVER_DROPPED, Event
from trio_exthost.wire import from_extension


def test_points_are_the_four_that_can_be_asked():
    assert list(INTERCEPT_POINTS) == ["tool_call", "turn_start", "assistant_message", "before_agent_start"]
    assert all(name == point.event for name, point in INTERCEPT_POINTS.items())


def test_only_before_agent_start_cannot_block_and_only_turn_start_cannot_rewrite():
    assert [each.event for each in INTERCEPT_POINTS.values() if not each.can_block] == ["before_agent_start"]
    assert [each.event for each in INTERCEPT_POINTS.values() if each.value_key is None] == ["turn_start"]


def test_each_answer_key_is_a_field_of_the_response():
    fields = {each.name for each in attrs.fields(from_extension.EventInterceptResponse)}
    assert {each.answer_key for each in INTERCEPT_POINTS.values() if each.answer_key} <= fields


def test_table_cannot_be_changed():
    with pytest.raises(TypeError):
        INTERCEPT_POINTS["more"] = INTERCEPT_POINTS["tool_call"]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        INTERCEPT_POINTS["turn_start"].can_block = False


def test_events_are_fourteen_and_the_frame_of_a_session_is_never_dropped():
    assert len(Event) == 14
    assert {"session_start", "session_end"} == NEVER_DROPPED
