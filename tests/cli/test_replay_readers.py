"""Recorded conversations of each format as the same entries."""

from __future__ import annotations

from typing import Any

import pytest
from cli.recordings_read import CONVERSATION, cut, read, said
from cli.transcript_texts import EVENTS, RECORDINGS, lines

from trio_exthost.cli.transcripts import (
    AssistantText,
    ConversationBegin,
    Format,
    ProposedCall,
    RecordedResult,
    Skipped,
    SystemText,
    TurnBegin,
    Unreadable,
    UserText,
    blocks_of,
    text_of,
)
from trio_exthost.cli.transcripts_open import open_recording
from trio_exthost.wire.from_extension import ContentBlock


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("step", [1, 7, 0])
def test_every_format_reads_as_the_same_conversation(name: str, step: int) -> None:
    told, data = RECORDINGS[name]
    found = open_recording(cut(data, step or len(data)))
    assert found.format == told
    entries = list(found.entries)
    conversation = [
        (kind, {**values, "text": values["text"].replace("\n", " ")} if "text" in values else values)
        for kind, values in said(entries)
    ]
    assert conversation == CONVERSATION
    assert not [each for each in entries if isinstance(each, Unreadable)]
    assert entries == read(data, Format(told))


def test_events_keep_what_only_they_have() -> None:
    entries = read(lines([*EVENTS, {"event": "before_agent_start", "system_prompt": "be brief"}]))
    assert entries[0] == ConversationBegin("line 1")
    assert UserText("line 2", "tidy up", 1) in entries
    assert [each.step for each in entries if isinstance(each, TurnBegin)] == [7, 8]
    assert Skipped("line 6", "turn_end") in entries
    assert [each.is_error for each in entries if isinstance(each, RecordedResult)] == [True, False]
    assert entries[-1] == SystemText("line 11", "be brief")


def test_events_without_turns_begin_one_after_a_result() -> None:
    without = [each for each in EVENTS if each.get("event") != "turn_start"]
    more = [
        {"event": "turn_end"},
        {"event": "assistant_message", "text": "all done"},
        {"event": "assistant_message", "text": "bye"},
    ]
    entries = read(lines([*without, *more]))
    assert [type(each) for each in entries[-4:]] == [Skipped, TurnBegin, AssistantText, AssistantText]
    assert sum(isinstance(each, TurnBegin) for each in entries) == 1


def test_questions_in_a_log_of_frames_are_not_read_as_events_again() -> None:
    frames = [{"type": "event_intercept", "id": "1", **EVENTS[4]}, {"type": "event", **EVENTS[4]}]
    assert [type(each) for each in read(lines(frames))] == [Skipped, ProposedCall]


@pytest.mark.parametrize(
    ("event", "content", "is_error"),
    [
        ({"result": {"content": "plain", "is_error": True}}, "plain", True),
        ({"text": "short", "is_error": True}, "short", True),
        ({"result": "a text"}, "a text", False),
        ({"content": [{"type": "text", "text": "top"}]}, "top", False),
        ({}, "", False),
    ],
)
def test_results_of_events_in_the_ways_they_are_written(event: dict[str, Any], content: str, is_error: bool) -> None:
    (entry,) = read(lines([{"event": "tool_result", "tool_id": "c1", **event}]))
    assert isinstance(entry, RecordedResult)
    assert ("".join(block.text for block in entry.content), entry.is_error) == (content, is_error)


@pytest.mark.parametrize(
    ("format", "value", "why"),
    [
        (Format.EVENTS, {"text": "x"}, "is no event: it has no `event` that is a text"),
        (Format.EVENTS, [1], "is no event: it has no `event` that is a text"),
        (Format.EVENTS, {"event": "tool_call", "tool_id": "c"}, "is a tool_call without a tool_name"),
        (Format.OPENAI, 7, "is no message: no object"),
        (Format.OPENAI, {"content": "x"}, "is no message: no role"),
        (Format.OPENAI, {"messages": "[1"}, "messages is no JSON: expecting ',' delimiter at character 3"),
        (Format.CLAUDE, {"uuid": "x"}, "has no `type` that is a text"),
        (Format.CLAUDE, "x", "has no `type` that is a text"),
        (Format.CLAUDE, {"type": "user"}, "is a line of type user without a message"),
    ],
)
def test_values_that_are_none_of_the_format_are_told_with_their_place(format: Format, value: Any, why: str) -> None:
    assert read(lines([value]), format) == [Unreadable("line 1", why)]


