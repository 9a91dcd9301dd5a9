"""The table that statistics are shown in: at most 80 columns, whatever the names and numbers are."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from trio_exthost.policy.shown import plain

WIDTH = 80
"""Columns of the widest line."""
_EXTENSION = 16
_POINT = 21
_NUMBERS = (6, 7, 7, 7, 5, 4)

Row = tuple[str, str, int, float, float, float, int, int]
"""Extension, what it was asked for, count, p50, p95 and maximum in seconds, time-outs, failures."""


def table(rows: Sequence[Row], missed: Sequence[tuple[str, int, int]]) -> str:
    """The rows under a head, then who missed events or has frames waiting (name, dropped, waiting)."""
    if not rows and not missed:
        return "nothing was asked of any extension"
    lines = []
    if rows:
        lines.append(_line("extension", "asked for", ["count", "p50", "p95", "max", "late", "fail"]))
    for extension, name, count, p50, p95, maximum, timeouts, failures in rows:
        times = [seconds_text(each) if maximum else "-" for each in (p50, p95, maximum)]
        lines.append(_line(extension, name, [count_text(count), *times, count_text(timeouts), count_text(failures)]))
    lines += [
        f"{fitted(extension, 2 * _EXTENSION).rstrip()}: {count_text(dropped)} events dropped, {count_text(waiting)} frames wait"
        for extension, dropped, waiting in missed
    ]
    return "\n".join(lines)


def _line(extension: str, name: str, numbers: Sequence[str]) -> str:
    columns = " ".join(f"{each:>{width}}" for each, width in zip(numbers, _NUMBERS, strict=True))
    return f"{fitted(extension, _EXTENSION)} {fitted(name, _POINT)} {columns}"


def fitted(text: str, width: int) -> str:
    """The text in exactly so many columns: escaped, and cut or padded; a wide character takes two."""
    text = plain(text)
    sizes = [_columns(char) for char in text]
    if sum(sizes) <= width:
        return text + " " * (width - sum(sizes))
    kept = sum(each <= width - 2 for each in accumulate(sizes))
    return f"{text[:kept]}..{' ' * (width - 2 - sum(sizes[:kept]))}"


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1


def seconds_text(seconds: float) -> str:
    """A duration in at most seven characters: `12 µs`, `1.23 ms`, `5.00 s`."""
    for unit, factor in (("µs", 1e6), ("ms", 1e3), ("s", 1.0)):
        number = seconds * factor
        if number < 999.5:
            return f"{number:.{0 if unit == 'µs' or number >= 99.95 else 1 if number >= 9.995 else 2}f} {unit}"
    return f"{count_text(round(seconds))} s"


def count_text(count: int) -> str:
    """A count in at most four characters up to ten million millions: `9999`, `12k`, `3M`."""
    for unit in ("", "k", "M", "G"):
        if count < (10_000 if not unit else 1000):
            return f"{count}{unit}"
        count //= 1000
    return f"{count}T" if count < 1000 else "999T"
