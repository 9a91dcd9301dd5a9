"""What a person should know of an instance although it goes on: calls that were overdue, and what was not done for it.

It stands in its row, so that whoever asks later finds it where the diagnostics have long been pushed out by others.
"""

from __future__ import annotations

import attrs
import trio

KEPT = 20
"""Warnings of one instance that are kept; of more, there is a number."""


@attrs.define(eq=False)
class Notices:
    """Of one instance, from its start to its end. Mutable, for the trio thread."""

    overdue_calls: int = 0
    """Calls that got no answer in time."""
    last_overdue: str = ""
    """The last of them, and how long it was waited for."""
    _silent_since: float | None = None
    _warnings: dict[str, None] = attrs.field(factory=dict)
    _more: int = 0

    def warn(self, message: str) -> None:
        """Keep this; the same words twice are kept once."""
        if message in self._warnings:
            return
        if len(self._warnings) < KEPT:
            self._warnings[message] = None
        else:
            self._more += 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is kept, oldest first, and how many there were beyond."""
        more = (f"and {self._more} more, which are in its log",) if self._more else ()
        return (*self._warnings, *more)

    def call_overdue(self, message: str, waited_s: float, *, is_first: bool) -> None:
        """A call got no answer in time.

        Args:
          message: Which, and how long it was waited for.
          waited_s: The same in seconds.
          is_first: Whether it answered what was asked before.
        """
        self.overdue_calls += 1
        self.last_overdue = message
        if is_first or self._silent_since is None:
            self._silent_since = trio.current_time() - waited_s

    def unusable_answer(self) -> None:
        """It has answered, though with nothing that can be used."""
        self._silent_since = None

    def silence(self) -> str:
        """That it answers nothing, in words, where its last calls are all overdue; the caller knows that they are."""
        if self._silent_since is None:
            return ""
        return f"not responding for {trio.current_time() - self._silent_since:.1f} s: {self.last_overdue}"
