"""The moment in which no run of a session is open.

What is to happen then happens in the very step in which the last run ends: an agent that opens its next run at once would
never let a task see the moment in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session


class Boundary:
    """Who waits for the moment, in the order in which they came."""

    def __init__(self, session: Session) -> None:
        """Nobody waits."""
        self._session = session
        self._waiting: dict[trio.Event, Callable[[], None]] = {}

    async def cross(self, act: Callable[[], None], *, at_once: bool) -> None:
        """Call `act` once no run is open, in the step in which that comes to be.

        If this raises `trio.Cancelled` while it waits, `act` was not called.

        Args:
          act: Is synchronous, and raises nothing but bugs.
          at_once: Call it without looking at runs.
        """
        await trio.lowlevel.checkpoint()
        if at_once or not self._session.runs:
            act()
            return
        crossed = trio.Event()
        self._waiting[crossed] = act
        try:
            await crossed.wait()
        finally:
            self._waiting.pop(crossed, None)

    def scope_ended(self) -> None:
        """A run or a request has ended."""
        while self._waiting and not self._session.runs:
            crossed, act = next(iter(self._waiting.items()))
            del self._waiting[crossed]
            crossed.set()
            act()
