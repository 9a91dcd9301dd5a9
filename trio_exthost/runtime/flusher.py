"""The flusher: one task writes every dirty outbox, once a tick, and runs what was put off to the next tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import trio


class Flushable(Protocol):
    """What can be marked."""

    def flush(self) -> None:
        """Write what waits, without blocking; never raises for a fault of the peer."""


class Flusher:
    """Wakes at the next tick after the first mark and flushes each marked outbox once."""

    def __init__(self) -> None:
        self._dirty: list[Flushable] = []
        self._soon: dict[Callable[[], None], None] = {}
        self._task: trio.lowlevel.Task | None = None

    def mark(self, outbox: Flushable) -> None:
        """Have `outbox` flushed at the next tick. Only from the host's thread: the entry points check it."""
        self._dirty.append(outbox)
        if self._task is not None:
            self._wake()

    def mark_all(self, outboxes: Sequence[Flushable]) -> None:
        """As `mark`, for each of them."""
        self._dirty += outboxes
        if self._task is not None:
            self._wake()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` at the next tick, once however often it is asked for."""
        self._soon[callback] = None
        if self._task is not None:
            self._wake()

    def _wake(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Flush until cancelled: one pass a tick, even for an outbox that is marked again meanwhile."""
        while True:
            if self._dirty or self._soon:
                await trio.lowlevel.checkpoint()
            else:
                self._task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
            dirty, self._dirty = self._dirty, []
            for outbox in dirty:
                outbox.flush()
            soon, self._soon = self._soon, {}
            for callback in soon:
                callback()
