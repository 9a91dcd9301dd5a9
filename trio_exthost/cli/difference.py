"""Two long texts side by side: what is shown is where they differ, with a little of what is around it."""

from __future__ import annotations

from itertools import takewhile
from operator import eq

CONTEXT = 16
"""Characters shown before and behind the difference."""
_DOTS = "..."
LEAST = 2 * len(_DOTS) + CONTEXT + 1


def around(before: str, after: str, most: int = 60) -> tuple[str, str]:
    """Both texts, each cut to at most `most` characters around their first difference; whole where they fit.

    Different texts stay different: the first character that differs is always in what is shown. `...` stands for what is
    left out.

    Args:
      before: Any text.
      after: Any text.
      most: Characters, at least `LEAST`.
    """
    if len(before) <= most and len(after) <= most:
        return before, after
    begin = _common(before, after)
    end = _common(before[begin:][::-1], after[begin:][::-1])
    start = begin - CONTEXT if begin > CONTEXT + len(_DOTS) else 0
    return _cut(before, start, len(before) - end, most), _cut(after, start, len(after) - end, most)


def _common(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _cut(text: str, start: int, end: int, most: int) -> str:
    """`text` from `start` to a little behind `end`, with dots for what is missing; at most `most` characters."""
    head = _DOTS if start else ""
    stop = end + CONTEXT if end + CONTEXT + len(_DOTS) < len(text) else len(text)
    if len(head) + stop - start + (len(_DOTS) if stop < len(text) else 0) > most:
        stop = start + most - len(head) - len(_DOTS)
    return head + text[start:stop] + (_DOTS if stop < len(text) else "")
