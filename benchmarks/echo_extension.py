"""Echoes like `echo_extension.c`, where there is no compiler."""

from __future__ import annotations

import json
import sys

ANSWERS: dict[str, dict[str, object]] = {
    "event_intercept": {"type": "event_intercept_response"},
    "command_invoked": {"type": "command_response", "action": "noop"},
    "tool_call": {"type": "tool_result", "content": [{"type": "text", "text": "ok"}]},
}


def put(frame: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(frame, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def main() -> None:
    name = "echo" + "".join(sys.argv[1:2])
    put({"type": "hello", "name": name})
    put({"type": "register_command", "name": name, "description": "echo"})
    put({"type": "register_tool", "name": name, "description": "echo", "schema": {"type": "object"}})
    put({"type": "subscribe", "events": ["turn_start"], "intercept": ["tool_call"]})
    put({"type": "ready"})
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] in ANSWERS:
            put({**ANSWERS[frame["type"]], "id": frame["id"]})
        elif frame["type"] == "event" and "ping" in frame:
            put({"type": "notify", "level": "info", "message": "pong"})
        elif frame["type"] == "shutdown":
            break


if __name__ == "__main__":
    main()
