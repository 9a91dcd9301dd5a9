"""Which format a recording has, told from its first lines, and the entries of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from trio_exthost.cli.transcripts import Entry, Format
from trio_exthost.cli.transcripts_chat import read_chat_document, read_chat_lines
from trio_exthost.cli.transcripts_claude import read_claude
from trio_exthost.cli.transcripts_document import KEY
from trio_exthost.cli.transcripts_events import event_of, read_events
from trio_exthost.cli.transcripts_json import MOST_BYTES, NotJson, decode

HEAD_BYTES = 1024 * 1024
"""So much of a file is looked at to tell its format; more only where the first line is longer."""
HEAD_LINES = 1000
"""Lines of that which are looked at."""

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_OF_CLAUDE = frozenset({"message", "sessionId", "uuid", "leafUuid", "messageId"})
_BEGINS = (b"[", b"{")
_GOES_ON = (b"[", b"{", b",")
"""What the first line of a document that is written in several ends with; a line that was cut off seldom does."""


class UnknownFormat(ValueError):
    """It is not a recording, as far as its first lines tell."""


@attrs.frozen
class Recording:
    """A recording that is being read."""

    format: Format
    entries: Iterator[Entry]
    """What it holds, in order; read as it is asked for."""


def open_recording(chunks: Iterable[bytes], format: Format | None = None) -> Recording:
    """Look at the beginning, and read from there.

    Args:
      chunks: The file, in pieces of any size; consumed as entries are asked for.
      format: Whose it is; None to find out.

    Raises:
      UnknownFormat: It is empty, or in no format that is known. The message says what was seen.
    """
    pieces = iter(chunks)
    head = _head_of(pieces)
    if head.startswith(_UTF16_MARKS):
        raise UnknownFormat("is UTF-16, not UTF-8")
    if not head.strip():
        raise UnknownFormat("is empty")
    found, is_lines = _tell(head)
    if (found := format or found) is None:
        raise UnknownFormat(
            f"is in no format that is known: in its beginning is no event, no chat message and no line of {_CLAUDE_CODE}"
        )
    read = _READERS[found] if is_lines or found is not Format.OPENAI else read_chat_document
    return Recording(found, read(itertools.chain([head], pieces)))


_CLAUDE_CODE = "a Claude Code session"
_READERS: Mapping[Format, Callable[[Iterable[bytes]], Iterator[Entry]]] = MappingProxyType(
    {Format.EVENTS: read_events, Format.OPENAI: read_chat_lines, Format.CLAUDE: read_claude}
)


def _head_of(pieces: Iterator[bytes]) -> bytes:
    """The beginning of a file, without a byte order mark.

    It has a whole line in it, if one fits, unless it is plain that the first line is a document of messages.
    """
    head = bytearray()
    for piece in pieces:
        head += piece
        if len(head) < HEAD_BYTES:
            continue
        begin = head.lstrip(_UTF8_MARK + b" \t\r\n")
        # Within a text the quotes would be escaped: so this is a key.
        if b"\n" in begin or begin.startswith(b"[") or f'"{KEY}"'.encode() in begin or len(head) >= MOST_BYTES:
            break
    return bytes(head).removeprefix(_UTF8_MARK)


def _tell(head: bytes) -> tuple[Format | None, bool]:
    """The format, None where nothing tells; and whether the file is one of lines rather than one document.

    The first line of a document is no value by itself. Neither is that of a log that was cut off in front, so there a
    later line tells.
    """
    lines = [line for each in head.split(b"\n", HEAD_LINES)[:HEAD_LINES] if (line := each.strip())]
    first, is_lines = lines[0], False
    if not first.startswith(_BEGINS) or not first.endswith(_GOES_ON):
        for line in lines:
            try:
                value = decode(line)
            except NotJson:
                continue
            if (found := _format_of(value)) is not None:
                return found, True
            is_lines = is_lines or line is first
    return Format.OPENAI if first.startswith(_BEGINS) and not is_lines else None, is_lines


def _format_of(value: Any) -> Format | None:
    """The format in which this is a line; None where it says nothing."""
    if isinstance(value, list):
        return Format.OPENAI if value and _format_of(value[0]) is Format.OPENAI else None
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if event_of(value) is not None and (kind is None or str(kind).startswith("event")):
        return Format.EVENTS
    if isinstance(kind, str) and not _OF_CLAUDE.isdisjoint(value):
        return Format.CLAUDE
    is_chat = isinstance(value.get("role"), str) or isinstance(value.get(KEY), (list, str))
    return Format.OPENAI if is_chat else None
