"""What one writes by hand with asyncio: a reader task for each extension, `write` and `drain`, futures for the answers.

JSON by msgspec, as in the other columns, so that the difference is not the codec's.

    python -m columns.asyncio_host FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from columns import payloads
from columns.worker import Operation, clock, serve_asyncio

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode
CALL_S = 5


class Extension:
    """A process and its reader task."""

    def __init__(self, process: asyncio.subprocess.Process, column: AsyncioColumn) -> None:
        assert process.stdin and process.stdout  # noqa: PT018 - both are pipes
        self.process, self.column = process, column
        self.stdin, self.stdout = process.stdin, process.stdout
        self.pending: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.ready = asyncio.Event()
        self.reader = asyncio.create_task(self.read())

    async def read(self) -> None:
        async for line in self.stdout:
            frame = decode(line)
            kind = frame["type"]
            if kind == "notify":
                self.column.echoed()
            elif kind == "ready":
                self.ready.set()
            elif (waiter := self.pending.pop(frame.get("id", ""), None)) is not None:
                waiter.set_result(frame)

    async def call(self, frame: dict[str, Any]) -> dict[str, Any]:
        waiter: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.pending[frame["id"]] = waiter
        async with asyncio.timeout(CALL_S):
            self.stdin.write(encode(frame) + b"\n")
            await self.stdin.drain()
            return await waiter


class AsyncioColumn:
    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.extensions: list[Extension] = []
        self.sequence = 0
        self.left, self.floor, self.reached = 0, 0, asyncio.Event()

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

    async def spawn(self, number: int) -> Extension:
        pipe = asyncio.subprocess.PIPE
        argv = [*self.argv, payloads.suffix(number)]
        extension = Extension(await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe), self)
        await extension.ready.wait()
        return extension

    async def start(self, n: int) -> None:
        self.extensions = await asyncio.gather(*map(self.spawn, range(n)))
        self.subscribers = {"turn_start": self.extensions}

    async def stop(self) -> None:
        for extension in self.extensions:
            extension.stdin.write(encode(payloads.SHUTDOWN) + b"\n")
            extension.stdin.close()
        await asyncio.gather(*(extension.process.wait() for extension in self.extensions))
        await asyncio.gather(*(extension.reader for extension in self.extensions))

    def echoed(self) -> None:
        self.left -= 1
        if self.left == self.floor:
            self.reached.set()

    async def wait_left(self, at_most: int) -> None:
        if self.left > at_most:
            self.floor, self.reached = at_most, asyncio.Event()
            await self.reached.wait()

    async def send(self, name: str) -> None:
        self.sequence += 1
        subscribers = self.subscribers.get(name)
        if not subscribers:
            return
        frame = encode(payloads.event(self.sequence, name)) + b"\n"
        for extension in subscribers:
            extension.stdin.write(frame)
            await extension.stdin.drain()

    async def event(self) -> int:
        self.left = len(self.extensions)
        begun = clock()
        await self.send("turn_start")
        await self.wait_left(0)
        return clock() - begun

    async def emit(self) -> int:
        self.left = len(self.extensions)
        begun = clock()
        await self.send("turn_start")
        took = clock() - begun
        await self.wait_left(0)
        return took

    async def emit_none(self) -> int:
        begun = clock()
        await self.send("turn_end")
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
                await self.send("turn_start")
            await self.wait_left(payloads.BURST_BEHIND * n)
        await self.wait_left(0)


if __name__ == "__main__":
    serve_asyncio(AsyncioColumn(sys.argv[2:]))
