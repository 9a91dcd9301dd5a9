"""How a column takes orders: one line in on stdin, one JSON object out on stdout; it works only while it owes an answer.

| order | what is done | answer |
|---|---|---|
| `start N` | N extensions are started and ready | `ns` (one number), `bytes` (growth of anonymous memory, for each extension) |
| `stop N` | all are stopped, no process is left | `ns` (one number) |
| `burst K` | K events in windows, until the last echo | `ns` (one number), `cpu_ns` |
| a row, K | K operations, after some that do not count | `ns` (K numbers), `cpu_ns` (all K together) |

`cpu_ns` is the processor time of the column's own process, all threads, user and system; its extensions are not in it.
Garbage collection is on, as it is in use. Between two orders a column waits for its stdin as it waits for everything else.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Protocol

import trio

clock = time.perf_counter_ns

Operation = Callable[[], Awaitable[int]]
"""Does it once and returns the nanoseconds that count; what it must wait for afterwards is not among them."""


class Column(Protocol):
    """What is measured."""

    @property
    def operations(self) -> Mapping[str, Operation]:
        """By row."""

    def prepare(self, n: int) -> None:
        """Do what does not count before a start of N."""

    async def start(self, n: int) -> None:
        """Start N extensions and wait until all are ready."""

    async def stop(self) -> None:
        """Stop them and wait until no process is left."""

    async def burst(self, events: int) -> None:
        """Emit so many events, in windows (`payloads`), and wait for every echo."""


def anonymous_bytes() -> int:
    """Memory of this process that no file backs (0 where the system does not tell)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


async def obey(column: Column, order: str, number: int) -> dict[str, object]:
    """Carry out one order."""
    if order == "start":
        column.prepare(number)
        before, begun = anonymous_bytes(), clock()
        await column.start(number)
        took = clock() - begun
        return {"ns": [took], "bytes": (anonymous_bytes() - before) // number}
    if order == "stop":
        begun = clock()
        await column.stop()
        return {"ns": [clock() - begun]}
    if order == "burst":
        busy, begun = time.process_time_ns(), clock()
        await column.burst(number)
        return {"ns": [clock() - begun], "cpu_ns": time.process_time_ns() - busy}
    operation = column.operations[order]
    for _ in range(warm_up(number)):
        await operation()
    busy = time.process_time_ns()
    took_each = [await operation() for _ in range(number)]
    return {"ns": took_each, "cpu_ns": time.process_time_ns() - busy}


def warm_up(number: int) -> int:
    """Operations that do not count: while another column was measured, the caches were its."""
    return max(2, number // 5)


async def _serve(column: Column, readable: Callable[[], Awaitable[object]]) -> None:
    waiting, is_started = b"", False
    try:
        while True:
            await readable()
            got = os.read(0, 65536)
            if not got:
                return
            *lines, waiting = (waiting + got).split(b"\n")
            for line in lines:
                order, _, number = line.decode().partition(" ")
                is_started = is_started or order == "start"
                answer = await obey(column, order, int(number))
                is_started = is_started and order != "stop"
                os.write(1, json.dumps(answer).encode() + b"\n")
    finally:
        if is_started:  # what was started is stopped here, in the task that started it, also after an error
            await column.stop()


def serve_trio(column: Column) -> None:
    """Take orders under trio until stdin ends."""

    async def readable() -> None:
        await trio.lowlevel.wait_readable(0)

    trio.run(_serve, column, readable)


def serve_asyncio(column: Column) -> None:
    """Take orders under asyncio until stdin ends."""

    async def readable() -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(0, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(0)

    asyncio.run(_serve(column, readable))


def serve_blocking(column: Column) -> None:
    """Take orders without a loop: nothing that is awaited ever waits."""

    async def readable() -> None:
        """`os.read` blocks."""

    coroutine: Coroutine[object, object, None] = _serve(column, readable)
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError(f"{type(column).__name__} waited for a loop; it must block")
