"""Durable state where something is wrong, or at the wrong moment: the smallest input of each fault that was found."""

from __future__ import annotations

import json
import os

import pytest
import trio
import trio.testing
from runtime.fakes import codes, serve, world
from runtime.test_durable_state import WRITER, ended, stored, storing

from trio_exthost import Limits, StoreFailed, ToolStatus
from trio_exthost.state.memory import MemorySessionStore, MemoryStores

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


async def test_a_tools_answer_within_the_grace_is_stored_and_kept_as_a_partial_result(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        tool = {"name": "t", "label": "t", "description": "t", "input_schema": {"type": "object"}}
        guest.send(type="register", registration_id=1, kind="tool", descriptor=tool)
        guest.send(type="ready")
        invocation = (await guest.frames("invoke"))["id"]
        await guest.frames("cancel")
        actions = [{"kind": "set_state", "key": "k", "value": 1}]
        value = {"content": [{"type": "text", "text": "part"}]}
        guest.send(type="invoke_result", id=invocation, value=value, actions=actions)
        await guest.until_shutdown()

    section = {"permissions": ("session.write", "tools.register"), "state_schema": 1}
    async with stored(tmp_path, program, section=section) as (session, _):
        result = await session.call_tool("t", {})
        assert (result.status, result.text) == (ToolStatus.TIMED_OUT, "part")
        assert session.persistence.projection("a").state() == {"k": 1}


async def test_a_store_that_raises_anything_fails_those_who_wait_and_not_those_after_them(
    tmp_path, autojump_clock, monkeypatch
) -> None:
    async with stored(tmp_path) as (session, _):
        await session.advance("m1")
        with monkeypatch.context() as patch:
            patch.setattr(MemorySessionStore, "append_group", lambda *_, **__: 1 / 0)
            with pytest.raises(StoreFailed, match="ZeroDivisionError"):
                await session.advance("m2")
        await session.advance("m2")


async def test_old_state_that_does_not_fit_into_a_frame_stops_its_extension_only(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, guest):
        for number in range(8):
            actions = [{"kind": "set_state", "key": f"k{number}", "value": "x" * 1000}]
            guest.send(type="state_commit", id=str(number), space="session", actions=actions)
        await trio.testing.wait_all_tasks_blocked()
    async with world(tmp_path, state=stores, limits=Limits(frame_bytes=4096)) as (around, host):
        around.add("a", storing(schema_migration=lambda _: {}), **{**WRITER, "state_schema": 2})
        around.add("b", serve)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert "b" in report.ready
            assert "a" not in report.ready
        assert "state_migration_failed" in codes(host)


@pytest.mark.parametrize("is_open", [True, False])
async def test_one_that_has_given_up_its_schema_does_not_run_on_what_it_had_stored(
    tmp_path, autojump_clock, is_open
) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        await session.run_command("c", {"actions": [{"kind": "set_state", "key": "k", "value": 1}]})
    async with world(tmp_path, state=stores) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            if is_open:
                await session.advance("m2")
            await session.load_all()
            if not is_open:
                await session.advance("m2")
            await trio.testing.wait_all_tasks_blocked()
            row = await ended(session)
            assert (row.state, "say state_schema in the manifest again" in row.reason) == ("failed", True)
            assert "state_migration_failed" in codes(host)


async def test_one_that_has_given_up_its_schema_runs_until_a_branch_is_selected_on_which_it_had_stored_something(
    tmp_path, autojump_clock
) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        await session.run_command("c", {"actions": [{"kind": "set_state", "key": "k", "value": 1}]})
        await session.checkout("")
    async with world(tmp_path, state=stores) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await session.advance("m2")
            await trio.testing.wait_all_tasks_blocked()
            assert [row.state for row in session.extensions()] == ["ready"]
            await session.checkout("m1")
            await trio.testing.wait_all_tasks_blocked()
            assert (await ended(session)).state == "failed"
