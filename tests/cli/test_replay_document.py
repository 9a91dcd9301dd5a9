"""One JSON document of any size: the same items however it is cut, what is broken costs little, memory stays bounded."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from cli.transcript_texts import MESSAGES
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.transcripts_document import DocumentBegin, Fault, Piece, split_items
from trio_exthost.cli.transcripts_lines import split_lines
from trio_exthost.cli.transcripts_open import open_recording

BEGIN = DocumentBegin.BEGIN
NO_LIST = Fault('is an object without a list under "messages"')
ENDS = Fault("ends in the middle of the document")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("messages"), inner, max_size=4),
    max_leaves=12,
)


def cut(data: bytes, step: int) -> Iterator[bytes]:
    return (data[start : start + step] for start in range(0, len(data), step))


def items(data: bytes, step: int = 0, most: int = 10_000) -> list[Piece]:
    return list(split_items(cut(data, step or len(data) or 1), most))


def missing(what: str) -> Fault:
    return Fault(f"is no JSON document: {what} is missing")


@given(
    st.lists(JSON),
    st.integers(1, 40),
    st.sampled_from([None, 0, 3]),
    st.booleans(),
    st.dictionaries(st.text(), JSON, max_size=3),
    st.booleans(),
)
def test_items_are_those_of_the_list(
    wanted: list[Any], step: int, indent: int | None, is_ascii: bool, others: dict[str, Any], in_object: bool
) -> None:
    others.pop("messages", None)
    document = {**others, "messages": wanted, "last": others} if in_object else wanted
    pieces = items(json.dumps(document, indent=indent, ensure_ascii=is_ascii).encode(), step)
    assert pieces[0] is BEGIN
    assert [json.loads(piece) for piece in pieces[1:] if isinstance(piece, bytes)] == wanted
    assert len(pieces) == 1 + len(wanted)


@given(st.lists(st.sampled_from([b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b" ", b"12", b"nul", b'"messages"', b'"a"', b"\xff"])).map(b"".join), st.integers(1, 9), st.integers(1, 12))  # fmt: skip
def test_pieces_do_not_depend_on_how_the_file_was_cut(data: bytes, step: int, most: int) -> None:
    assert items(data, step, most) == items(data, 0, most)
    assert all(len(piece) <= most for piece in items(data, step, most) if isinstance(piece, bytes))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("[1, [2, [3]], {}]", [BEGIN, b"1", b"[2, [3]]", b"{}"]),
        ("[]", [BEGIN]),
        ("[1][2]", [BEGIN, b"1", BEGIN, b"2"]),
        ('{"messages": [1], "messages": [2]}', [BEGIN, b"1", b"2"]),
        (r'["a\\", "]\"[", 3]', [BEGIN, rb'"a\\"', rb'"]\"["', b"3"]),
        ("[1 2]", [BEGIN, b"1", missing("a comma or the end of the list"), b"2"]),
        ("[1, }, 2]", [BEGIN, b"1", missing("a message"), missing("a message"), b"2"]),
        (
            "[1 : 2]",
            [BEGIN, b"1", missing("a comma or the end of the list"), missing("a comma or the end of the list"), b"2"],
        ),
        ('{"a": 1}', [BEGIN, NO_LIST]),
        ("{}", [BEGIN, NO_LIST]),
        ('{"messages": "[1]"}', [BEGIN, NO_LIST]),
        ('{"a" 1, "messages" [2]}', [BEGIN, missing("a colon"), missing("a colon"), b"2"]),
        ('{7: 1, "messages": [2]}', [BEGIN, *[missing("a key")] * 4, b"2"]),
        ('{"a": , "messages": [2]}', [BEGIN, missing("a value"), b"2"]),
        ('{"a", "messages": [2]}', [BEGIN, missing("a colon"), b"2"]),
        ('{"a"}[2]', [BEGIN, missing("a colon"), BEGIN, b"2"]),
        ('{"a": 1 "messages": [2]}', [BEGIN, missing("a comma or the end of the object"), b"2"]),
        ('{"a": 1 {"b": 2}, "messages": [2]}', [BEGIN, missing("a comma or the end of the object"), b"2"]),
        ('x "y" [1]', [missing("a list or an object"), missing("a list or an object"), BEGIN, b"1"]),
        ("[1, {", [BEGIN, b"1", ENDS]),
        ('[1, "a', [BEGIN, b"1", ENDS]),
        ("[1, 2", [BEGIN, b"1", b"2", ENDS]),
        ('{"messages": [1]', [BEGIN, b"1", ENDS]),
        ("7", [missing("a list or an object")]),
    ],
)
def test_documents_good_and_broken(text: str, pieces: list[Piece]) -> None:
    assert items(text.encode()) == pieces


def test_item_over_the_limit_is_told_and_the_next_is_read() -> None:
    text = json.dumps(["a" * 8, {"b": "c" * 50}, ["d"], 123456789012]).encode()
    for step in (1, 5, 0):
        assert items(text, step, most=10) == [
            BEGIN,
            b'"aaaaaaaa"',
            Fault("is longer than 10 bytes"),
            b'["d"]',
            Fault("is longer than 10 bytes"),
        ]


def test_item_that_is_broken_inside_costs_that_item_only() -> None:
    entries = list(
        open_recording(
            [b'[\n{"role": "user", "content": "a"},\n{"role" "user"},\n{"role": "user", "content": "b"}]']
        ).entries
    )
    assert [type(each).__name__ for each in entries] == ["ConversationBegin", "UserText", "Unreadable", "UserText"]
    assert [each.at for each in entries[1:]] == ["message 1", "message 2", "message 3"]


# --- memory ------------------------------------------------------------------------------------------------------------

SIZE = 24 * 1024 * 1024
BOUND = 5 * 1024 * 1024
"""Much less than the file; the head that is looked at first is 1 MiB, and copied."""


MESSAGE = json.dumps({**MESSAGES[2], "content": 'a "quoted" text\n' * 100}).encode()


def large(before: bytes, between: bytes, after: bytes) -> Iterator[bytes]:
    """A recording of so many bytes that is never there as a whole."""
    yield before + MESSAGE
    done = 0
    chunk = (between + MESSAGE) * 30
    while done < SIZE:
        yield chunk
        done += len(chunk)
    yield after


@pytest.mark.parametrize(
    "parts",
    [
        (b"[", b",", b"]"),
        (b'{"id": 1, "messages": [', b",\n", b"]}"),
        (b'[{"messages": [', b']},\n{"messages": [', b"]}]"),
        (b"", b"\n", b"\n"),
    ],
    ids=["list", "object", "list of objects", "lines"],
)
def test_memory_does_not_grow_with_the_file(parts: tuple[bytes, bytes, bytes]) -> None:
    tracemalloc.start()
    try:
        entries = open_recording(large(*parts)).entries
        calls = sum(type(each).__name__ == "ProposedCall" for each in entries)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert calls * len(MESSAGE) > SIZE * 0.95
    assert peak < BOUND


def test_memory_of_one_endless_value_is_bounded() -> None:
    tracemalloc.start()
    try:
        endless = [b'["', *[b"a" * 65536] * 400, b'", 1]']
        assert items_of(endless) == [BEGIN, Fault("is longer than 1000000 bytes"), b"1"]
        assert len(list(split_lines([b"a" * 65536] * 400, 1_000_000))) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < BOUND


def items_of(chunks: list[bytes]) -> list[Piece]:
    return list(split_items(chunks, 1_000_000))
