"""A mapping of which every version stays as it is: many branches share what they have in common.

A version is a base that is never touched again, and a small layer of what changed since. A change copies the layer
alone; when the layer has outgrown the square root of the base, both become a new base. So a change costs about the
square root of what is held, and a replay of any length, which is one draft, copies the base once.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Final, Generic, Literal, TypeVar

V = TypeVar("V")

_SMALL = 64
"""A layer of so few entries is copied faster than it is merged."""


class _Gone(enum.Enum):
    GONE = "gone"


_GONE: Final[Literal[_Gone.GONE]] = _Gone.GONE
"""Stands in a layer for a key of the base that was deleted."""


class Table(Mapping[str, V], Generic[V]):
    """Immutable. Iterates in the order in which keys were first set; a key that is set anew keeps its place.

    (One that was deleted and is set again has no certain place.)
    """

    __slots__ = ("_base", "_layer", "_length")

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        """Hold a copy of these."""
        self._base: dict[str, V] = dict(values or {})
        self._layer: dict[str, V | Literal[_Gone.GONE]] = {}
        self._length = len(self._base)

    def __getitem__(self, key: str) -> V:
        value = self._layer.get(key)
        if value is None:
            return self._base[key]
        if value is _GONE:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        layer, base = self._layer, self._base
        yield from (key for key in base if layer.get(key) is not _GONE)
        yield from (key for key, value in layer.items() if key not in base and value is not _GONE)

    def __len__(self) -> int:
        return self._length

    def draft(self) -> TableDraft[V]:
        """Begin a next version."""
        return TableDraft(self._base, self._layer, self._length)

    @classmethod
    def _of(cls, base: dict[str, V], layer: dict[str, V | Literal[_Gone.GONE]], length: int) -> Table[V]:
        made = cls()
        made._base, made._layer, made._length = base, layer, length
        return made


class TableDraft(Generic[V]):
    """The next version of a table, while it is made. Values must not be None."""

    __slots__ = ("_base", "_layer", "_length")

    def __init__(self, base: dict[str, V], layer: dict[str, V | Literal[_Gone.GONE]], length: int) -> None:
        """Begin with this version, which stays as it is."""
        self._base = base
        self._layer = layer.copy()
        self._length = length

    def __len__(self) -> int:
        return self._length

    def get(self, key: str) -> V | None:
        """What stands under the key, or None."""
        value = self._layer.get(key)
        if value is None:
            return self._base.get(key)
        return None if value is _GONE else value

    def set(self, key: str, value: V) -> None:
        """Put this under the key."""
        if self.get(key) is None:
            self._length += 1
        self._layer[key] = value

    def delete(self, key: str) -> None:
        """Take the key out; it must be there."""
        self._length -= 1
        if key in self._base:
            self._layer[key] = _GONE
        else:
            del self._layer[key]

    def finish(self) -> Table[V]:
        """The version as it stands. The draft must not be changed after it."""
        layer, base = self._layer, self._base
        if len(layer) <= _SMALL or len(layer) ** 2 <= len(base):
            return Table._of(base, layer, self._length)  # noqa: SLF001 - the two classes are one idea
        merged = base.copy()
        for key, value in layer.items():
            if value is _GONE:
                del merged[key]
            else:
                merged[key] = value
        return Table._of(merged, {}, self._length)  # noqa: SLF001 - as above
