"""What several of the field's cases share: scenarios for a process of their own, guards, and extensions in a project."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from typing import Any

import trio
from runtime.fakes import Guest
from runtime.real.programs import PATIENCE_S, Place, alone_argv, assert_good_answers, text_of

from trio_exthost import SimpleTool, open_host

ASK = {"tool_id": "t", "tool_name": "bash", "tool_args": {"command": "ls"}}
"""What is asked at `tool_call`."""


async def until_interrupted(place: Place) -> dict[str, object]:
    """A host that takes Ctrl-C for its own business; whether `good` is well afterwards, and what `tty` could open."""
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            print("ready", flush=True)
            with trio.fail_after(PATIENCE_S):
                await anext(signals)
        await assert_good_answers(session)
        return {"tty": text_of(await session.call_tool("tty", {}))}


def interrupted_on_terminal(scenario: Any, place: Place) -> str:
    """The last line of a scenario on a terminal of its own, where Ctrl-C is typed as soon as it has said something."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        alone_argv(scenario, place),
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # else Ctrl-C is no signal to it
    ) as process:
        os.close(theirs)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            os.write(ours, b"\x03")
            said, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            os.close(ours)
    return said.splitlines()[-1]


def bash(executed: list[Any] | None = None) -> SimpleTool:
    """The host's own `bash`; it keeps the arguments it was executed with."""

    async def run(arguments: Any) -> str:
        if executed is not None:
            executed.append(arguments)
        await trio.lowlevel.checkpoint()
        return "ran"

    return SimpleTool("bash", "", {"type": "object"}, run)


async def execute(session: Any, **arguments: Any) -> tuple[Any, str]:
    """Have `bash` called as a model would; the verdict, and the text of the result."""
    with session.open_run() as run:
        async with run.tool_call("1", "bash", arguments) as call:
            result = await call.execute()
        return call.verdict, result.text


def offers(*tools: str, on_call: Any = None, **hello: Any) -> Any:
    """A program with these tools; `on_call(guest, frame)` deals with each call, which is answered with the program's name otherwise."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, **hello)
        for name in tools:
            guest.send(type="register_tool", name=name, schema={"type": "object"})
        guest.send(type="ready")
        async with trio.open_nursery() as nursery:
            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                if frame["type"] == "tool_call":
                    nursery.start_soon(on_call or named, guest, frame)
            nursery.cancel_scope.cancel("shutdown")

    return program


async def named(guest: Guest, frame: dict[str, Any]) -> None:
    """Answer with the program's name."""
    say(guest, frame, guest.name)
    await trio.lowlevel.checkpoint()


def say(guest: Guest, frame: dict[str, Any], text: str) -> None:
    """Answer a call of a tool."""
    guest.send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}])


def asked(answer: Any, *, after: float = 0) -> Any:
    """A program that is asked about tool calls; `answer(frame)` is what it says, None is nothing, after so many seconds."""

    async def program(guest: Guest) -> None:
        guest.greet(intercept=["tool_call"])
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                await trio.sleep(after)
                if (said := answer(frame)) is not None:
                    guest.send(type="event_intercept_response", id=frame["id"], **said)

    return program
