"""Bytes to lines."""

from __future__ import annotations

from itertools import zip_longest

import strategies
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.wire import LineSplitter, LineTooLong


def drain(splitter: LineSplitter) -> list[bytes | LineTooLong]:
    found = []
    while (line := splitter.next_line()) is not None:
        found.append(line)
    return found


def split(pieces: list[bytes], max_line: int = 100, stop_line: int = 1000) -> list[bytes | LineTooLong | None]:
    """What comes out of these pieces, drained after each, and what is left at the end."""
    splitter = LineSplitter(max_line, stop_line)
    found: list[bytes | LineTooLong | None] = []
    for piece in pieces:
        splitter.feed(piece)
        found += drain(splitter)
    return [*found, splitter.end()]


def model(data: bytes, max_line: int, stop_line: int) -> list[bytes | LineTooLong | None]:
    """The same from the whole stream, the plain way."""
    found: list[bytes | LineTooLong | None] = []
    *lines, rest = data.split(b"\n")
    for raw, whole in [*((line, True) for line in lines), (rest, False)]:
        content = raw.removesuffix(b"\r")
        if len(content) > max_line:
            head = raw[: min(64, max_line + 1)]
            found.append(LineTooLong(max_line + 1, head, False))
            if len(raw) > max(stop_line, max_line):
                found.append(LineTooLong(max(stop_line, max_line) + 1, head, True))
            rest = rest if whole else b""
        elif whole and content.strip(b"\r"):
            found.append(content)
    return [*found, rest.rstrip(b"\r") or None]


@given(strategies.streams, strategies.cuts, st.integers(1, 80), st.integers(1, 250))
def test_any_split_of_the_bytes_gives_the_same_lines(
    data: bytes, places: list[int], max_line: int, stop_line: int
) -> None:
    expected = model(data, max_line, stop_line)
    assert split([data], max_line, stop_line) == expected
    assert split(strategies.cut(data, places), max_line, stop_line) == expected
    assert split([bytes([byte]) for byte in data], max_line, stop_line) == expected


@given(st.text(alphabet="a\r\n", max_size=14), strategies.cuts, st.integers(0, 4), st.integers(0, 6))
def test_any_split_near_the_bounds_gives_the_same_lines(
    data: str, places: list[int], max_line: int, stop_line: int
) -> None:
    raw = data.encode()
    assert split(strategies.cut(raw, places), max_line, stop_line) == model(raw, max_line, stop_line)


@given(st.text(alphabet="ab\r\n", max_size=30), strategies.cuts, st.lists(st.integers(0, 3)), st.integers(1, 9))
def test_lines_that_are_not_taken_at_once_keep_their_order(
    data: str, places: list[int], taken: list[int], max_line: int
) -> None:
    raw = data.encode()
    splitter = LineSplitter(max_line, 100)
    found: list[bytes | LineTooLong | None] = []
    for piece, count in zip_longest(strategies.cut(raw, places), taken):
        if piece is not None:
            splitter.feed(piece)
        lines = [splitter.next_line() for _ in range(count or 0)]
        found += [line for line in lines if line is not None]
    assert [*found, *drain(splitter), splitter.end()] == model(raw, max_line, 100)


def test_characters_that_others_take_for_line_ends_do_not_split() -> None:
    line = '{"a":"\u2028\u2029\x85\x0b\x0c\x1c"}\r x'.encode()
    assert split([line + b"\n"]) == [line, None]


def test_crlf_and_blank_lines_are_no_lines() -> None:
    assert split([b"\r\n\n\na\r\n\r\r\n\nb\r\r\n"]) == [b"a", b"b\r", None]


def test_a_line_of_other_blanks_is_a_line() -> None:
    assert split([b" \t\r\n", b"\x0b\n"]) == [b" \t", b"\x0b", None]


def test_whatever_stands_around_a_line_feed_stays() -> None:
    for around in (b"XX", b"  ", b"\\", b"\x00"):
        assert split([around + b"\n" + around + b"\n"]) == [around, around, None]


