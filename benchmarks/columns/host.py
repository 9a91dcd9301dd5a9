"""trio_exthost through its public interface, with the default configuration.

python -m columns.host FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import trio

from columns import payloads
from columns.worker import Operation, clock, serve_trio
from trio_exthost import HostClient, HostConfig, Outcome, Session, open_host

COMMAND = f"echo{payloads.suffix(0)}"


class Echoes(HostClient):
    """Counts the echoes."""

    def __init__(self) -> None:
        self.left = 0
        self.floor = 0
        self.reached = trio.Event()

    async def wait_left(self, at_most: int) -> None:
        """Until at most so many are outstanding."""
        if self.left > at_most:
            self.floor, self.reached = at_most, trio.Event()
            await self.reached.wait()

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:
        self.left -= 1
        if self.left == self.floor:
            self.reached.set()


class HostColumn:
    def __init__(self, folder: Path, argv: list[str]) -> None:
        self.folder, self.argv = folder, argv
        self.client = Echoes()
        self.n = 0
        self.stack = AsyncExitStack()
        self.config = HostConfig(data_dir=folder)

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
        paths = []
        for number in range(n):
            path = self.folder / "extensions" / f"echo{payloads.suffix(number)}"
            path.mkdir(parents=True, exist_ok=True)
            arguments = [*self.argv[1:], payloads.suffix(number)]
            manifest = {"name": path.name, "exec": self.argv[0], "args": arguments}
            (path / "extension.json").write_text(json.dumps(manifest))
            paths.append(path)
        self.config = HostConfig(extensions=paths, data_dir=self.folder, user_roots=(), project_roots=())
        self.n = n

    async def start(self, n: int) -> None:
        host = await self.stack.enter_async_context(open_host(self.config))
        session = host.open_session("bench", client=self.client, cwd="/")
        self.session = await self.stack.enter_async_context(session)
        report = await self.session.load_all()
        if len(report.ready) != n:
            raise RuntimeError(f"{n} extensions should be ready: {report}")

    async def stop(self) -> None:
        await self.stack.aclose()

    async def event(self) -> int:
        self.client.left = self.n
        begun = clock()
        self.session.emit("turn_start", payloads.EVENT_BODY)
        await self.client.wait_left(0)
        return clock() - begun

    async def emit(self) -> int:
        self.client.left = self.n
        begun = clock()
        self.session.emit("turn_start", payloads.EVENT_BODY)
        took = clock() - begun
        await self.client.wait_left(0)
        return took

    async def emit_none(self) -> int:
        begun = clock()
        self.session.emit("turn_end", payloads.EVENT_BODY)
        return clock() - begun

    async def intercept(self) -> int:
        begun = clock()
        verdict = await self.session.intercept("tool_call", payloads.QUESTION)
        took = clock() - begun
        if verdict.outcome is not Outcome.ALLOW or len(verdict.steps) != self.n:
            raise RuntimeError(f"{self.n} extensions should have allowed: {verdict}")
        return took

    async def command(self) -> int:
        begun = clock()
        await self.session.run_command(COMMAND, payloads.COMMAND_TEXT)
        return clock() - begun

    async def tool(self) -> int:
        begun = clock()
        result = await self.session.call_tool(COMMAND, payloads.TOOL_ARGUMENTS)
        took = clock() - begun
        if result.text != "ok":
            raise RuntimeError(f"the tool should have said ok: {result}")
        return took

    async def burst(self, events: int) -> None:
        emit: Callable[..., int] = self.session.emit
        self.client.left = 0
        for begun in range(0, events, payloads.BURST_AT_ONCE):
            count = min(payloads.BURST_AT_ONCE, events - begun)
            self.client.left += count * self.n
            for _ in range(count):
                emit("turn_start", payloads.EVENT_BODY)
            await self.client.wait_left(payloads.BURST_BEHIND * self.n)
        await self.client.wait_left(0)


if __name__ == "__main__":
    serve_trio(HostColumn(Path(sys.argv[1]), sys.argv[2:]))
