"""One JSON document of any size, message by message: only the message that is being read is held.

A walk over the brackets finds where each item of the list ends; the caller decodes it. So what is broken inside an item
costs that item only.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator

import attrs

from trio_exthost.cli.transcripts_json import MOST_BYTES

KEY = "messages"
"""Under which an object holds its list."""

_QUOTED_KEY = f'"{KEY}"'.encode()
_SPACE = re.compile(rb"[ \t\r\n]*+")
# Possessive, so that a chunk is read once, whatever stands in it.
_OF_A_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OF_A_NEST = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_OF_A_SCALAR = re.compile(rb'[^ \t\r\n,:"\[\]{}]*+')
_OPENING = b"[{"
_CLOSING = b"]}"
_MARKS = b",:]}"


class DocumentBegin(enum.Enum):
    """A document begins: what follows are its items."""

    BEGIN = enum.auto()


@attrs.frozen
class Fault:
    """An item that is too long, or something around the items that cannot stand there."""

    why: str


Piece = bytes | DocumentBegin | Fault
"""An item as its bytes, or what there is to say between items."""


def split_items(chunks: Iterable[bytes], most: int = MOST_BYTES) -> Iterator[Piece]:
    """The items of a list, or of the list that an object holds under `messages`, in order.

    Several documents may follow one another. Of an item only brackets and quotes are looked at. However the file was cut
    into chunks, the pieces are the same. Memory: `most` bytes and one chunk.

    Args:
      chunks: The file, in pieces of any size.
      most: Bytes of one item; a longer one is a `Fault`.
    """
    splitter = _Splitter(most)
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.end()


class _Value:
    """A value in the middle of which the reading is; its first byte is in the next chunk that is taken."""

    def __init__(self, first: int, most: int, keep: bool) -> None:
        """Begin before its first byte.

        Args:
          first: That byte.
          most: Bytes that are kept.
          keep: Whether any are.
        """
        self._kind = first
        self._is_begun = False
        self._depth = 0
        self._in_string = self._is_escaped = False
        self._kept = bytearray()
        self._keeps = keep
        self._most = most
        self.is_too_long = False

    @property
    def data(self) -> bytes:
        """What was kept; all of it unless it is too long."""
        return bytes(self._kept)

    @property
    def is_scalar(self) -> bool:
        """Whether it needs no end of its own."""
        return self._kind not in _OPENING and self._kind != ord('"')

    def take(self, chunk: bytes, start: int) -> tuple[int, bool]:
        """Read on; up to where it went, and whether the value ends there."""
        end, is_done = self._walk(chunk, start)
        if self._keeps and not self.is_too_long:
            if len(self._kept) + end - start > self._most:
                self.is_too_long = True
                self._kept.clear()
            else:
                self._kept += chunk[start:end]
        return end, is_done

    def _walk(self, chunk: bytes, place: int) -> tuple[int, bool]:
        if self.is_scalar:
            place = _end_of(_OF_A_SCALAR, chunk, place)
            return place, place < len(chunk)
        if not self._is_begun:
            self._is_begun = True
            place = self._step(chunk[place], place)
        while place < len(chunk):
            place = self._within_string(chunk, place) if self._in_string else _end_of(_OF_A_NEST, chunk, place)
            if place < len(chunk):
                place = self._step(chunk[place], place)
            if not self._in_string and not self._depth:
                return place, True
        return place, False

    def _within_string(self, chunk: bytes, place: int) -> int:
        """To the quote that ends the string, or to the end of the chunk."""
        if self._is_escaped:
            self._is_escaped, place = False, place + 1
        place = _end_of(_OF_A_STRING, chunk, place)
        if chunk[place : place + 1] == b"\\":  # the last byte: what it escapes is in the next chunk
            self._is_escaped, place = True, place + 1
        return place

    def _step(self, byte: int, place: int) -> int:
        """Over a quote or a bracket."""
        if byte == ord('"'):
            self._in_string = not self._in_string
        else:
            self._depth += 1 if byte in _OPENING else -1
        return place + 1


def _end_of(pattern: re.Pattern[bytes], chunk: bytes, place: int) -> int:
    found = pattern.match(chunk, place)
    assert found is not None  # they match nothing, too
    return found.end()


class _At(enum.Enum):
    """What is expected next."""

    DOCUMENT = "a list or an object"
    KEY = "a key"
    COLON = "a colon"
    VALUE = "a value"
    AFTER_VALUE = "a comma or the end of the object"
    ITEM = "a message"
    AFTER_ITEM = "a comma or the end of the list"


_AFTER_SEPARATOR = {_At.AFTER_ITEM: _At.ITEM, _At.COLON: _At.VALUE, _At.AFTER_VALUE: _At.KEY}


class _Splitter:
    """In which part of a document the reading is, and in which value."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._at = _At.DOCUMENT
        self._value: _Value | None = None
        self._is_key_of_list = self._is_in_object = self._has_list = False

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """Take a chunk in: the items that end in it, and what is wrong in it."""
        place = 0
        while place < len(chunk):
            if self._value is None:
                place = _end_of(_SPACE, chunk, place)
                if place < len(chunk):
                    taken, pieces = self._next(chunk[place])
                    place += taken
                    yield from pieces
                continue
            place, is_done = self._value.take(chunk, place)
            if is_done:
                yield from self._ended(self._value)

    def end(self) -> Iterator[Piece]:
        """The file ends here."""
        if self._value is not None and self._value.is_scalar:
            yield from self._ended(self._value)
        if self._value is not None or self._at is not _At.DOCUMENT:
            yield Fault("ends in the middle of the document")

    def _next(self, byte: int) -> tuple[int, tuple[Piece, ...]]:
        """What one byte between values means; how many bytes that took, and what there is to say."""
        match self._at, chr(byte):
            case (_At.DOCUMENT, "[") | (_At.DOCUMENT, "{"):
                self._is_in_object, self._has_list = byte == ord("{"), False
                self._at = _At.KEY if self._is_in_object else _At.ITEM
                return 1, (DocumentBegin.BEGIN,)
            case (_At.COLON, ":"):
                self._at = _At.VALUE
            case (_At.VALUE, "[") if self._is_key_of_list:
                self._at, self._has_list = _At.ITEM, True
            case (_At.AFTER_VALUE, ","):
                self._at = _At.KEY
            case (_At.KEY, "}") | (_At.AFTER_VALUE, "}"):
                self._at = _At.DOCUMENT
                return 1, () if self._has_list else (Fault(f'is an object without a list under "{KEY}"'),)
            case (_At.AFTER_ITEM, ","):
                self._at = _At.ITEM
            case (_At.ITEM, "]") | (_At.AFTER_ITEM, "]"):
                self._at = _At.AFTER_VALUE if self._is_in_object else _At.DOCUMENT
            case _:
                return self._unexpected(byte) if self._is_out_of_place(byte) else self._begin(byte)
        return 1, ()

    def _is_out_of_place(self, byte: int) -> bool:
        if byte in _MARKS:
            return True
        return self._at not in (_At.ITEM, _At.VALUE) and not (self._at is _At.KEY and byte == ord('"'))

    def _unexpected(self, byte: int) -> tuple[int, tuple[Piece, ...]]:
        """What cannot stand here: one fault, and on from where it is likeliest to make sense."""
        fault = Fault(f"is no JSON document: {self._at.value} is missing")
        match self._at, chr(byte):
            case (_At.COLON | _At.VALUE, ","):
                self._at = _At.KEY
            case (_At.COLON | _At.VALUE, "}"):
                self._at = _At.DOCUMENT
            case _ if byte in _MARKS:
                """It is passed over."""
            case (_At.AFTER_ITEM | _At.COLON, _) | (_At.AFTER_VALUE, '"'):
                # Only what separates the two is missing.
                self._at = _AFTER_SEPARATOR[self._at]
                return 0, (fault,)
            case _:
                self._value = _Value(byte, 0, keep=False)
                return 0, (fault,)
        return 1, (fault,)

    def _begin(self, byte: int) -> tuple[int, tuple[Piece, ...]]:
        """A value begins here."""
        is_key = self._at is _At.KEY
        self._value = _Value(byte, len(_QUOTED_KEY) if is_key else self._most, keep=self._at is not _At.VALUE)
        return 0, ()

    def _ended(self, value: _Value) -> Iterator[Piece]:
        self._value = None
        match self._at:
            case _At.ITEM:
                self._at = _At.AFTER_ITEM
                yield Fault(f"is longer than {self._most} bytes") if value.is_too_long else value.data
            case _At.KEY if value.data or value.is_too_long:
                self._is_key_of_list = value.data == _QUOTED_KEY
                self._at = _At.COLON
            case _At.VALUE:
                self._at = _At.AFTER_VALUE
            case _:
                """It stood where no value can stand, and that was said."""
