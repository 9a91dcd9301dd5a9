"""The values of answers of tools and commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies import json_values

from trio_exthost.effects.answers import CommandAnswer, ToolAnswer, read_command_answer, read_tool_answer
from trio_exthost.wire.from_extension import ContentBlock


def test_a_tools_answer_is_read_whole():
    value = {
        "content": [{"type": "text", "text": "x"}],
        "is_error": True,
        "structured_content": [1],
        "details": {"a": 1},
        "of_another_version": 0,
    }
    assert read_tool_answer(value) == ToolAnswer((ContentBlock("text", "x"),), True, [1], {"a": 1})


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, r"\$: expected object, got null"),
        ([], r"\$: expected object, got list"),
        ({}, "content"),
        ({"content": "x"}, r"\$.content: expected list, got str"),
        ({"content": [{"type": "text"}, 1]}, r"\$.content\[1\]: expected object, got int"),
        ({"content": [{"type": "text"}] * 10_001}, r"\$.content: expected at most 10000 elements, got 10001"),
        ({"content": [], "is_error": 1}, r"\$.is_error: expected bool, got int"),
        ({"content": [], "details": []}, r"\$.details: expected object, got list"),
    ],
)
def test_what_is_no_answer_of_a_tool_says_where_and_why(value, what):
    with pytest.raises(ValueError, match=what):
        read_tool_answer(value)


def test_a_commands_answer_has_one_of_three_states():
    assert read_command_answer({"status": "success", "data": [1]}) == CommandAnswer("success", "", [1])
    assert read_command_answer({"status": "rejected", "code": "busy", "message": "no"}).code == "busy"
    with pytest.raises(ValueError, match=r"\$.status: 'ok' is none of success, rejected, cancelled"):
        read_command_answer({"status": "ok"})
    with pytest.raises(ValueError, match=r"\$.message: expected str, got int"):
        read_command_answer({"status": "success", "message": 1})


@given(json_values)
def test_whatever_comes_is_an_answer_or_a_value_error(value):
    for read in (read_tool_answer, read_command_answer):
        said = "$"
        try:
            read(value)
        except ValueError as exc:
            said = str(exc)
        assert said.startswith("$")
