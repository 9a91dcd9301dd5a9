"""An answer that takes something back and stores: what is registered after it comes after it, whenever the disk has it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.test_durable_state import WRITER, set_state, stored

from trio_exthost import CallError
from trio_exthost.state.memory import MemoryStores

DESCRIPTOR = {"name": "c", "description": "first", "argument_schema": {"type": "object"}}


def replacing(*actions):
    """Its answer takes back the command that was called and stores; the next frames register it anew and more."""

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="command", descriptor=DESCRIPTOR)
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "invoke":
                guest.send(
                    type="invoke_result",
                    id=frame["id"],
                    value={"status": "success"},
                    dispose=[1],
                    actions=list(actions),
                )
                descriptor = {**DESCRIPTOR, "description": "second"}
                guest.send(type="register", registration_id=2, kind="command", descriptor=descriptor)
                guest.send(type="register", registration_id=3, kind="command", descriptor={**DESCRIPTOR, "name": "d"})
                guest.send(type="dispose", registration_id=3)

    return program


def told(guest):
    return [
        (each["type"], each["registration_id"])
        for each in guest.received
        if each["type"] in ("registered", "rejected", "disposed")
    ]


async def test_what_is_registered_after_an_answer_takes_the_place_of_what_the_answer_disposed_of(
    tmp_path, autojump_clock
) -> None:
    async with stored(tmp_path, replacing(set_state("k", 1))) as (session, guest):
        await session.run_command("c", {})
        await trio.testing.wait_all_tasks_blocked()
        assert told(guest) == [
            ("registered", 1),
            ("disposed", 1),
            ("registered", 2),
            ("registered", 3),
            ("disposed", 3),
        ]
        assert [(each.name, each.description) for each in session.commands()] == [("c", "second")]


async def test_an_answer_that_cannot_be_stored_disposes_of_nothing_and_what_waited_goes_on(
    tmp_path, autojump_clock
) -> None:
    async with stored(tmp_path, replacing(set_state("k", 1, if_revision=7)), section=WRITER) as (session, guest):
        with pytest.raises(CallError) as caught:
            await session.run_command("c", {})
        assert caught.value.code == "conflict"
        await trio.testing.wait_all_tasks_blocked()
        assert told(guest) == [("registered", 1), ("rejected", 2), ("registered", 3), ("disposed", 3)]


async def test_a_caller_that_gives_up_lets_what_waited_go_on(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path, replacing(set_state("k", 1)), stores=MemoryStores()) as (session, guest):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run_command, "c", {})
            while not any(each["type"] == "invoke" for each in guest.received):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert ("registered", 3) in told(guest)


async def test_a_caller_that_gives_up_while_the_answer_is_written_changes_no_order(tmp_path, autojump_clock) -> None:
    is_writing, may_write = trio.Event(), trio.Event()

    async with stored(tmp_path, replacing(set_state("k", 1))) as (session, guest):
        committer = await session.persistence.open()
        in_thread = committer._in_thread

        async def slowly(function):
            is_writing.set()
            await may_write.wait()
            return await in_thread(function)

        committer._in_thread = slowly
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run_command, "c", {})
            await is_writing.wait()
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        before = told(guest)
        may_write.set()
        await trio.testing.wait_all_tasks_blocked()
        assert before == [("registered", 1)]
        assert told(guest)[1:] == [("disposed", 1), ("registered", 2), ("registered", 3), ("disposed", 3)]
        assert session.persistence.projection("a").state() == {"k": 1}
