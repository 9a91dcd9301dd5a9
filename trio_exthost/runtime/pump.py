"""The pump: one task reads what every extension writes.

A reader task per extension costs a wake-up per extension and event; with one kernel object for all, one wake-up serves
whoever is ready. Fairness: each ready pipe is read once, at most 64 KiB, in turn; after `slice_s` of handling the agent's
own tasks get theirs. (64 KiB each from 100 flooders of small frames, without the slice: the agent waited 196 ms.)

A pipe that is paused or ended is unregistered, since a masked one reports its hang-up for ever.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Protocol

import trio

from trio_exthost.runtime.poller import Poller

READ_BYTES = 64 * 1024
"""What one read takes at most: the capacity of a pipe."""


class Sink(Protocol):
    """Where the bytes of a pipe go."""

    def take(self, data: bytes, until: float) -> bool:
        """Take bytes, and handle them until `time.perf_counter()` passes `until`; True when something is left."""

    def handle(self, until: float) -> bool:
        """Go on with what is left, in the same way."""

    def ended(self) -> None:
        """No more bytes will come (end of file or a read error)."""


class InputPipe:
    """The reading end of one pipe: owns its descriptor, registered with the pump while it is open and not paused."""

    __slots__ = (
        "_is_left",
        "_pump",
        "_sink",
        "budget_bytes",
        "budget_s",
        "busy_s",
        "fd",
        "has_ended",
        "is_paused",
        "is_queued",
        "on_budget",
        "received_bytes",
    )

    def __init__(self, pump: Pump, fd: int, sink: Sink) -> None:
        """Take over `fd`, make it non-blocking and begin to read it."""
        os.set_blocking(fd, False)
        self._pump = pump
        self._sink = sink
        self.fd: int = fd
        self.has_ended: bool = False
        self.is_paused: bool = False
        self.is_queued: bool = False
        self.received_bytes: int = 0
        self.busy_s: float = 0.0
        """Real time that reading and handling have taken so far."""
        self.budget_bytes: float = math.inf
        self.budget_s: float = math.inf
        """`on_budget` is called with `time.perf_counter()` once `received_bytes` or `busy_s` is more than its budget."""
        self.on_budget: Callable[[float], None] = _nothing
        self._is_left = False
        pump.watch(self)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is still ours."""
        return self.fd >= 0

    def turn(self, until: float) -> bool:
        """One turn of the pump: what is left over first, else one read. True when it wants another turn."""
        if self._is_left:
            self._is_left = self._sink.handle(until)
            if self._is_left:
                return True
        if not self.is_paused:
            self._read_once(until)
        return self._is_left

    def _read_once(self, until: float) -> bool:
        """Take and handle what one read gives; False when there is nothing now, or never again."""
        if self.fd < 0 or self.has_ended:
            return False
        try:
            data = os.read(self.fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            # EIO and its like: nothing more can be read; the sink learns it as an end of file.
            data = b""
        if not data:
            self._end()
            return False
        self.received_bytes += len(data)
        self._is_left = self._sink.take(data, until)
        return True

    def drain(self, at_most: int, seconds: float) -> bool:
        """Read and handle, on the spot, what is in the pipe already: at most `at_most` bytes, for at most `seconds`.

        This is what makes a reply that is already in the pipe beat the deadline that is about to decide.

        Returns:
          True when bytes that were taken are left to be handled (a flood): the caller gives it turns until they are not.
        """
        begun = time.perf_counter()
        until = begun + seconds
        self._is_left = self._sink.handle(until)
        while at_most > 0 and not self._is_left:
            before = self.received_bytes
            if not self._read_once(until):
                break
            at_most -= self.received_bytes - before
        self.worked(begun, time.perf_counter())
        return self._is_left

    def worked(self, begun: float, now: float) -> None:
        """A turn, or several, took from `begun` to `now` (`time.perf_counter`)."""
        self.busy_s += now - begun
        if self.busy_s > self.budget_s or self.received_bytes > self.budget_bytes:
            self.on_budget(now)

    def pause(self) -> None:
        """Read no more until `resume`; what was taken already is still handled."""
        if not self.is_paused:
            self.is_paused = True
            if self.fd >= 0 and not self.has_ended:
                self._pump.unwatch(self)

    def resume(self) -> None:
        """Read again, and take up what was left over."""
        if self.is_paused:
            self.is_paused = False
            if self.fd >= 0 and not self.has_ended:
                self._pump.watch(self)

    def _end(self) -> None:
        self.has_ended = True
        if not self.is_paused:
            self._pump.unwatch(self)
        self._sink.ended()

    def close(self) -> None:
        """Give the descriptor back; idempotent. Unregistered first: a closed number in epoll can name another pipe."""
        if self.fd < 0:
            return
        if not self.has_ended and not self.is_paused:
            self._pump.unwatch(self)
        fd, self.fd = self.fd, -1
        trio.lowlevel.notify_closing(fd)
        os.close(fd)


def _nothing(_now: float) -> None:
    """A pipe without a budget."""


class Pump:
    """Reads every `InputPipe` of a host in one task."""

    def __init__(self, slice_s: float) -> None:
        """Handle input for at most `slice_s` seconds between two turns of the agent's tasks."""
        self._poller = Poller()
        self._pipes: dict[int, InputPipe] = {}
        self._queue: list[InputPipe] = []  # who waits for a turn with what is left over
        self._slice_s = slice_s
        self._is_over = False

    def watch(self, pipe: InputPipe) -> None:
        """Begin to read a pipe."""
        self._pipes[pipe.fd] = pipe
        if not self._is_over:
            self._poller.register(pipe.fd)

    def unwatch(self, pipe: InputPipe) -> None:
        """Stop reading a pipe; to be called while its descriptor is open."""
        del self._pipes[pipe.fd]
        if not self._is_over:
            self._poller.unregister(pipe.fd)

    @property
    def watched(self) -> int:
        """How many pipes are read."""
        return len(self._pipes)

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Read until cancelled. Ctrl-C surfaces in the agent's code, not in here."""
        try:
            while True:
                if self._queue:
                    await trio.lowlevel.checkpoint()
                else:
                    await trio.lowlevel.wait_readable(self._poller.fileno())
                until = time.perf_counter() + self._slice_s
                while self._turns(until):
                    pass
        finally:
            self._is_over = True  # should a bug end it early, pipes are still closed in order
            self._poller.close()

    def _turns(self, until: float) -> bool:
        """Give a turn to each pipe that waits for one or is readable; False when nobody is, or the slice is used up."""
        waiting = self._queue
        for fd in self._poller.ready(256):
            pipe = self._pipes.get(fd)
            if pipe is not None and not pipe.is_queued:
                waiting.append(pipe)
        left: list[InputPipe] = []
        self._queue = left
        begun = time.perf_counter()
        for index, pipe in enumerate(waiting):
            pipe.is_queued = False
            # Closed by the handler of another pipe in this very pass: its number may be somebody else's by now.
            if pipe.fd >= 0 and pipe.turn(until):
                pipe.is_queued = True
                left.append(pipe)
            now = time.perf_counter()
            pipe.busy_s += now - begun  # as `worked`, written out: this runs once per pipe and event
            if pipe.busy_s > pipe.budget_s or pipe.received_bytes > pipe.budget_bytes:
                pipe.on_budget(now)
            if now >= until:
                rest = waiting[index + 1 :]
                for each in rest:
                    each.is_queued = True
                self._queue = rest + left
                return False
            begun = now
        return bool(waiting)
