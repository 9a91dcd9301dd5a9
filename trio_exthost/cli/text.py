"""Text for a terminal: nothing an extension writes can move the cursor, change a colour or reorder what is read."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
WIDTH = 80


def printable(text: object) -> str:
    """The text with every control, format (bidi), surrogate and unassigned character shown as an escape."""
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in str(text))


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def printable_lines(text: object) -> list[str]:
    """As `printable`, line by line."""
    return [printable(line) for line in str(text).replace("\r\n", "\n").split("\n")]


def console(*, stderr: bool = False) -> Console:
    """Where to write: at most 80 columns unless the terminal is wider, no colour when it is none."""
    from rich.console import Console  # noqa: PLC0415 - 50 ms that --json never needs

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def write_json(value: Any) -> None:
    """One JSON document, and nothing else, on stdout."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
