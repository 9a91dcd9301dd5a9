"""One conversation in each of the formats that `exthost replay` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PUSH = {"command": "git push origin main"}
WIPE = {"command": "rm -rf / --token abcdefghijkl"}

EVENTS: list[dict[str, Any]] = [
    {"event": "session_start", "session_id": "s1"},
    {"event": "user_prompt_submit", "text": "tidy up", "image_count": 1},
    {"event": "turn_start", "step": 7},
    {"event": "assistant_message", "text": "the key is sk-0123456789abcdefghij"},
    {"event": "tool_call", "tool_id": "c1", "tool_name": "bash", "tool_args": WIPE},
    {"event": "turn_end"},
    {"event": "tool_result", "tool_id": "c1", "tool_name": "bash", "tool_args": WIPE, "status": "failed",
     "executed": True, "result": {"content": [{"type": "text", "text": "no"}], "is_error": True}},
    {"type": "event", "event": "turn_start", "step": 8},
    {"time": 1.5, "payload": {"event": "tool_call", "tool_id": "c2", "tool_name": "bash", "tool_args": PUSH}},
    {"event": "tool_result", "payload": {"tool_id": "c2", "result": {"content": [{"type": "text", "text": "done"}]}}},
]  # fmt: skip

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "tidy"}, {"type": "image_url", "image_url": {"url": "data:"}},
                                 {"type": "text", "text": "up"}]},
    {"role": "assistant", "content": "the key is sk-0123456789abcdefghij", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": json.dumps(WIPE)}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "no"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": PUSH}}]},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "done"}]},
]  # fmt: skip

CLAUDE: list[dict[str, Any]] = [
    {"type": "summary", "summary": "tidying", "leafUuid": "u1"},
    {"type": "user", "uuid": "u2", "message": {"role": "user", "content": "tidy up"}},
    {"type": "assistant", "uuid": "u3", "message": {"id": "m1", "content": [{"type": "thinking", "thinking": "hm"}]}},
    {"type": "assistant", "uuid": "u4", "message": {"id": "m1", "content": [
        {"type": "text", "text": "the key is sk-0123456789abcdefghij"}]}},
    {"type": "assistant", "uuid": "u5", "message": {"id": "m1", "content": [
        {"type": "tool_use", "id": "c1", "name": "bash", "input": WIPE}]}},
    {"type": "user", "uuid": "u6", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]}},
    {"type": "file-history-snapshot", "messageId": "u7", "snapshot": {}},
    {"type": "assistant", "uuid": "u8", "message": {"id": "m2", "content": [
        {"type": "tool_use", "id": "c2", "name": "bash", "input": PUSH}]}},
    {"type": "user", "uuid": "u9", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "done"}]}]}},
]  # fmt: skip


def lines(values: Iterable[Any]) -> bytes:
    """A JSON value a line."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in values)


RECORDINGS: dict[str, tuple[str, bytes]] = {
    "events": ("events", lines(EVENTS)),
    "list": ("openai", json.dumps(MESSAGES).encode()),
    "list in several lines": ("openai", json.dumps(MESSAGES, indent=2).encode()),
    "message a line in a list": (
        "openai",
        b"[\n" + b",\n".join(json.dumps(each).encode() for each in MESSAGES) + b"\n]",
    ),
    "object": (
        "openai",
        json.dumps({"id": 7, "tools": [{"messages": []}], "messages": MESSAGES, "z": "]"}, indent=1).encode(),
    ),
    "trajectories": ("openai", lines([{"messages": MESSAGES, "resolved": True}])),
    "trajectory as text": ("openai", lines([{"messages": json.dumps(MESSAGES)}])),
    "list a line": ("openai", lines([MESSAGES])),
    "message a line": ("openai", lines(MESSAGES)),
    "list of conversations": ("openai", json.dumps([{"messages": MESSAGES}], indent=1).encode()),
    "list of lists": ("openai", json.dumps([MESSAGES], indent=1).encode()),
    "claude": ("claude", lines(CLAUDE)),
}
"""By what it is: the format that is told, and the file."""


def recording(folder: Path, content: bytes, name: str = "recording") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content)
    return path
