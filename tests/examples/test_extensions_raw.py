"""What each example extension says over its pipes, without a host in between."""

from __future__ import annotations

import json
from typing import Any

import pytest
from raw_extension import EXTENSIONS

NAMES = ["guard", "redact", "audit", "weather", "todo"]
EVENTS = [
    "session_start", "session_end", "user_prompt_submit", "turn_start", "turn_end", "tool_call",
    "tool_confirmation_requested", "permission_decision", "tool_result", "assistant_message", "pre_compact",
    "post_compact", "subagent_start", "subagent_stop",
]  # fmt: skip

REGISTRATIONS: dict[str, list[dict[str, Any]]] = {
    "guard": [
        {"type": "register_command", "name": "guard", "description": "Show what is refused, and how often"},
        {"type": "subscribe", "intercept": ["tool_call"]},
    ],
    "redact": [{"type": "subscribe", "intercept": ["assistant_message"]}],
    "audit": [
        {"type": "register_command", "name": "audit", "description": "Show how often each event happened"},
        {"type": "subscribe", "events": EVENTS},
    ],
    "weather": [
        {
            "type": "register_tool",
            "name": "weather",
            "description": "Tells the (invented) weather of a city",
            "schema": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "minLength": 1, "description": "Name of the city"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        }
    ],
    "todo": [
        {
            "type": "register_command",
            "name": "todo",
            "description": "The to-do list: /todo, /todo add TEXT, /todo done NUMBER",
        },
        {
            "type": "register_tool",
            "name": "todo",
            "description": "Reads and changes the user's to-do list",
            "schema": {
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["add", "list", "done"]},
                    "text": {"type": "string", "description": "What to do; for add"},
                    "number": {"type": "integer", "minimum": 1, "description": "Position in the list; for done"},
                },
                "required": ["action"],
                "additionalProperties": False,
            },
        },
    ],
}
CAPABILITIES = {
    "guard": ["commands", "events"],
    "redact": ["events", "effects"],
    "audit": ["commands", "events"],
    "weather": ["tools", "tool_cancel"],
    "todo": ["commands", "tools", "panels"],
}
# A question each of them answers with one frame, and the type of that frame.
QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "guard": ({"type": "event_intercept", "id": "q", "event": "turn_start", "step": 1}, "event_intercept_response"),
    "redact": ({"type": "event_intercept", "id": "q", "event": "turn_start", "step": 1}, "event_intercept_response"),
    "audit": ({"type": "command_invoked", "id": "q", "name": "audit"}, "command_response"),
    "weather": ({"type": "tool_call", "id": "q", "name": "weather", "args": {"city": "Oslo"}}, "tool_result"),
    "todo": ({"type": "tool_call", "id": "q", "name": "todo", "args": {"action": "list"}}, "tool_result"),
}
JUNK: list[Any] = [
    b"", b"   ", b"{", b"}", b"null", b"5", b'"text"', b"[]", b"{}", b'{"type":5}', b'{"type":null}', b'{"type":["shutdown"]}',
    b'{"type":"a frame of a newer host","id":"1"}', b'{"type":"constructor"}', b"\xff\xfe\x00", b'{"type":"event"\x00',
    b"[" * 100_000, b'{"a":' * 100_000, b'{"type":"shut', b'{"type":"event","event":"never heard of"}', b"\\", b'"\\',
    {"type": "event", "event": "turn_start", "step": 1}, {"type": "panel_key", "panel_id": "other", "key": "down"},
    {"type": "panel_close", "panel_id": "other"}, {"type": "tool_cancel", "id": "1"},
    {"type": "tool_result", "id": "1", "content": []}, {"type": "notice", "text": '"type":"shutdown" {"type":"shutdown"}'},
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_handshake_gives_exactly_the_registrations(start, name):
    extension = start(name)
    hello = {"type": "hello", "name": name, "version": "0.1.0", "capabilities": CAPABILITIES[name]}
    assert extension.receive() == hello
    extension.send({"type": "hello_ack", "protocol_version": 1, "zot_version": "0", "model": "m", "cwd": "/"})
    assert [extension.receive() for _ in range(len(REGISTRATIONS[name]) + 1)] == [
        *REGISTRATIONS[name],
        {"type": "ready"},
    ]
    manifest = json.loads((EXTENSIONS / name / "extension.json").read_text(encoding="utf-8"))
    assert (manifest["name"], manifest["version"]) == (hello["name"], hello["version"])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_registered_before_the_host_has_answered_hello(start, name):
    extension = start(name)
    extension.receive()
    extension.end_input()
    assert extension.wait() == (0, [])


@pytest.mark.parametrize("name", NAMES)
def test_end_of_input_ends_it_without_another_word(ready, name):
    extension = ready(name)
    extension.write(b'{"type":"shutdown"')  # half a frame: the rest never comes
    extension.end_input()
    assert extension.wait() == (0, [])


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", NAMES)
def test_shutdown_is_acknowledged_and_ends_it_while_its_input_stays_open(ready, name, end):
    extension = ready(name)
    extension.send({"type": "shutdown"}, end=end)
    status, lines = extension.wait()
    assert (status, [json.loads(line) for line in lines]) == (0, [{"type": "shutdown_ack"}])


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", NAMES)
def test_junk_and_unknown_frames_are_passed_over_in_silence(ready, name, end):
    extension = ready(name)
    extension.send(*JUNK, end=end)
    question, kind = QUESTIONS[name]
    answer = extension.ask(question, end=end)
    assert (answer["type"], answer["id"]) == (kind, "q")


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_that_comes_in_pieces_is_one_frame(ready, name):
    extension = ready(name)
    question, kind = QUESTIONS[name]
    line = json.dumps(question).encode() + b"\n"  # with spaces, as other hosts may write it
    for at in range(0, len(line), 9):
        extension.write(line + line[:at])  # once the first is answered, the piece behind it has been read on its own
        assert extension.receive()["type"] == kind
        extension.write(line[at:])
        assert extension.receive()["type"] == kind


@pytest.mark.parametrize("name", NAMES)
def test_its_readme_has_five_lines(name):
    assert len((EXTENSIONS / name / "README.md").read_text(encoding="utf-8").splitlines()) == 5
