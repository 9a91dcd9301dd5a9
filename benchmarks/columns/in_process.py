"""pluggy: plugins in the host's own process. What isolation costs is the distance to it.

python -m columns.in_process FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pluggy

from columns import payloads
from columns.worker import Operation, clock, serve_blocking

specification = pluggy.HookspecMarker("bench")
implementation = pluggy.HookimplMarker("bench")


class Points:
    """The points at which plugins are called."""

    @specification
    def turn_start(self, frame: dict[str, Any], notify: Callable[[str, str], None]) -> None:
        """A turn begins."""

    @specification
    def turn_end(self, frame: dict[str, Any], notify: Callable[[str, str], None]) -> None:
        """A turn ends."""

    @specification
    def tool_call(self, tool_name: str, tool_args: dict[str, Any]) -> dict[str, Any] | None:
        """May the tool run?"""

    @specification(firstresult=True)
    def command(self, name: str, args: str) -> dict[str, Any] | None:
        """Run a command."""

    @specification(firstresult=True)
    def tool(self, name: str, args: dict[str, Any]) -> str | None:
        """Run a tool."""


class Echo:
    """The echo extension as a plugin."""

    def __init__(self, number: int) -> None:
        self.name = f"echo{payloads.suffix(number)}"

    @implementation
    def turn_start(self, frame: dict[str, Any], notify: Callable[[str, str], None]) -> None:
        if "ping" in frame:
            notify("info", "pong")

    @implementation
    def tool_call(self, tool_name: str, tool_args: dict[str, Any]) -> dict[str, Any]:
        return {"block": False}

    @implementation
    def command(self, name: str, args: str) -> dict[str, Any] | None:
        return {"action": "noop"} if name == self.name else None

    @implementation
    def tool(self, name: str, args: dict[str, Any]) -> str | None:
        return "ok" if name == self.name else None


class PluggyColumn:
    def __init__(self) -> None:
        self.sequence = self.left = 0

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {
            "event": self.event,
            "emit_none": self.emit_none,
            "intercept": self.intercept,
            "command": self.command,
            "tool": self.tool,
        }

    def prepare(self, n: int) -> None:
        """Nothing comes before."""

    async def start(self, n: int) -> None:
        self.n = n
        self.manager = pluggy.PluginManager("bench")
        self.manager.add_hookspecs(Points)
        for number in range(n):
            self.manager.register(Echo(number))
        self.hook = self.manager.hook

    async def stop(self) -> None:
        for plugin in self.manager.get_plugins():
            self.manager.unregister(plugin)

    def notify(self, level: str, message: str) -> None:
        self.left -= 1

    async def event(self) -> int:
        self.left = self.n
        begun = clock()
        self.sequence += 1
        self.hook.turn_start(frame=payloads.event(self.sequence), notify=self.notify)
        took = clock() - begun
        if self.left:
            raise RuntimeError(f"{self.left} echoes are missing")
        return took

    async def emit_none(self) -> int:
        begun = clock()
        self.sequence += 1
        self.hook.turn_end(frame=payloads.event(self.sequence, "turn_end"), notify=self.notify)
        return clock() - begun

    async def intercept(self) -> int:
        begun = clock()
        answers = self.hook.tool_call(**payloads.QUESTION)
        took = clock() - begun
        if len(answers) != self.n or any(answer["block"] for answer in answers):
            raise RuntimeError(f"{self.n} plugins should have allowed: {answers}")
        return took

    async def command(self) -> int:
        begun = clock()
        self.hook.command(name=f"echo{payloads.suffix(0)}", args=payloads.COMMAND_TEXT)
        return clock() - begun

    async def tool(self) -> int:
        begun = clock()
        self.hook.tool(name=f"echo{payloads.suffix(0)}", args=payloads.TOOL_ARGUMENTS)
        return clock() - begun

    async def burst(self, events: int) -> None:
        for _ in range(events):
            await self.event()


if __name__ == "__main__":
    serve_blocking(PluggyColumn())
