"""An extension of the effect dialect that does what a test tells it to, and the descriptors it registers.

The puppet has a command `do` (registered as zot has it; `do-NAME` where it is not called p): its argument is a list of frames to send, and it answers with
every frame it has received since the last time. A frame `{"type": "answer", "registration_id": n, "frames": [...]}` is kept:
that is what an `invoke` of n is answered with, in this order; `id` is filled in.
"""

from __future__ import annotations

import json
from typing import Any

import trio
from runtime.fakes import Guest

from trio_exthost import Display, Session

ALL = (
    "tools.register",
    "commands.register",
    "providers.register",
    "client.contribute",
    "session.write",
    "secrets.read:the-key",
)
"""Permissions that a puppet's manifest names."""
OBJECT: dict[str, Any] = {"type": "object"}

SOURCE = """
answers, log = {}, []
greet(commands=["do"], capabilities=["effects", "gaps", "call_tool"])
for frame in frames():
    log.append(frame)
    if frame["type"] == "command_invoked":
        for each in json.loads(frame["args"]):
            if each["type"] == "answer":
                answers[each["registration_id"]] = each["frames"]
            else:
                send(**each)
        send(type="command_response", id=frame["id"], action="display", display=json.dumps(log))
        log = []
    elif frame["type"] == "invoke":
        for each in answers.get(frame["registration_id"], ()):
            send(**{"id": frame["id"], **each})
"""
"""The puppet as a program for `programs.Place.add`."""


async def puppet(guest: Guest) -> None:
    """The puppet over in-process pipes; a frame `{"type": "sleep", "s": n}` makes it wait."""
    answers: dict[int, list[dict[str, Any]]] = {}
    log: list[dict[str, Any]] = []

    async def send_all(frames: list[dict[str, Any]], **more: Any) -> None:
        for each in frames:
            if each["type"] == "answer":
                answers[each["registration_id"]] = each["frames"]
            elif each["type"] == "sleep":
                await trio.sleep(each["s"])
            else:
                guest.send(**{**more, **each})

    guest.send(type="hello", name=guest.name, capabilities=["effects", "gaps", "call_tool"])
    guest.send(type="register_command", name="do" if guest.name == "p" else f"do-{guest.name}")
    guest.send(type="ready")
    async with trio.open_nursery() as nursery:
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            log.append(frame)
            if frame["type"] == "command_invoked":
                await send_all(json.loads(frame["args"]))
                guest.send(type="command_response", id=frame["id"], action="display", display=json.dumps(log))
                log = []
            elif frame["type"] == "invoke":
                nursery.start_soon(lambda f=frame: send_all(answers.get(f["registration_id"], []), id=f["id"]))
        nursery.cancel_scope.cancel("shutdown")


async def do(session: Session, *frames: dict[str, Any], name: str = "do") -> list[dict[str, Any]]:
    """Have the puppet send these; what it had received before them since the last time."""
    outcome = await session.run_command(name, json.dumps(frames))
    assert isinstance(outcome, Display)
    log: list[dict[str, Any]] = json.loads(outcome.text)
    return log


async def told(session: Session, *frames: dict[str, Any], name: str = "do") -> list[dict[str, Any]]:
    """Have the puppet send these; what the host has answered, without the commands themselves."""
    await do(session, *frames, name=name)
    return [frame for frame in await do(session, name=name) if frame["type"] not in ("command_invoked", "hello_ack")]


def register(number: int, kind: str, descriptor: dict[str, Any], **binding: str) -> dict[str, Any]:
    """A `register` frame; `binding` is scope and id, if any."""
    frame = {"type": "register", "registration_id": number, "kind": kind, "descriptor": descriptor}
    return {**frame, "binding": binding} if binding else frame


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "label": name, "description": f"Does {name}", "input_schema": OBJECT, **more}


def command(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "label": name, "description": f"Does {name}", "argument_schema": OBJECT, **more}


def model(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": id, "reasoning": False, "context_window": 1000, "max_tokens": 100, **more}


def provider(provider_id: str, *models: str, **more: Any) -> dict[str, Any]:
    return {
        "provider_id": provider_id,
        "base_url": "https://example.test/v1",
        "format": "openai_chat_completions",
        "models": [model(each) for each in models],
        **more,
    }


def section(section_id: str, text: str, **more: Any) -> dict[str, Any]:
    return {"section_id": section_id, "text": text, **more}


def answer(number: int, *frames: dict[str, Any]) -> dict[str, Any]:
    """What an `invoke` of this registration is answered with."""
    return {"type": "answer", "registration_id": number, "frames": list(frames)}


def result(value: Any = None, **more: Any) -> dict[str, Any]:
    """An `invoke_result` with this value."""
    return {"type": "invoke_result", "value": value, **more}


def text_value(text: str, **more: Any) -> dict[str, Any]:
    """The value of a tool's answer."""
    return {"content": [{"type": "text", "text": text}], **more}
