"""Text for a terminal: nothing an extension writes can move the cursor, change a colour or reorder what is read."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
WIDTH = 80
"""Columns, where the output is no terminal."""
_LEAST_WIDTH = 40
_MOST_INDENT = 15
_LESS_INDENT = 6


def printable(text: object) -> str:
    """The text with every control, format (bidi), surrogate and unassigned character shown as an escape."""
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in str(text))


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def printable_lines(text: object) -> list[str]:
    """As `printable`, line by line."""
    return [printable(line) for line in str(text).replace("\r\n", "\n").split("\n")]


def short(text: object, most: int = 60) -> str:
    """At most `most` characters of it, in one line."""
    words = " ".join(str(text).split())
    return words if len(words) <= most else f"{words[: most - 3]}..."


def cells(text: str) -> int:
    """The columns it takes: two for a wide character, none for one that joins the one before it."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)


def hanging(first: str, text: str, width: int) -> list[str]:
    """The text, made printable, in lines of at most `width` columns, the later ones below where it began.

    Behind a long `first` they begin further left: else little room is left for them. A word that is longer than a line
    stays whole, so that a path or a command can be copied.
    """
    used = cells(first)
    pad = " " * (used if used <= _MOST_INDENT else _LESS_INDENT)
    lines = [first]
    is_begun = False
    for word in printable(text).split(" "):
        size = cells(word)
        if is_begun and used + 1 + size > width:
            lines.append(pad)
            is_begun, used = False, len(pad)
        lines[-1] += f" {word}" if is_begun else word
        used += size + is_begun
        is_begun = True
    return [line.rstrip() for line in lines]


class Output:
    """Lines of text on stdout or stderr: wrapped to the terminal, to 80 columns where there is none; escaped always.

    Coloured on a terminal only, and not where NO_COLOR is set and not empty.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        """Write to `sys.stderr` or `sys.stdout` as they are now."""
        self._stream = sys.stderr if stderr else sys.stdout
        self._console: Console | None = None

    def line(self, text: object, *, first: str = "", style: str = "") -> None:
        """A line, wrapped with its later parts below the end of `first`.

        Raises:
          ReaderGone: Nobody reads it any more.
          OSError: It cannot be written.
        """
        for each in hanging(first, str(text), columns(self._stream.isatty())):
            self._print(each, style)

    def lines(self, text: object, *, first: str = "", style: str = "") -> None:
        """As `line`, for a text of several lines."""
        for each in str(text).replace("\r\n", "\n").split("\n"):
            self.line(each, first=first, style=style)

    def _print(self, line: str, style: str) -> None:
        if self._console is None:
            self._console = _console(self._stream)
        self._console.print(line, style=style or None, soft_wrap=True)


def _console(stream: Any) -> Console:
    from rich.console import Console  # noqa: PLC0415 - 50 ms that --json never needs

    is_terminal = stream.isatty()
    # Neither FORCE_COLOR nor a CI variable counts: what is no terminal gets plain text.
    return Console(
        file=stream,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal and not os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def columns(is_terminal: bool) -> int:
    """How wide a line may be."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if is_terminal else WIDTH


def print_error(message: str, *, label: str = "Error: ") -> None:
    """A message on stderr, escaped and wrapped, without rich: something may be wrong with more than the call."""
    first = label
    for line in message.replace("\r\n", "\n").split("\n"):
        text = line.lstrip(" ")
        for each in hanging(first + " " * (len(line) - len(text)), text, columns(sys.stderr.isatty())):
            sys.stderr.write(f"{each}\n")
        first = " " * len(label)
    sys.stderr.flush()


def write_json(value: Any) -> None:
    """One JSON document, and nothing else, on stdout: ASCII, so that no text in it reaches a terminal as anything else."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False, ensure_ascii=True, default=_plain)
    sys.stdout.write("\n")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
