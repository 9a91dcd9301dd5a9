"""A recording line by line: each line bounded, what cannot be read told and left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from trio_exthost.cli.transcripts import Unreadable
from trio_exthost.cli.transcripts_json import MOST_BYTES, NotJson, decode


@attrs.frozen
class Line:
    """A line that is not blank."""

    number: int
    """From 1; blank lines count."""
    data: bytes | None
    """Without the space around it; None for a line that is too long."""


def split_lines(chunks: Iterable[bytes], most: int = MOST_BYTES) -> Iterator[Line]:
    """The lines of a file. A line ends at a line feed and nowhere else.

    Memory: `most` bytes and one chunk.
    """
    number, line, is_long = 1, bytearray(), False
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield from _line(number, line, chunk[start:end], most, is_long=is_long)
            number, start, is_long = number + 1, end + 1, False
            line.clear()
        is_long = is_long or len(line) + len(chunk) - start > most
        if is_long:
            line.clear()
        else:
            line += chunk[start:]
    yield from _line(number, line, b"", most, is_long=is_long)


def _line(number: int, begun: bytearray, rest: bytes, most: int, *, is_long: bool) -> Iterator[Line]:
    if is_long or len(begun) + len(rest) > most:
        yield Line(number, None)
    elif data := (bytes(begun) + rest).strip():
        yield Line(number, data)


@attrs.frozen
class Value:
    """What stands in one line."""

    at: str
    value: Any


def read_values(chunks: Iterable[bytes]) -> Iterator[Value | Unreadable]:
    """The JSON value of each line, in order."""
    for line in split_lines(chunks):
        at = f"line {line.number}"
        if line.data is None:
            yield Unreadable(at, f"is longer than {MOST_BYTES} bytes")
            continue
        try:
            yield Value(at, decode(line.data))
        except NotJson as exc:
            yield Unreadable(at, str(exc))
