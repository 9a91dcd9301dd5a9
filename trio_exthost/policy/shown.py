"""What may be shown of somebody's values: secrets masked, cut to a bounded size, nothing that steers a terminal.

What is shown is searched for secrets first and cut afterwards, so that no cut can hide from a pattern the half of a secret
that it leaves.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trio_exthost.mask import DEFAULT_MASK

SHOWN = 200
"""Characters that are kept of one text."""
MASKED = "***"
"""Stands for what a pattern of the mask hides."""

_SCANNED = 2048
"""Characters of one text that are searched for secrets; what is behind them is never shown."""
_WITHHELD = 512
"""Characters before that end which are not shown either: a secret that begins there might not be seen as one."""
_BUDGET = 32 * 1024
"""Characters that are searched in all: bounds the time, and the size of what is kept."""
_ITEM = 32
"""What an item of a list or an object takes of that, besides its characters."""
_ITEMS = 20
"""Items of one list or object that are kept."""
_LEVELS = 8
"""Levels of one value that are kept."""
_KEY = 64
"""Characters of one key that are kept."""
_KEY_SCANNED = 256
"""Characters of one key that are searched for the name of a secret."""
_LEAD = 40
"""Characters before the first difference of two long texts that are kept."""
_DIGITS = 20
"""Digits of a whole number that are kept."""
_SLACK = 40
"""Room for quotes and for the note of a text that is cut already."""
_CUT = "..."

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")
_NOT_WORD = re.compile(r"[^\w-]+")


def plain(text: str) -> str:
    """The text in one line, with whatever is not printable as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def cut(text: str, most: int = SHOWN) -> str:
    """At most `most` characters of it, and how many there are if that is not all."""
    return text if len(text) <= most else f"{text[:most]}{_CUT} ({len(text)} characters)"


def json_text(value: Any, room: int = SHOWN) -> str:
    """The value as JSON in a line without control characters, cut to about `room` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return plain(text if len(text) <= room + _SLACK else f"{text[:room]}{_CUT}")


def path_text(path: Sequence[str | int]) -> str:
    """The path as one would write it: `files[3].name`, `env["a b"]`."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            words += f".{step}" if words else step
        else:
            words += f"[{json_text(step)}]"
    return words


def masked_text(text: str, mask: Sequence[str] | None = None) -> str:
    """A reason or message as it may be shown: secrets replaced, cut to `SHOWN` characters.

    Args:
      text: Anybody's words.
      mask: Regular expressions of what is hidden; `DEFAULT_MASK` if not given, nothing if empty.
    """
    if not text:
        return ""
    head = _masked_head(text, _compiled(mask))
    if len(text) <= _SCANNED:
        return cut(head)
    return f"{head[:SHOWN]}{_CUT} ({len(text)} characters)"


def _masked_head(text: str, patterns: tuple[re.Pattern[str], ...]) -> str:
    """As much of the text as may be shown, masked but not yet cut to size."""
    head = text[:_SCANNED]
    for pattern in patterns:
        head = pattern.sub(MASKED, head)
    return head if len(text) <= _SCANNED else head[:-_WITHHELD]


def _compiled(mask: Sequence[str] | None) -> tuple[re.Pattern[str], ...]:
    return _compile(DEFAULT_MASK if mask is None else tuple(mask))


@functools.lru_cache(maxsize=16)
def _compile(mask: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, mask))


class Keeper:
    """What is kept of the values of one diff: it knows the mask, and what may still be spent."""

    def __init__(self, mask: Sequence[str] | None = None) -> None:
        """Nothing is spent yet."""
        self.is_whole: bool = True
        """Whether nothing was masked or cut; for the caller to set again."""
        self._patterns = _compiled(mask)
        self._budget = _BUDGET
        self._hidden: dict[object, bool] = {}

    def hides(self, key: object) -> bool:
        """Whether a pattern is found in the key, as it stands or as a name without spaces and dots.

        Once the budget is used up every key counts as one that hides.
        """
        if not self._patterns:
            return False
        if key not in self._hidden:
            name = str(key)[:_KEY_SCANNED]
            self._budget -= len(name)
            self._hidden[key] = self._budget < 0 or any(
                each.search(name) or each.search(_NOT_WORD.sub("_", name)) for each in self._patterns
            )
        return self._hidden[key]

    def value(self, value: Any, levels: int = _LEVELS) -> Any:
        """A JSON value, bounded in items, levels and characters."""
        if isinstance(value, str):
            return self._cut(self._head(value), len(value))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value)
        if not isinstance(value, Mapping | list | tuple):
            return self._cut(self._head(repr(value)), -1)
        if not levels or self._budget <= 0:
            self.is_whole = self.is_whole and not value
            return _CUT if value else {} if isinstance(value, Mapping) else []
        return self._object(value, levels - 1) if isinstance(value, Mapping) else self._list(value, levels - 1)

    def _number(self, value: int | float) -> Any:  # noqa: PYI041 - they are told apart
        if isinstance(value, float) and not math.isfinite(value):
            self.is_whole = False
            return str(value)
        if isinstance(value, int) and abs(value) >= 10**_DIGITS:
            self.is_whole = False
            return f"a number of more than {_DIGITS} digits"
        return value

    def _object(self, value: Mapping[Any, Any], levels: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key in list(value)[:_ITEMS]:
            self._budget -= _ITEM
            hides = self.hides(key)
            self.is_whole = self.is_whole and not hides
            kept[self.key(key)] = MASKED if hides else self.value(value[key], levels)
        if len(value) > _ITEMS:
            self.is_whole = False
            kept[_CUT] = f"{len(value) - _ITEMS} more"
        return kept

    def _list(self, value: Sequence[Any], levels: int) -> list[Any]:
        self._budget -= _ITEM * min(len(value), _ITEMS)
        kept = [self.value(item, levels) for item in value[:_ITEMS]]
        if len(value) > _ITEMS:
            self.is_whole = False
            kept.append(f"{_CUT} {len(value) - _ITEMS} more")
        return kept

    def key(self, key: object) -> str:
        """A key: a name, so never masked."""
        text = str(key)
        self.is_whole = self.is_whole and text is key and len(text) <= _KEY
        return text if len(text) <= _KEY else f"{text[:_KEY]}{_CUT}"

    def _head(self, text: str) -> str:
        """What may be shown of a text, masked; nothing once the budget is used up."""
        if self._budget <= 0:
            self.is_whole = self.is_whole and not text
            return ""
        self._budget -= min(len(text), _SCANNED)
        head = _masked_head(text, self._patterns)
        self.is_whole = self.is_whole and head == text
        return head

    def _cut(self, head: str, length: int, start: int = 0) -> str:
        """`SHOWN` characters of a masked head, from `start` on; `length` is the whole text's, -1 for what is no text."""
        shown = head[start : start + SHOWN]
        is_cut = start > 0 or len(shown) < len(head) or (not head and length > 0)
        if length < 0 or is_cut:
            self.is_whole = False
        more = f"{_CUT} ({length} characters)" if is_cut or length > _SCANNED else ""
        return f"{_CUT if start else ''}{shown}{more}"

    def texts(self, before: str, after: str) -> list[str]:
        """Two texts that differ: of long ones, the part around their first difference."""
        one, other = self._head(before), self._head(after)
        short = min(len(one), len(other))
        first = next((at for at in range(short) if one[at] != other[at]), short)
        start = first - _LEAD if first > SHOWN // 2 and max(len(one), len(other)) > SHOWN else 0
        return [self._cut(one, len(before), start), self._cut(other, len(after), start)]
