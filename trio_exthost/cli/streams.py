"""Where the command writes: a reader that has gone away is one exception of ours, whoever wrote."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


class ReaderGone(Exception):
    """Nobody reads what we write (`exthost list | head -1`). Not an OSError: libraries have their own ideas about those."""


class _Guarded:
    """A text stream that raises `ReaderGone` for a broken pipe; all else is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError as exc:
            raise ReaderGone from exc

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError as exc:
            raise ReaderGone from exc


@contextmanager
def guarded() -> Iterator[None]:
    """Within, `sys.stdout` and `sys.stderr` take any text and raise `ReaderGone`; a closed one swallows what is written.

    A closed descriptor is opened on nothing at all, and stays so: else the next pipe of an extension would get its number,
    and whatever is printed would go there.
    """
    before = sys.stdout, sys.stderr
    for number in range(3):
        _open_if_closed(number)
    sys.stdout, sys.stderr = (
        cast("TextIO", _Guarded(_taking_any_text(stream, number)))
        for number, stream in ((1, before[0]), (2, before[1]))
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, as those below it are open


def _taking_any_text(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a Latin-1 terminal is no reason to fail
    return stream


def drop_output() -> None:
    """Send what is still buffered nowhere: the interpreter's own flush at its end would complain about it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (ReaderGone, OSError):
            os.dup2(nowhere, number)
    os.close(nowhere)
