"""Recorded conversations of each format as the same entries, whatever is broken in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from cli.transcript_texts import CLAUDE, EVENTS, MESSAGES, PUSH, RECORDINGS, WIPE, lines
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.transcripts import (
    AssistantText,
    ConversationBegin,
    Entry,
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
from trio_exthost.cli.transcripts_json import MOST_BYTES, MOST_LEVELS, NotJson, decode
from trio_exthost.cli.transcripts_lines import Line, split_lines
from trio_exthost.cli.transcripts_open import UnknownFormat, open_recording
from trio_exthost.wire.from_extension import ContentBlock


def read(data: bytes, format: Format | None = None, step: int = 0) -> list[Entry]:
    return list(open_recording(cut(data, step or len(data) or 1), format).entries)


def cut(data: bytes, step: int) -> Iterator[bytes]:
    return (data[start : start + step] for start in range(0, len(data), step))


def said(entries: list[Entry]) -> list[tuple[Any, ...]]:
    """What is said in a conversation, without places, steps and what one format has and another has not."""
    kept = [
        each for each in entries if isinstance(each, (UserText, TurnBegin, AssistantText, ProposedCall, RecordedResult))
    ]
    plain = [
        attrs.evolve(each, arguments=json.loads(each.arguments))
        if isinstance(each, ProposedCall) and isinstance(each.arguments, str)
        else each
        for each in kept
    ]
    drop = {"at", "step", "images", "is_error"}
    return [
        (type(each), {key: value for key, value in attrs.asdict(each, recurse=False).items() if key not in drop})
        for each in plain
    ]


CONVERSATION = [
    (UserText, {"text": "tidy up"}),
    (TurnBegin, {}),
    (AssistantText, {"text": "the key is sk-0123456789abcdefghij"}),
    (ProposedCall, {"id": "c1", "name": "bash", "arguments": WIPE}),
    (RecordedResult, {"id": "c1", "content": (ContentBlock("text", "no"),)}),
    (TurnBegin, {}),
    (ProposedCall, {"id": "c2", "name": "bash", "arguments": PUSH}),
    (RecordedResult, {"id": "c2", "content": (ContentBlock("text", "done"),)}),
]


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


# --- what is broken --------------------------------------------------------------------------------------------------

BROKEN = {
    b"{broken": "is no JSON: expecting property name enclosed in double quotes at character 2",
    b'"\xff"': "is no UTF-8",
    b"\0\0": "is no JSON: expecting value at character 1",
    b"[" * (MOST_LEVELS + 1) + b"]" * (MOST_LEVELS + 1): f"is nested deeper than {MOST_LEVELS} levels",
    b'{"a": NaN}': "is no JSON: NaN",
    b"1" * 5000: "",
    b"1" * 5000 + b"e": "is no JSON: a number has too many digits",
}


@pytest.mark.parametrize("format", ["events", "message a line", "claude"])
def test_broken_lines_are_told_with_their_number_and_the_others_are_read(format: str) -> None:
    _, data = RECORDINGS[format]
    good = data.splitlines()
    bad = [line for line in BROKEN if BROKEN[line]]
    mixed = [good[0], b"", *bad, *good[1:]]
    entries = read(b"\r\n".join(mixed))
    problems = [each for each in entries if isinstance(each, Unreadable)]
    assert problems[0].at == "line 3"
    assert [each.at for each in problems] == [f"line {number}" for number in range(3, 3 + len(bad))]
    assert [each.why.replace("expecting value", "extra data") for each in problems] == [
        BROKEN[line].replace("expecting value", "extra data") for line in bad
    ]
    assert said([each for each in entries if not isinstance(each, Unreadable)]) == said(read(data))


def test_half_of_a_surrogate_pair_is_replaced_wherever_it_stands() -> None:
    assert decode(rb'{"a\ud83d": ["x\ud83dy", 1, null], "ok": "\ud83d\ude00"}') == {
        "a\ufffd\ufffd\ufffd": ["x\ufffd\ufffd\ufffdy", 1, None],
        "ok": "😀",
    }


@pytest.mark.parametrize("data", [line for line in BROKEN if BROKEN[line]])
def test_decode_says_why(data: bytes) -> None:
    with pytest.raises(NotJson, match=r"^is "):
        decode(data)


def test_lines_over_the_limit_are_told_and_only_they() -> None:
    data = b"a" * 10 + b"\n" + b"b" * 11 + b"\n\n" + b"c" * 10 + b"\n" + b"d" * 11
    for step in (1, 3, 100):
        assert list(split_lines(cut(data, step), 10)) == [
            Line(1, b"a" * 10),
            Line(2, None),
            Line(4, b"c" * 10),
            Line(5, None),
        ]


def test_line_that_is_too_long_is_told_and_the_next_is_read() -> None:
    found = read(b'{"type": "summary", "uuid": "1"}\n' + b"x" * (MOST_BYTES + 1) + b"\n" + lines(CLAUDE))
    assert found[1] == Unreadable("line 2", f"is longer than {MOST_BYTES} bytes")
    assert said(found) == CONVERSATION


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.integers(1, 30), st.integers(1, 40))
def test_lines_do_not_depend_on_how_they_were_cut(wanted: list[bytes], most: int, step: int) -> None:
    model = [
        Line(number, None if len(line) > most else line.strip())
        for number, line in enumerate(wanted, 1)
        if len(line) > most or line.strip()
    ]
    assert list(split_lines(cut(b"\n".join(wanted), step), most)) == model


# --- which format ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b" \n\r\n\t", "is empty"),
        (b"\xef\xbb\xbf\n", "is empty"),
        (b"\xff\xfe{\0", "is UTF-16, not UTF-8"),
        (b"hello\nworld\n", "is in no format that is known"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is in no format that is known"),
        (lines([{"a": 1}, {"b": 2}]), "is in no format that is known"),
        (b"{}", "is in no format that is known"),
        (b"[]\n", "is in no format that is known"),
    ],
)
def test_what_is_no_recording_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UnknownFormat, match=why):
        open_recording([data])


def test_byte_order_mark_is_no_part_of_the_first_line() -> None:
    for name in ("claude", "list in several lines"):
        _, data = RECORDINGS[name]
        assert read(b"\xef\xbb\xbf" + data, step=1) == read(data)


def test_log_whose_first_line_is_cut_off_is_known_by_a_later_one() -> None:
    _, data = RECORDINGS["claude"]
    for start in (10, len(data.splitlines()[0]) - 3):
        found = open_recording([data[start:]])
        assert found.format is Format.CLAUDE
        assert isinstance(next(found.entries), Unreadable)
        assert said(list(found.entries)) == said(read(data))


def test_named_format_wins() -> None:
    data = lines(CLAUDE)
    assert open_recording([data], Format.EVENTS).format is Format.EVENTS
    assert all(isinstance(each, Unreadable) for each in read(data, Format.EVENTS))
    assert read(lines([{"x": 1}]), Format.OPENAI) == [Unreadable("line 1", "is no message: no role")]


def test_long_first_line_is_read_as_a_document_message_by_message() -> None:
    filler = {"role": "user", "content": "x" * 2_000_000}
    found = open_recording(cut(json.dumps({"messages": [filler, *MESSAGES] * 9}).encode(), 65536))
    entries = list(found.entries)
    assert found.format is Format.OPENAI
    assert entries[-1].at == f"message {9 * (1 + len(MESSAGES))}"


def test_line_longer_than_what_is_looked_at_first_is_waited_for() -> None:
    pasted = {"type": "user", "uuid": "1", "message": {"content": "x" * 3_000_000}}
    found = open_recording(cut(lines([pasted, *CLAUDE]), 65536))
    assert found.format is Format.CLAUDE
    assert said(list(found.entries))[1:] == CONVERSATION


@given(st.binary(max_size=200) | st.lists(st.sampled_from([b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b" ", b"1", b'"role"', b'"messages"', b'"event"', b'"type"', b'"user"'])).map(b"".join), st.sampled_from([None, *Format]))  # fmt: skip
def test_whatever_the_bytes_are_they_are_read_or_refused(data: bytes, format: Format | None) -> None:
    try:
        entries = read(data, format)
    except UnknownFormat:
        return
    assert all(each.at for each in entries)
    assert entries == read(data, format, step=1)
