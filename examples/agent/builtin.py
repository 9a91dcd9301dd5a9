"""The agent's own tools. read and write stay inside a scratch directory; bash begins there."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio

from trio_exthost import HostTool, SimpleTool, ToolResult, ToolStatus

OUTPUT_BYTES = 64 * 1024
"""What a command may print before the rest is cut."""
BASH_S = 30.0
"""How long a command may take."""


def builtin_tools(scratch: Path) -> list[HostTool]:
    """The three tools, for `scratch`."""
    root = scratch.resolve()

    def inside(path: object) -> Path:
        target = (root / str(path)).resolve()
        if not target.is_relative_to(root):
            raise ValueError(f"{path} is outside the working directory")
        return target

    async def read(arguments: dict[str, Any]) -> str:
        target = inside(arguments["path"])
        if not target.is_file():  # a directory, or a pipe that would never end
            raise ValueError(f"{arguments['path']} is not a file")
        async with await trio.open_file(target, "rb") as file:
            return (await file.read(OUTPUT_BYTES)).decode(errors="replace")

    async def write(arguments: dict[str, Any]) -> str:
        target = trio.Path(inside(arguments["path"]))
        await target.parent.mkdir(parents=True, exist_ok=True)
        await target.write_text(str(arguments["text"]))
        return f"wrote {len(str(arguments['text']))} characters to {arguments['path']}"

    async def bash(arguments: dict[str, Any]) -> ToolResult | str:
        return await run_shell(str(arguments["command"]), root)

    path = {"path": {"type": "string", "description": "relative to the working directory"}}
    return [
        SimpleTool("read", "Read a text file.", schema_of(path), read),
        SimpleTool("write", "Write a text file.", schema_of({**path, "text": {"type": "string"}}), write),
        SimpleTool("bash", "Run a shell command.", schema_of({"command": {"type": "string"}}), bash),
    ]


def schema_of(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def environment(home: Path) -> dict[str, str]:
    """Ours without the agent's key, which is not the model's to print; what goes to ~ stays inside."""
    return {**{name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}, "HOME": str(home)}


async def run_shell(command: str, cwd: Path) -> ToolResult | str:
    """Run a command in a group of its own; its end, or giving it up, ends what it left in the background, too."""
    output = b""

    def kill_group(process: trio.Process) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    async def give_up(process: trio.Process) -> None:
        kill_group(process)

    async def follow(process: trio.Process) -> None:
        try:
            await process.wait()
        finally:
            kill_group(process)  # or what it left would hold its output open

    async def collect(stream: trio.abc.ReceiveStream) -> None:
        nonlocal output
        async for chunk in stream:
            output += chunk[: OUTPUT_BYTES - len(output)]

    with trio.move_on_after(BASH_S):
        async with trio.open_nursery() as nursery:
            process = await nursery.start(
                partial(
                    trio.run_process,
                    ["sh", "-c", f"exec 2>&1; {command}"],
                    cwd=cwd,
                    env=environment(cwd),
                    stdout=subprocess.PIPE,
                    check=False,
                    start_new_session=True,
                    deliver_cancel=give_up,
                )
            )
            nursery.start_soon(follow, process)
            async with process.stdout:
                await collect(process.stdout)
        text = output.decode(errors="replace") or "(no output)"
        if process.returncode:
            return ToolResult.error(f"exit {process.returncode}\n{text}")
        return text
    return ToolResult.error(f"no end within {BASH_S:g} s\n{output.decode(errors='replace')}", ToolStatus.TIMED_OUT)
