"""A program that writes as much to its stderr as it is told to, and two hosts in which it does so at the same time."""

from __future__ import annotations

from typing import Any

import trio
from runtime.real.programs import PATIENCE_S, Place

from trio_exthost import Limits, open_host

FLOOD = """
def flood(frame):
    for n in range(frame["args"]["first"], frame["args"]["last"]):
        os.write(2, f"line {n}\\n".encode() + b"x" * frame["args"].get("more", 0) + b"\\n")
    result(frame["id"], "done")
serve(flood, tools=["t"])
"""
ROUNDS = range(0, 4000, 200)
"""Numbers of the lines of one host, and how many of them at once."""
OTHERS = 10_000
"""The first line of the second host."""
SHARED = Limits(log_bytes=16_000, log_files=100)
"""Files enough for all lines of both."""


async def flood_beside_another(place: Place) -> dict[str, Any]:
    """A host whose program floods as soon as that of another host does, too; what was complained about."""
    offset = OTHERS if (place.path / "here").exists() else 0
    place.signal("there" if offset else "here")
    async with open_host(place.config(limits=SHARED)) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        with trio.fail_after(PATIENCE_S):
            while not (place.path / "there").exists():
                await trio.lowlevel.checkpoint()
        for first in ROUNDS:
            await session.call_tool("t", {"first": offset + first, "last": offset + first + ROUNDS.step})
        return {"told": [each.message for each in host.diagnostics]}
