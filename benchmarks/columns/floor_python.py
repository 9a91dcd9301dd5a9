"""The plain loop: one blocking loop over epoll in Python, one write a line, which counts lines and decodes nothing.

The floor itself where there is no compiler for `floor.c`; beside it otherwise, for what Python alone costs.

    python -m columns.floor_python FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from columns import payloads
from columns.worker import Operation, clock, serve_blocking


def line(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


class LoopColumn:
    def __init__(self, argv: list[str]) -> None:
        self.argv = argv
        self.sequence = 0

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {"event": self.event, "intercept": self.intercept, "command": self.command, "tool": self.tool}

    def prepare(self, n: int) -> None:
        """Nothing comes before."""

    async def start(self, n: int) -> None:
        pipe = subprocess.PIPE
        self.children = [
            subprocess.Popen([*self.argv, payloads.suffix(number)], stdin=pipe, stdout=pipe, bufsize=0)
            for number in range(n)
        ]
        self.inputs = [child.stdin.fileno() for child in self.children if child.stdin]
        self.outputs = [child.stdout.fileno() for child in self.children if child.stdout]
        self.epoll = select.epoll()
        for fd in self.outputs:
            self.epoll.register(fd, select.EPOLLIN)
            text = b""
            while b'"ready"' not in text:
                text += os.read(fd, 65536)

    async def stop(self) -> None:
        for fd in self.inputs:
            os.write(fd, line(payloads.SHUTDOWN))
        for child in self.children:
            child.wait()
            child.stdin.close()  # type: ignore[union-attr]
            child.stdout.close()  # type: ignore[union-attr]
        self.epoll.close()

    def wait(self, lines: int, at_most: int = 0) -> int:
        """Read until at most so many lines are outstanding; returns how many are."""
        while lines > at_most:
            for fd, _ in self.epoll.poll():
                lines -= os.read(fd, 65536).count(b"\n")
        return lines

    def send(self) -> None:
        self.sequence += 1
        text = line(payloads.event(self.sequence))
        for fd in self.inputs:
            os.write(fd, text)

    async def event(self) -> int:
        begun = clock()
        self.send()
        self.wait(len(self.inputs))
        return clock() - begun

    def ask(self, fd: int, frame: dict[str, Any]) -> None:
        os.write(fd, line(frame))
        self.wait(1)

    def next_id(self) -> str:
        self.sequence += 1
        return str(self.sequence)

    async def intercept(self) -> int:
        begun = clock()
        for fd in self.inputs:
            self.ask(fd, payloads.question(self.next_id()))
        return clock() - begun

    async def command(self) -> int:
        begun = clock()
        self.ask(self.inputs[0], payloads.command(self.next_id()))
        return clock() - begun

    async def tool(self) -> int:
        begun = clock()
        self.ask(self.inputs[0], payloads.tool(self.next_id()))
        return clock() - begun

    async def burst(self, events: int) -> None:
        n, left = len(self.inputs), 0
        for begun in range(0, events, payloads.BURST_AT_ONCE):
            count = min(payloads.BURST_AT_ONCE, events - begun)
            left += count * n
            for _ in range(count):
                self.send()
            left = self.wait(left, payloads.BURST_BEHIND * n)
        self.wait(left)


if __name__ == "__main__":
    serve_blocking(LoopColumn(sys.argv[2:]))
