"""Recordings that are broken, cut off or of no format that is known: told, and as much read as can be."""

from __future__ import annotations

import json

import pytest
from cli.recordings_read import CONVERSATION, cut, read, said
from cli.transcript_texts import CLAUDE, MESSAGES, RECORDINGS, lines
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.transcripts import (
    Format,
    Unreadable,
)
from trio_exthost.cli.transcripts_json import MOST_BYTES, MOST_LEVELS, NotJson, decode
from trio_exthost.cli.transcripts_lines import Line, split_lines
from trio_exthost.cli.transcripts_open import UnknownFormat, open_recording

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
