"""The MCP Python SDK over stdio, both ends on trio, against its own server (`mcp_server`).

What it has is a tool call, so that stands for a question and, called on all servers at the same time, for an event and its echoes.

    python -m columns.mcp_client FOLDER PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import trio
from mcp import Client, StdioServerParameters

from columns import payloads
from columns.worker import Operation, clock, serve_trio


class McpColumn:
    def __init__(self) -> None:
        self.clients: list[Client] = []

    @property
    def operations(self) -> Mapping[str, Operation]:
        return {"event": self.event, "intercept": self.intercept, "tool": self.tool}

    def prepare(self, n: int) -> None:
        """Nothing comes before."""

    async def start(self, n: int) -> None:
        self.manager = trio.open_nursery()
        nursery = await self.manager.__aenter__()
        self.over, self.clients, opened = trio.Event(), [], trio.Event()

        async def hold() -> (
            None
        ):  # a client is entered and left in one task, so that all start and stop at the same time
            parameters = StdioServerParameters(
                command=sys.executable, args=["-m", "columns.mcp_server"], env=_environment()
            )
            async with Client(parameters) as client:
                await client.list_tools()
                self.clients.append(client)
                if len(self.clients) == n:
                    opened.set()
                await self.over.wait()

        for _ in range(n):
            nursery.start_soon(hold)
        await opened.wait()

    async def stop(self) -> None:
        self.over.set()
        await self.manager.__aexit__(None, None, None)

    async def call(self, client: Client, name: str, arguments: dict[str, Any], wanted: str) -> None:
        result = await client.call_tool(name, arguments)
        text = "".join(getattr(block, "text", "") for block in result.content)
        if result.is_error or text != wanted:
            raise RuntimeError(f"{name} should have said {wanted}: {result}")

    async def event(self) -> int:
        begun = clock()
        async with trio.open_nursery() as nursery:
            for client in self.clients:
                nursery.start_soon(self.call, client, "echo", payloads.TOOL_ARGUMENTS, "ok")
        return clock() - begun

    async def intercept(self) -> int:
        begun = clock()
        for client in self.clients:
            await self.call(client, "may_run", payloads.QUESTION, "allow")
        return clock() - begun

    async def tool(self) -> int:
        begun = clock()
        await self.call(self.clients[0], "echo", payloads.TOOL_ARGUMENTS, "ok")
        return clock() - begun

    async def burst(self, events: int) -> None:
        raise NotImplementedError("MCP has no events")


def _environment() -> dict[str, str]:
    """The SDK passes on a few names only; the server must find this package."""
    return {"PYTHONPATH": ":".join(sys.path)}


if __name__ == "__main__":
    serve_trio(McpColumn())
