"""The committer: what waits to be stored goes to the disk as one group, then counts, then whoever waits for it is woken.

The disk is written in a worker thread. What a group brings counts on trio's thread, all of it at once and in the order in
which it was asked for, so nobody sees a state that the disk does not have.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Protocol, TypeVar

import attrs
import trio

from trio_exthost.errors import ClosedError, StateError, StoreFailed
from trio_exthost.state.branches import Operation
from trio_exthost.state.committed import Committed
from trio_exthost.state.session_state import Outcome, SessionState
from trio_exthost.state.tree import Position

T = TypeVar("T")
MAX_GROUP = 256
"""Operations of one transaction."""
MAX_WAITING = 4096
"""Operations that wait."""


class InThread(Protocol):
    """Runs what blocks where it holds up nobody."""

    async def __call__(self, function: Callable[[], T]) -> T:
        """Run it, and wait for it.

        Raises:
          StateError: It failed, in whatever way.
        """


@attrs.define(eq=False)
class _Waiting:
    operation: Operation
    on_stored: Callable[[Outcome], None]
    on_settled: Callable[[], None]
    settled: trio.Event = attrs.field(factory=trio.Event)
    outcome: Outcome | None = None

    def settle(self, outcome: Outcome | None) -> None:
        """It is stored, or never will be."""
        self.outcome = outcome
        if outcome is not None and not isinstance(outcome, StateError):
            self.on_stored(outcome)
        self.on_settled()
        self.settled.set()


def _nothing() -> None:
    """Nobody wants to know."""


class Committer:
    """The one writer of a session's state. `run` is its task; whoever made it closes it."""

    def __init__(self, state: SessionState, in_thread: InThread) -> None:
        """Write this state; `in_thread` runs what blocks, one at a time."""
        self.state: SessionState = state
        self._in_thread = in_thread
        self._waiting: list[_Waiting] = []
        self._is_closing = False
        self._changed = trio.Event()
        self._ended = trio.Event()

    async def submit(
        self,
        operation: Operation,
        on_stored: Callable[[Outcome], None] = lambda _outcome: None,
        on_queued: Callable[[], None] = _nothing,
        on_settled: Callable[[], None] = _nothing,
    ) -> Committed | Position:
        """Have something stored, and wait until it is.

        If this raises `trio.Cancelled`, it is withdrawn where it was not begun to be written; else it goes on, and counts.

        Args:
          operation: What.
          on_stored: Called once it is stored, before anything that was asked for later counts; not where it was refused.
          on_queued: Called at once, when whatever is asked for from then on counts later.
          on_settled: Called once, after `on_queued` was: it is stored, refused or withdrawn. That may be long after its
            caller was cancelled.

        Raises:
          StateError: It was refused, or could not be stored; nothing of it counts.
          ClosedError: The session has ended.
        """
        if self._is_closing:
            raise ClosedError("the session has ended; nothing more is stored")
        if len(self._waiting) >= MAX_WAITING:
            raise StoreFailed(f"{MAX_WAITING} batches wait to be stored already", code="resource_limit")
        waiting = _Waiting(operation, on_stored, on_settled)
        self._waiting.append(waiting)
        on_queued()
        self._poke()
        try:
            await waiting.settled.wait()
        except trio.Cancelled:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                waiting.settle(None)
            raise
        assert waiting.outcome is not None
        if isinstance(waiting.outcome, StateError):
            raise waiting.outcome
        return waiting.outcome

    def _poke(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def run(self) -> None:
        """Write until it is closed. Shielded: what was begun is finished, also where everything around is cancelled."""
        with trio.CancelScope(shield=True):  # noqa: ASYNC912 - it waits where there is nothing to write
            try:
                while self._waiting or not self._is_closing:
                    if not self._waiting:
                        await self._changed.wait()
                        continue
                    # No name here: it would hold the last group, and who waited for it, until the next one comes.
                    await self._write(self._next_group())
            finally:
                self._ended.set()

    def _next_group(self) -> list[_Waiting]:
        group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
        return group

    async def _write(self, group: list[_Waiting]) -> None:
        operations = [each.operation for each in group]
        try:
            written = await self._in_thread(lambda: self.state.write(operations))
        except StateError as exc:  # whoever waits is told, and the next group tried
            for waiting in group:
                waiting.settle(copy.copy(exc))
            return
        self.state.publish(written)
        for waiting, outcome in zip(group, written.outcomes, strict=True):
            waiting.settle(outcome)

    async def aclose(self) -> None:
        """Write what waits, then close the store. Shielded; the disk decides how long it takes. Idempotent."""
        with trio.CancelScope(shield=True):
            self._is_closing = True
            self._poke()
            await self._ended.wait()
            await self._in_thread(self.state.close)