def test_a_run_of_blank_lines_is_one_step() -> None:
    splitter = LineSplitter(10, 10)
    splitter.feed(b"\n\r\n\r\r\n" * 10_000 + b"a\n")
    assert splitter.next_line() == b"a"


def test_a_blank_line_over_the_bound_is_too_long_wherever_it_stands() -> None:
    for pieces in ([b"\n\r\r\r\n"], [b"\n", b"\r\r\r\n"]):
        assert split(pieces, 1) == [LineTooLong(2, b"\r\r", False), None]


def test_a_line_of_the_bound_passes_and_one_byte_more_does_not() -> None:
    for end in (b"\n", b"\r\n"):
        for size in (7, 8):
            assert split([b"x" * size + end], 8) == [b"x" * size, None]
        assert split([b"x" * 9 + end + b"y\n"], 8) == [LineTooLong(9, b"x" * 9, False), b"y", None]


def test_a_line_over_the_bound_is_reported_before_it_ends() -> None:
    splitter = LineSplitter(8, 20)
    splitter.feed(b"x" * 9)
    assert drain(splitter) == [LineTooLong(9, b"x" * 9, False)]
    splitter.feed(b"x" * 11)
    assert drain(splitter) == []
    splitter.feed(b"x")
    assert drain(splitter) == [LineTooLong(21, b"x" * 9, True)]
    splitter.feed(b"x" * 100 + b"\nnext\n")
    assert drain(splitter) == [b"next"]


def test_a_thrown_away_line_occupies_no_memory() -> None:
    splitter = LineSplitter(100, 10_000_000)
    for _ in range(50):
        splitter.feed(b"x" * 65536)
        drain(splitter)
        assert len(splitter._buffer) == 0
    assert splitter.end() is None


def test_a_long_line_in_small_pieces_is_searched_once() -> None:
    splitter = LineSplitter(1 << 20, 1 << 20)
    for _ in range(1000):
        splitter.feed(b"x" * 100)
        assert splitter.next_line() is None
        assert splitter._scanned == len(splitter._buffer)
    splitter.feed(b"\n")
    assert splitter.next_line() == b"x" * 100_000


def test_a_cr_at_the_bound_waits_for_its_line_feed() -> None:
    assert split([b"xxxx\r", b"\n"], 4) == [b"xxxx", None]
    assert split([b"xxxx\r", b"x\n"], 4) == [LineTooLong(5, b"xxxx\r", False), None]


def test_the_unterminated_rest_is_given_once_at_the_end() -> None:
    splitter = LineSplitter(100, 100)
    splitter.feed(b"a\nrest\r")
    assert drain(splitter) == [b"a"]
    assert splitter.end() == b"rest"
    assert splitter.end() is None


def test_whole_lines_can_be_taken_after_the_end() -> None:
    splitter = LineSplitter(10, 100)
    splitter.feed(b"a\nb\nrest")
    assert splitter.next_line() == b"a"
    assert splitter.end() == b"rest"
    assert drain(splitter) == [b"b"]
    assert splitter.end() is None


def test_the_end_inside_a_thrown_away_line_gives_nothing_of_it() -> None:
    splitter = LineSplitter(2, 100)
    splitter.feed(b"xxxx")
    assert splitter.next_line() == LineTooLong(3, b"xxx", False)
    assert splitter.end() is None
    assert drain(splitter) == []


@given(strategies.streams, st.integers(0, 5), st.integers(4, 80))
def test_when_the_end_comes_changes_no_whole_line(data: bytes, taken: int, max_line: int) -> None:
    splitter = LineSplitter(max_line, 10_000)
    splitter.feed(data + b"\ntail")
    early = [line for line in (splitter.next_line() for _ in range(taken)) if line is not None]
    assert splitter.end() == b"tail"
    assert [*early, *drain(splitter), b"tail"] == split([data + b"\ntail"], max_line, 10_000)


def test_a_line_that_is_thrown_away_is_as_long_as_it_is_where_its_end_comes_first() -> None:
    assert split([b"x" * 6, b"\nab\ncd\nef\n"], 4, 10) == [
        LineTooLong(5, b"xxxxx", stop=False),
        b"ab",
        b"cd",
        b"ef",
        None,
    ]
