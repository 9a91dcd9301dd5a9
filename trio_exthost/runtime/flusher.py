"""The flusher: one task writes every dirty outbox, once a tick, and runs what was put off to the next tick.

What is told to many is spread: noted in one place, whoever it is for, and dealt to the outboxes together with what else
was told in the same tick, before anything else is put into one of them or written. So telling costs the agent the same
for 1 subscriber as for 100, and a burst is dealt at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import trio

from trio_exthost.runtime.entry import Entry

SPREAD_FRAMES = 64
SPREAD_BYTES = 256 * 1024
"""What may be noted before it is dealt: the bounds of the outboxes count from then on."""


class Flushable(Protocol):
    """What can be marked."""

    def flush(self) -> None:
        """Write what waits, without blocking; never raises for a fault of the peer."""


class Dealt(Protocol):
    """What takes a share of what was told to many."""

    def post_dealt(self, entries: Sequence[Entry], size: int) -> None:
        """Queue these, which are `size` bytes, in order; never blocks or raises."""


class Receiver(Protocol):
    """Who has an outbox."""

    @property
    def outbox(self) -> Dealt:
        """Where it goes."""


class Flusher:
    """Wakes at the next tick after the first mark and flushes each marked outbox once."""

    def __init__(self) -> None:
        self.spread: list[tuple[Sequence[Receiver], list[Entry]]] = []
        """What was told to many and not dealt yet, in order: to whom, and what."""
        self._spread_frames = 0
        self._spread_bytes = 0
        self._is_dealing = False
        self._dirty: list[Flushable] = []
        self._soon: dict[Callable[[], None], None] = {}
        self._task: trio.lowlevel.Task | None = None

    def mark(self, outbox: Flushable) -> None:
        """Have `outbox` flushed at the next tick. Only from the host's thread: the entry points check it."""
        self._dirty.append(outbox)
        if self._task is not None:
            self._wake()

    @trio.lowlevel.enable_ki_protection
    def tell(self, receivers: Sequence[Receiver], entry: Entry) -> None:
        """Queue an entry for each of `receivers`, which are never changed, and have it written at the next tick.

        Never blocks. It is behind what was put into their outboxes before, and ahead of what comes after.
        """
        spread = self.spread
        if spread and spread[-1][0] is receivers:
            spread[-1][1].append(entry)
        else:
            spread.append((receivers, [entry]))
        self._spread_frames += 1
        self._spread_bytes += len(entry.data)
        if self._spread_frames >= SPREAD_FRAMES or self._spread_bytes > SPREAD_BYTES:
            self.deal()
        elif self._task is not None:
            self._wake()

    @trio.lowlevel.enable_ki_protection
    def deal(self) -> None:
        """Put what was told to many into each outbox it is for; nothing where there is none."""
        if not self.spread or self._is_dealing:
            return  # (the embedder, told of a dropped event, has told more: that comes after what is being dealt)
        spread, self.spread = self.spread, []
        self._spread_frames = self._spread_bytes = 0
        self._is_dealing = True
        try:
            for receivers, entries in spread:
                size = sum([len(entry.data) for entry in entries])
                for receiver in receivers:
                    receiver.outbox.post_dealt(entries, size)
        finally:
            self._is_dealing = False

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
            if self._dirty or self._soon or self.spread:
                await trio.lowlevel.checkpoint()
            else:
                self._task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
            self.deal()
            dirty, self._dirty = self._dirty, []
            for outbox in dirty:
                outbox.flush()
            soon, self._soon = self._soon, {}
            for callback in soon:
                callback()
