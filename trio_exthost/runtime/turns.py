"""What one extension stores counts in the order of its frames, though each batch waits for the disk in a task of its own."""

from __future__ import annotations

import attrs
import trio


@attrs.frozen(eq=False)
class Turn:
    """The place of one batch among those of its extension in one space."""

    _before: trio.Event | None
    _passed: trio.Event = attrs.field(factory=trio.Event)

    async def wait(self) -> None:
        """Until the batch before has its place in the store's order, or will never have one."""
        if self._before is not None:
            await self._before.wait()

    def end(self) -> None:
        """The next one may go on. Idempotent; whoever has taken a turn ends it, whatever happens."""
        self._passed.set()


class Turns:
    """The turns of one instance."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._last: dict[str, trio.Event] = {}

    def take(self, space: str) -> Turn:
        """The next turn in this space: after all that were taken before it."""
        turn = Turn(self._last.get(space))
        self._last[space] = turn._passed  # noqa: SLF001 - its own class
        return turn
