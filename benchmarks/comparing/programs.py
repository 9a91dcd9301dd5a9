"""Which columns there are, how each is started, and what stands in where something is not installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import attrs

HERE = Path(__file__).parents[1]
HOST, FLOOR, LOOP, PRACTICAL = "trio_exthost", "floor", "plain loop", "practical floor"
ASYNCIO, MCP, PLUGGY = "asyncio", "MCP", "pluggy"

EVERY_ROW = (
    "start",
    "stop",
    "memory",
    "emit",
    "event",
    "interception",
    "interception chain",
    "command",
    "tool",
    "burst",
)
LOOP_ROWS = tuple(row for row in EVERY_ROW if row not in {"emit", "memory"})
MCP_ROWS = ("start", "stop", "memory", "event", "interception", "interception chain", "tool")


@attrs.frozen
class Program:
    """One column."""

    column: str
    argv: tuple[str, ...]
    rows: tuple[str, ...] = EVERY_ROW
    n_max: int = 1000
    """It is not measured with more extensions than this."""
    starts_max: int = 1000
    """It is not started more often than this."""
    share: float = 1.0
    """Of the operations that the others do in a block: what takes a thousand times as long needs fewer."""
    is_in_process: bool = False
    """The call of an event is the whole event, so `emit` with subscribers is no row of its own."""


@attrs.frozen
class Programs:
    """All columns that can be measured here, and a line about each thing a reader must know of them."""

    programs: tuple[Program, ...]
    notes: tuple[str, ...]


def programs(folder: Path, *, compiler: str | None = None) -> Programs:
    """Compile what is to be compiled into the folder.

    Args:
      folder: A directory for the programs and the extensions' files, removed by the caller.
      compiler: The C compiler; found by itself if None; `"none"` is as if there were none.

    Raises:
      CalledProcessError: The compiler refused; its message is on stderr.
    """
    compiler = compiler or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or "none"
    has_compiler = compiler != "none"
    python = sys.executable
    echo: tuple[str, ...] = (python, str(HERE / "echo_extension.py"))
    if has_compiler:
        echo = (_compile(compiler, HERE / "echo_extension.c", folder / "echo"),)

    def module(name: str) -> tuple[str, ...]:
        work = folder / name
        work.mkdir(exist_ok=True)
        return (python, "-m", f"columns.{name}", str(work), *echo)

    found = [Program(HOST, module("host"))]
    if has_compiler:
        notes = ["Extensions and floor are in C."]
        floor = _compile(compiler, HERE / "columns" / "floor.c", folder / "floor")
        found.append(Program(FLOOR, (floor, str(folder), *echo), LOOP_ROWS))
        found.append(Program(LOOP, module("floor_python"), LOOP_ROWS))
    else:
        notes = ["No C compiler: extensions and floor are in Python, so the floor is the plain loop."]
        found.append(Program(FLOOR, module("floor_python"), LOOP_ROWS))
    found += [Program(PRACTICAL, module("practical")), Program(ASYNCIO, module("asyncio_host"))]
    if find_spec("mcp"):
        found.append(Program(MCP, module("mcp_client"), MCP_ROWS, n_max=8, starts_max=1, share=0.1))
        notes.append(
            "MCP: tool calls to its own servers, which are in Python; at most 8, started once, a tenth of the calls."
        )
    if find_spec("pluggy"):
        found.append(Program(PLUGGY, module("in_process"), is_in_process=True))
    notes += [
        f"{column}: not installed, so not measured (pip install 'trio-exthost[bench]')."
        for column, name in ((MCP, "mcp"), (PLUGGY, "pluggy"))
        if not find_spec(name)
    ]
    return Programs(tuple(found), tuple(notes))


def _compile(compiler: str, source: Path, program: Path) -> str:
    subprocess.run([compiler, "-O2", "-o", program, source], check=True)
    return str(program)