def test_chat_messages_of_every_kind() -> None:
    messages: list[Any] = [
        {"role": "developer", "content": [{"type": "text", "text": "a"}, "b", 3, {"type": "x"}]},
        {"role": "assistant", "content": None, "refusal": "I will not"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "nor this"}]},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "result"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "free", "input": "text"}}, {"function": {"name": "n", "arguments": [1]}}, {"function": {"name": "none"}}, {"id": "x"}, 3]},
        {"role": "assistant", "tool_calls": {"a": 1}},
        {"role": "critic", "content": "x"},
    ]  # fmt: skip
    at = [f"line 1, message {number}" for number in range(1, 9)]
    assert read(lines([messages])) == [
        ConversationBegin("line 1"),
        SystemText(at[0], "a\nb"),
        TurnBegin(at[1]),
        AssistantText(at[1], "I will not"),
        TurnBegin(at[2]),
        AssistantText(at[2], "nor this"),
        TurnBegin(at[3]),
        ProposedCall(at[3], "", "old", "{}"),
        RecordedResult(at[4], "", (ContentBlock("text", "result"),)),
        TurnBegin(at[5]),
        ProposedCall(at[5], "c", "free", {"input": "text"}),
        ProposedCall(at[5], "", "n", "[1]"),
        ProposedCall(at[5], "", "none", {}),
        Unreadable(at[5], "has no name in tool_calls[3]"),
        Unreadable(at[5], "has no name in tool_calls[4]"),
        TurnBegin(at[6]),
        Unreadable(at[6], "has tool_calls that are no list"),
        Skipped(at[7], "role critic"),
    ]


def test_claude_lines_that_the_user_did_not_write_are_skipped() -> None:
    values = [
        {"type": "user", "uuid": "1", "isMeta": True, "message": {"content": "caveat"}},
        {"type": "user", "uuid": "2", "isCompactSummary": True, "message": {"content": "so far"}},
        {"type": "user", "uuid": "3", "isSidechain": True, "message": {"content": "you are a sub-agent"}},
        {"type": "user", "uuid": "4", "message": {"content": []}},
        {"type": "user", "uuid": "5", "message": {"content": [{"type": "image", "source": {}}, {"type": "new"}, {}]}},
    ]
    assert read(lines(values)) == [
        Skipped("line 1", "user isMeta"),
        Skipped("line 2", "user isCompactSummary"),
        Skipped("line 3", "user isSidechain"),
        Skipped("line 5", "block new"),
        Skipped("line 5", "block without a type"),
        UserText("line 5", "", 1),
    ]


def test_claude_answers_of_agent_and_sub_agent_that_take_turns_are_one_turn_each() -> None:
    def answer(id: str, is_side: bool) -> dict[str, Any]:
        return {
            "type": "assistant",
            "uuid": "u",
            "isSidechain": is_side,
            "message": {"id": id, "content": [{"type": "tool_use", "id": "c", "name": "bash"}]},
        }

    entries = read(
        lines(
            [
                answer("m1", False),
                answer("m2", True),
                answer("m1", False),
                answer("m2", True),
                answer("", True),
                answer("", True),
            ]
        )
    )
    assert [int(each.at[5:]) for each in entries if isinstance(each, TurnBegin)] == [1, 2, 5, 6]


def test_claude_blocks_that_are_broken() -> None:
    content = [{"type": "tool_use", "id": "c"}, {"type": "text", "text": ""}, "x"]
    entries = read(lines([{"type": "assistant", "uuid": "1", "message": {"content": content}}]))
    assert entries == [TurnBegin("line 1"), Unreadable("line 1", "has a tool_use without a name")]


def test_blocks_keep_texts_and_images_of_either_way_to_write_them() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
        {"type": "image", "mime_type": "image/gif", "data": "Qg=="},
        {"type": "tool_reference"},
        "b",
    ]
    assert blocks_of(parts) == (
        ContentBlock("text", "a"),
        ContentBlock("image", mime_type="image/png", data="QQ=="),
        ContentBlock("image", mime_type="image/gif", data="Qg=="),
    )
    assert (blocks_of(None), blocks_of(""), text_of(None)) == ((), (), "")
