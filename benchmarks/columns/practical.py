"""The practical floor: a lean trio loop of one pump and one flusher, without validation, limits, deadlines for events or life cycle.

What one trio thread can do with N extensions when it does nothing else. It encodes and decodes with msgspec, as the host
does, and keeps a deadline for each call.

    python -m columns.practical FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import collections
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import trio

from columns import payloads
from columns.worker import Operation, clock, serve_trio

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
CALL_S = 5


class Pump:
    """One epoll object for every extension's stdout; one task waits for it and drains it."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.feeds: dict[int, Callable[[bytes], None]] = {}

    def add(self, fd: int, feed: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        self.feeds[fd] = feed
        self.epoll.register(fd, select.EPOLLIN)

    async def run(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self.epoll.fileno())
            while ready := self.epoll.poll(0, 256):
                for fd, _ in ready:
                    if data := os.read(fd, 65536):
                        self.feeds[fd](data)
                    else:
                        self.epoll.unregister(fd)


class Flusher:
    """Wakes one tick after the first post and writes what every dirty outbox holds."""

    def __init__(self) -> None:
        self.dirty: list[Extension] = []
        self.sleeper: trio.lowlevel.Task | None = None
        self.is_woken = False

    def mark(self, outbox: Extension) -> None:
        self.dirty.append(outbox)
        if self.sleeper is not None and not self.is_woken:
            self.is_woken = True
            trio.lowlevel.reschedule(self.sleeper)

    async def run(self) -> None:
        me = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self.sleeper = None
            return trio.lowlevel.Abort.SUCCEEDED

        while True:
            if not self.dirty:
                self.sleeper = me
                await trio.lowlevel.wait_task_rescheduled(abort)
                self.sleeper, self.is_woken = None, False
            dirty, self.dirty = self.dirty, []
            for outbox in dirty:
                outbox.flush()


class Extension:
    """A process, what waits for it, and who waits for its answers."""

    def __init__(self, argv: list[str], column: PracticalColumn, nursery: trio.Nursery) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin and self.process.stdout  # noqa: PT018 - both are pipes
        self.fd, self.out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.fd, False)
        self.column, self.nursery = column, nursery
        self.waiting: collections.deque[bytes] = collections.deque()
        self.rest, self.partial = b"", b""
        self.is_dirty = self.is_draining = False
        self.pending: dict[str, trio.MemorySendChannel[dict[str, Any]]] = {}
        self.ready = trio.Event()
        column.pump.add(self.out, self.feed)

    def post(self, frame: bytes) -> None:
        self.waiting.append(frame)
        if not self.is_dirty:
            self.is_dirty = True
            self.column.flusher.mark(self)

    def flush(self) -> None:
        self.is_dirty = False
        if self.is_draining:
            return
        frames = self.rest + b"".join(self.waiting)
        self.waiting.clear()
        if not frames:
            return
        try:
            sent = os.write(self.fd, frames)
        except BlockingIOError:
            sent = 0
        self.rest = frames[sent:]
        if self.rest:
            self.is_draining = True
            self.nursery.start_soon(self.drain)

    async def drain(self) -> None:
        while self.rest:
            await trio.lowlevel.wait_writable(self.fd)
            self.rest = self.rest[os.write(self.fd, self.rest) :]
        self.is_draining = False
        self.flush()

    def feed(self, data: bytes) -> None:
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            frame = decode(line)
            kind = frame["type"]
            if kind == "notify":
                self.column.echoed()
            elif kind == "ready":
                self.ready.set()
            elif (waiter := self.pending.pop(frame.get("id", ""), None)) is not None:
                waiter.send_nowait(frame)

    async def call(self, frame: dict[str, Any]) -> dict[str, Any]:
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        self.pending[frame["id"]] = send
        self.post(encode(frame) + b"\n")
        self.flush()
        with trio.fail_after(CALL_S):
            return await receive.receive()


class PracticalColumn:
    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.extensions: list[Extension] = []
        self.sequence = 0
        self.left, self.floor, self.reached = 0, 0, trio.Event()

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {
            "event": self.event,
            "emit": self.emit,
            "emit_none": self.emit_none,
            "intercept": self.intercept,
            "command": self.command,
            "tool": self.tool,
        }

    def prepare(self, n: int) -> None:
        """Nothing comes before."""

    async def start(self, n: int) -> None:
        self.pump, self.flusher = Pump(), Flusher()
        self.manager = trio.open_nursery()
        self.nursery = await self.manager.__aenter__()
        self.nursery.start_soon(self.pump.run)
        self.nursery.start_soon(self.flusher.run)
        self.extensions = [Extension([*self.argv, payloads.suffix(number)], self, self.nursery) for number in range(n)]
        self.subscribers = {"turn_start": self.extensions}
        for extension in self.extensions:
            await extension.ready.wait()

    async def stop(self) -> None:
        for extension in self.extensions:
            extension.post(encode(payloads.SHUTDOWN) + b"\n")
            extension.flush()
        for extension in self.extensions:
            extension.process.wait()
        self.nursery.cancel_scope.cancel("measured")
        await self.manager.__aexit__(None, None, None)
        for extension in self.extensions:
            extension.process.stdin.close()  # type: ignore[union-attr]
            extension.process.stdout.close()  # type: ignore[union-attr]
        self.pump.epoll.close()

    def echoed(self) -> None:
        self.left -= 1
        if self.left == self.floor:
            self.reached.set()

    async def wait_left(self, at_most: int) -> None:
        if self.left > at_most:
            self.floor, self.reached = at_most, trio.Event()
            await self.reached.wait()

    def send(self, name: str) -> None:
        self.sequence += 1
        subscribers = self.subscribers.get(name)
        if not subscribers:
            return
        frame = encode(payloads.event(self.sequence, name)) + b"\n"
        for extension in subscribers:
            extension.post(frame)

    async def event(self) -> int:
        self.left = len(self.extensions)
        begun = clock()
        self.send("turn_start")
        await self.wait_left(0)
        return clock() - begun

    async def emit(self) -> int:
        self.left = len(self.extensions)
        begun = clock()
        self.send("turn_start")
        took = clock() - begun
        await self.wait_left(0)
        return took

    async def emit_none(self) -> int:
        begun = clock()
        self.send("turn_end")
        return clock() - begun

    def next_id(self) -> str:
        self.sequence += 1
        return str(self.sequence)

    async def intercept(self) -> int:
        begun = clock()
        for extension in self.extensions:
            if (await extension.call(payloads.question(self.next_id()))).get("block"):
                raise RuntimeError("an echo blocked")
        return clock() - begun

    async def command(self) -> int:
        begun = clock()
        await self.extensions[0].call(payloads.command(self.next_id()))
        return clock() - begun

    async def tool(self) -> int:
        begun = clock()
        await self.extensions[0].call(payloads.tool(self.next_id()))
        return clock() - begun

    async def burst(self, events: int) -> None:
        n, self.left = len(self.extensions), 0
        for begun in range(0, events, payloads.BURST_AT_ONCE):
            count = min(payloads.BURST_AT_ONCE, events - begun)
            self.left += count * n
            for _ in range(count):
                self.send("turn_start")
            await self.wait_left(payloads.BURST_BEHIND * n)
        await self.wait_left(0)


if __name__ == "__main__":
    serve_trio(PracticalColumn(sys.argv[2:]))
