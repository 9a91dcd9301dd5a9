"""What tests of reloads have in common: extensions whose programs are replaced."""

from __future__ import annotations

import attrs
import trio
from runtime.fakes import Guest, Program, World

from trio_exthost.packages import Candidate


def candidate(around: World, name: str) -> Candidate:
    """The row of an extension."""
    return next(each for each in around.candidates if each.name == name)


def change(around: World, name: str, program: Program | None = None, /, **fields: object) -> None:
    """Something of this extension is another now: its content, its program, or these fields of its row."""
    for place, each in enumerate(around.candidates):
        if each.name == name:
            fields = {"digest": f"{each.digest or ''}+", **fields}
            around.candidates[place] = attrs.evolve(each, **fields)
    if program is not None:
        around.programs[name] = program


def version(
    text: str, *, tools=(), commands=(), events=(), intercept=(), block: bool = False, ready: bool = True, hold=()
) -> Program:
    """A program that answers every call with its version; `hold`: types of frames that it does not answer."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=[])
        for tool in tools:
            guest.send(type="register_tool", name=tool, schema={"type": "object"})
        for command in commands:
            guest.send(type="register_command", name=command)
        if events or intercept:
            guest.send(type="subscribe", events=list(events), intercept=list(intercept))
        if ready:
            guest.send(type="ready")
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            answer(guest, frame, text, block, hold)

    return program


def answer(guest: Guest, frame: dict, text: str, block: bool = False, hold=()) -> None:
    """Answer one frame as a version does."""
    kind = frame["type"]
    if kind in hold:
        return
    if kind == "tool_call":
        guest.send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}])
    elif kind == "command_invoked":
        guest.send(type="command_response", id=frame["id"], action="display", display=text)
    elif kind == "event_intercept":
        guest.send(type="event_intercept_response", id=frame["id"], block=block, reason=text)


async def broken(guest: Guest) -> None:
    """It says what is wrong, and exits."""
    guest.complain("SyntaxError: invalid syntax\n")
    guest.exit(1)


async def silent(guest: Guest) -> None:
    """It never says hello, and ignores everything but SIGKILL."""
    guest.ignores.add(15)
    await trio.sleep_forever()


async def ask(session, tool: str = "bash"):
    """The verdict about a call of a tool."""
    return await session.intercept("tool_call", {"tool_id": "1", "tool_name": tool, "tool_args": {}})


def frames_of(guest: Guest, kind: str) -> list[dict]:
    """The frames of a type that a guest has received."""
    return [frame for frame in guest.received if frame["type"] == kind]
