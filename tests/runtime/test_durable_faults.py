"""Durable state where something is wrong, or at the wrong moment: the smallest input of each fault that was found."""

from __future__ import annotations

import json
import os

import trio
import trio.testing
from runtime.fakes import codes
from runtime.test_durable_state import stored

COMMAND = {"name": "c", "description": "c", "argument_schema": {"type": "object"}}


async def write_all(guest, **frame) -> None:
    """A frame that the pipe takes in pieces."""
    data = json.dumps(frame).encode() + b"\n"
    while data:
        try:
            data = data[os.write(guest._stdout, data) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(guest._stdout)


async def test_an_id_that_fills_a_frame_is_ignored_and_ends_nobody(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="command", descriptor=COMMAND)
        guest.send(type="ready")
        long = "i" * (4 * 1024 * 1024 - 150)
        await write_all(guest, type="state_commit", id=long, space="session")
        invocation = (await guest.frames("invoke"))["id"]
        arguments = {"key": "k", "space": "extension"}
        await write_all(
            guest, type="broker_call", id=long, invocation=invocation, operation="state.get", arguments=arguments
        )
        await trio.sleep(1)
        guest.send(type="invoke_result", id=invocation, value={"status": "success"})
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (session, _):
        await session.run_command("c", {})
        assert codes(session.host).count("frame_invalid") == 2
