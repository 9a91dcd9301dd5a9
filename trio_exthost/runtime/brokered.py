"""What one invocation has written so far, until it has ended well or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from trio_exthost.runtime.turns import Turn, Turns


@attrs.define(eq=False)
class Brokered:
    """An invocation, as long as it may use capabilities, and what it has written so far."""

    operations: int = 0
    pending: list[Mapping[str, Any]] = attrs.field(factory=list)
    """Durable actions, as if they stood in its answer, in front of the answer's own."""
    memory: dict[str, Any] = attrs.field(factory=dict)
    """Changes of the memory: key to encoded value, or to that it is deleted."""
    clears_memory: bool = False
    turn: Turn | None = None
    """Of what its answer stores."""
    on_end: Callable[[], None] | None = None
    """Called when what it stores is stored, or never will be."""
    is_queued: bool = False
    """Whether what its answer stores is on its way to the disk: it ends with that, whoever waits for it."""

    def take_turn(self, turns: Turns) -> Turn:
        """Its answer is there, and stores something. The invocation has not ended."""
        self.turn = turns.take("session")
        return self.turn

    def queue(self) -> None:
        """What its answer stores is on its way: `end` comes from there."""
        self.is_queued = True

    def leave(self) -> None:
        """Nobody waits for it any more."""
        if not self.is_queued:
            self.end()

    def end(self) -> None:
        """What it stores is stored, or never will be."""
        if self.turn is not None:
            self.turn.end()
        if self.on_end is not None:
            self.on_end()
