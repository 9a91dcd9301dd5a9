"""Bytes read as a row of choices: how a fuzzer's input becomes a plan, and a small change of it a small change of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """An input that is read from its front. One that has run out gives zeros, so any bytes are a whole plan."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self._place >= len(self._data)

    def byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1] if self._place <= len(self._data) else 0

    def below(self, most: int) -> int:
        """A number from 0 to most - 1; two bytes where one does not reach."""
        return (self.byte() if most <= 256 else self.byte() << 8 | self.byte()) % most

    def one_in(self, many: int) -> bool:
        return self.below(many) == many - 1

    def pick(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]

    def take(self, length: int) -> bytes:
        """As many bytes as are there, at most so many."""
        taken = self._data[self._place : self._place + length]
        self._place += length
        return taken

    def rest(self) -> bytes:
        return self.take(len(self._data))
