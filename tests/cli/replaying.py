"""Recordings played by the command in this process, and an extension that keeps what it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.running import extension

from trio_exthost.cli.examples import examples_directory
from trio_exthost.cli.replay import replay_command

LISTENER = """
send(type="hello", name="x")
send(type="subscribe", events=["session_start", "user_prompt_submit", "turn_start", "turn_end", "tool_call", "tool_result",
     "assistant_message", "session_end"], intercept=["tool_call", "turn_start", "assistant_message", "before_agent_start"])
send(type="ready")
out = open("told.jsonl", "w")
for line in sys.stdin:
    frame = json.loads(line)
    print(line, file=out, end="", flush=True)
    if frame["type"] == "event_intercept":
        send(type="event_intercept_response", id=frame["id"], **ANSWERS.get(frame["event"], {}))
"""


def guard() -> str:
    return str(examples_directory() / "extensions/guard")


def listener(folder: Path, **answers: Any) -> Path:
    """Keeps every frame it gets; gives these answers, by event."""
    return extension(folder, f"ANSWERS = {answers!r}\n{LISTENER}")


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]


def replay(path: Path, *words: object, status: int = 0) -> None:
    assert replay_command.main([str(path), *map(str, words)], standalone_mode=False) == status


def replay_json(capsys: pytest.CaptureFixture[str], path: Path, *words: object, status: int = 0) -> dict[str, Any]:
    replay(path, *words, "--json", status=status)
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert isinstance(found, dict)
    return found
