"""What every column sends, byte for byte what the host writes for the same payload; and the burst's window.

Each column encodes its frames itself, once an operation, as it would in use (the floor in C fills in a template).
"""

from __future__ import annotations

from typing import Any

COMMAND_TEXT = "a b"
TOOL_ARGUMENTS = {"command": "ls"}
EVENT_BODY = {"step": 1, "ping": 1}
QUESTION = {"tool_name": "bash", "tool_args": {"command": "ls"}}

BURST_AT_ONCE = 50
"""Events emitted back to back before the echoes are looked at."""
BURST_BEHIND = 100
"""Events whose echoes may be outstanding when the next ones are emitted: no column's bound is reached, so none drops any."""


def suffix(number: int) -> str:
    """What the extension of this number appends to the names it registers."""
    return f"-{number:03}"


def event(sequence: int, name: str = "turn_start") -> dict[str, Any]:
    """The frame of an event."""
    return {"type": "event", "event": name, "session_id": "bench", "cwd": "/", "sequence": sequence, **EVENT_BODY}


def question(id: str) -> dict[str, Any]:
    """The frame of an interception."""
    return {"type": "event_intercept", "id": id, "event": "tool_call", **QUESTION}


def command(id: str) -> dict[str, Any]:
    """The frame that runs the first extension's command."""
    return {"type": "command_invoked", "id": id, "name": f"echo{suffix(0)}", "args": COMMAND_TEXT}


def tool(id: str) -> dict[str, Any]:
    """The frame that calls the first extension's tool."""
    return {"type": "tool_call", "id": id, "name": f"echo{suffix(0)}", "args": TOOL_ARGUMENTS}


SHUTDOWN = {"type": "shutdown"}
