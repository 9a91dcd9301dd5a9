"""`state_commit` at every moment of an extension's life: before it is ready, with its last breath, too many at once."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.fakes import codes, world
from runtime.hookers import hooker
from runtime.test_durable_state import WRITER, set_state, stored

from trio_exthost import Deadlines, HostConfig
from trio_exthost.errors import StoreFailed
from trio_exthost.state.memory import MemoryExtensionStore, MemoryStores

SPACES = ("session", "extension")


def commit(guest, id, key, value, space="session"):
    guest.send(type="state_commit", id=id, space=space, actions=[set_state(key, value)])


def results(guest):
    return {
        each["id"]: (each["ok"], each["error"]["code"] if "error" in each else "")
        for each in guest.received
        if each["type"] == "state_result"
    }


async def kept(tmp_path, stores):
    """What the next life finds in both spaces."""
    async with stored(tmp_path, stores=stores) as (session, _):
        return session.persistence.projection("a").state(), stores.open_extension("a").read().state()


async def test_before_ready_it_is_refused_with_an_answer_and_from_ready_on_it_counts(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.send(type="hello", name="a", capabilities=["effects"])
        commit(guest, "1", "k", 1)
        await guest.frames("state_result")
        commit(guest, "2", "k", 2)
        guest.send(type="ready")
        commit(guest, "3", "k", 3)
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (session, guest):
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {"1": (False, "not_ready"), "2": (False, "not_ready"), "3": (True, "")}
        assert session.persistence.projection("a").state() == {"k": 3}


async def test_in_one_breath_with_hello_it_counts_from_ready_on(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.send(type="hello", name="a", capabilities=["effects"])
        commit(guest, "1", "k", 1)
        guest.send(type="ready")
        commit(guest, "2", "k", 2)
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (_, guest):
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {"1": (False, "not_ready"), "2": (True, "")}


async def test_what_cannot_be_read_is_answered(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"])
        guest.send(type="state_commit", id="1", space="moon")
        guest.send(type="broker_call", id="2", invocation=[], operation="memory.get")
        guest.send(type="state_commit", id="i" * 2000, space="moon")
        guest.send(type="broker_call", id="i" * 2000, invocation=[], operation="memory.get")
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (session, guest):
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {"1": (False, "invalid_payload")}
        (answer,) = [each for each in guest.received if each["type"] == "broker_result"]
        assert (answer["id"], answer["error"]["code"]) == ("2", "invalid_arguments")
        assert codes(session.host).count("frame_invalid") == 4


async def test_one_that_speaks_no_effects_is_not_answered_in_them(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet()
        guest.send(type="state_commit", id="1", space="session")
        guest.send(type="broker_call", id="2", invocation="1", operation="memory.get")
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (session, guest):
        await trio.testing.wait_all_tasks_blocked()
        assert {each["type"] for each in guest.received} == {"hello_ack"}
        assert codes(session.host).count("frame_unknown") == 2


async def test_what_it_saves_as_its_session_ends_is_stored_and_it_is_told(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="hook", descriptor={"event": "session_shutdown"})
        guest.send(type="ready")
        invocation = (await guest.frames("invoke"))["id"]
        for space in SPACES:
            commit(guest, space, "k", "saved", space)
            await guest.frames("state_result")
        guest.send(type="invoke_result", id=invocation)
        await guest.until_shutdown()

    async with stored(tmp_path, program, stores=stores) as (_, guest):
        pass
    assert results(guest) == {"session": (True, ""), "extension": (True, "")}
    assert await kept(tmp_path, stores) == ({"k": "saved"}, {"k": "saved"})


@pytest.mark.parametrize("how", ["shutdown", "exit"])
async def test_what_it_stores_with_its_last_breath_is_stored(tmp_path, autojump_clock, how) -> None:
    stores = MemoryStores()

    async def program(guest):
        guest.greet(capabilities=["effects"], events=["go"])
        if how == "shutdown":
            await guest.until_shutdown()
        else:
            await guest.frames("event")
        for number in range(30):
            for space in SPACES:
                commit(guest, f"{space} {number}", f"k{number % 3}", number, space)

    async with stored(tmp_path, program, stores=stores) as (session, _):
        session.emit("go", {})
        await trio.sleep(1)
    expected = {"k0": 27, "k1": 28, "k2": 29}
    assert await kept(tmp_path, stores) == (expected, expected)


async def test_of_one_that_was_never_ready_nothing_is_stored(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="subscribe", events=["x"])
        await guest.until_shutdown()
        commit(guest, "1", "k", 1)

    async with world(tmp_path, state=stores, deadlines=Deadlines(auto_ready_s=50, ready_cap_s=50)) as (around, host):
        around.add("a", program, **WRITER)
        async with host.open_session("s") as session:
            with trio.move_on_after(1):
                await session.load_all()
        assert "state_refused" in codes(host)
    assert await kept(tmp_path, stores) == ({}, {})


async def test_what_cannot_be_stored_by_the_end_is_given_up_and_told(tmp_path, autojump_clock, monkeypatch) -> None:
    async def never(*_, **__):
        await trio.sleep_forever()

    async with stored(tmp_path, hooker()) as (session, guest):
        monkeypatch.setattr(session.persistence.shared, "_in_thread", never)
        commit(guest, "1", "k", 1, "extension")
        await trio.testing.wait_all_tasks_blocked()
    assert results(guest) == {}
    assert any("1 commits were not on the disk 10 s" in each.message for each in session.host.diagnostics)


async def test_more_than_may_wait_are_refused_each_with_an_answer(tmp_path, autojump_clock) -> None:
    most = HostConfig().limits.waiting_work

    async def program(guest):
        guest.greet(capabilities=["effects"])
        for number in range(most + 1):
            commit(guest, str(number), "k", number)
        await guest.until_shutdown()

    async with stored(tmp_path, program) as (session, guest):
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {
            **{str(number): (True, "") for number in range(most)},
            str(most): (False, "resource_limit"),
        }
        assert session.persistence.projection("a").state() == {"k": most - 1}
        commit(guest, "later", "k", "later")
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest)["later"] == (True, "")


async def test_a_store_that_fails_in_the_shared_space_is_told_and_the_next_commit_counts(
    tmp_path, autojump_clock, monkeypatch
) -> None:
    program = hooker()
    async with stored(tmp_path, program) as (session, guest):
        with monkeypatch.context() as patch:
            failures = iter([StoreFailed("the disk is full"), ZeroDivisionError("oops")])

            def fail(*_, **__):
                raise next(failures)

            patch.setattr(MemoryExtensionStore, "commit", fail)
            commit(guest, "1", "k", 1, "extension")
            commit(guest, "2", "k", 2, "extension")
            await trio.testing.wait_all_tasks_blocked()
        commit(guest, "3", "k", 3, "extension")
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {
            "1": (False, "persistence_failed"),
            "2": (False, "persistence_failed"),
            "3": (True, ""),
        }
        assert "ready" in [row.state for row in session.extensions()]
