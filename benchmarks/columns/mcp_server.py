"""The MCP column's own server: the SDK's, on trio, with one tool that says ok and one that answers a question."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool()
async def echo(command: str) -> str:
    """Echo."""
    return "ok"


@server.tool()
async def may_run(tool_name: str, tool_args: dict[str, Any]) -> str:
    """May the tool run?"""
    return "allow"


if __name__ == "__main__":
    anyio.run(server.run_stdio_async, backend="trio")
