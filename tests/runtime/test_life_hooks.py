"""Hooks where an extension begins and ends: waited for, bounded, and told why."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.fakes import codes, world
from runtime.hookers import hooker, invoked, observed
from runtime.test_hook_chain import hooked

from trio_exthost import Deadlines, LoadError

LIFE = [{"event": event} for event in ("extension_load", "session_start", "session_shutdown", "extension_unload")]


async def test_an_extension_is_told_its_begin_and_its_end_in_order(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker(*LIFE, events=["session_start"])}) as (_, guests):
        await trio.testing.wait_all_tasks_blocked()
    told = [
        (frame["type"], frame.get("event") or frame["envelope"]["event"])
        for frame in guests["a"].received
        if frame["type"] in ("invoke", "event")
    ]
    assert told == [
        ("invoke", "extension_load"),
        ("event", "session_start"),
        ("event", "session_start"),
        ("invoke", "session_shutdown"),
        ("invoke", "extension_unload"),
    ]
    assert [each["payload"] for each in invoked(guests["a"])] == [
        {"reason": "initial"},
        {"reason": "shutdown"},
        {"reason": "shutdown"},
    ]
    assert guests["a"].received[-1]["type"] == "shutdown"


async def test_an_extension_that_fails_to_begin_does_not_run(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {"error": {"code": "broken", "message": "no database"}} if event == "extension_load" else {}

    async with world(tmp_path) as (around, host):
        around.add("a", hooker(*LIFE, reply=reply))
        async with host.open_session("s") as session:
            (candidate,) = around.candidates
            with pytest.raises(LoadError, match="no database"):
                await session.load(candidate)
            assert session.registrations.active_count == 0
        assert [each["event"] for each in invoked(around.guests["a"])] == [
            "extension_load",
            "session_shutdown",
            "extension_unload",
        ]
        assert invoked(around.guests["a"])[-1]["payload"] == {"reason": "initialization_failed"}
        assert not observed(around.guests["a"])


async def test_the_session_starts_for_one_that_begins_slowly_once_it_has_begun(tmp_path, autojump_clock) -> None:
    async def slow(guest):
        guest.greet(capabilities=["effects"], ready=False, events=["session_start"])
        guest.send(type="register", registration_id=1, kind="hook", descriptor={"event": "extension_load"})
        guest.send(type="ready")
        invoke = await guest.frames("invoke")
        await trio.sleep(1.5)
        guest.send(type="invoke_result", id=invoke["id"])
        await guest.until_shutdown()

    async with hooked(tmp_path, {"a": slow}, deadlines=Deadlines(ready_cap_s=1)) as (session, guests):
        (row,) = session.extensions()
        assert not observed(guests["a"])
        await trio.sleep(2)
        await trio.testing.wait_all_tasks_blocked()
        assert len(observed(guests["a"], "session_start")) == 1


async def test_effects_are_registered_in_the_answer_to_the_begin(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        if event != "extension_load":
            return {}
        effect = {"kind": "prompt_section", "descriptor": {"section_id": "s", "text": "Be brief."}}
        return {"actions": [{"kind": "register_effect", "registration_id": 7, "effect": effect}]}

    program = hooker({"event": "extension_load", "class": "register"}, reply=reply)
    async with hooked(tmp_path, {"a": program}) as (session, guests):
        assert session.registrations.has_request_effects()
        await trio.testing.wait_all_tasks_blocked()
        assert [f["registration_id"] for f in guests["a"].received if f["type"] == "registered"] == [1, 7]


async def test_an_end_that_takes_too_long_is_cut_short_and_the_whole_stop_stays_bounded(
    tmp_path, autojump_clock
) -> None:
    program = hooker(*LIFE[2:], reply=lambda *_: None)
    async with world(tmp_path) as (around, host):
        around.add("a", program)
        async with host.open_session("s") as session:
            await session.load_all()
            began = trio.current_time()
        assert trio.current_time() - began <= 5
        assert "call_timed_out" in codes(host)


async def test_one_that_dies_while_it_ends_is_not_waited_for(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="hook", descriptor={"event": "extension_unload"})
        guest.send(type="ready")
        await guest.frames("invoke")

    async with world(tmp_path) as (around, host):
        around.add("a", program)
        async with host.open_session("s") as session:
            await session.load_all()
            began = trio.current_time()
        assert trio.current_time() - began < 1


async def test_what_an_extension_registers_in_an_answer_while_it_ends_does_not_stay(tmp_path, autojump_clock) -> None:
    effect = {"kind": "prompt_section", "descriptor": {"section_id": "s", "text": "Be brief."}}

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        for number, descriptor in enumerate(({"event": "extension_load", "class": "register"}, LIFE[3]), 1):
            guest.send(type="register", registration_id=number, kind="hook", descriptor=descriptor)
        guest.send(type="ready")
        load, unload = await guest.frames("invoke"), await guest.frames("invoke")
        actions = [{"kind": "register_effect", "registration_id": 7, "effect": effect}]
        guest.send(type="invoke_result", id=load["id"], actions=actions)
        guest.send(type="invoke_result", id=unload["id"])
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", program)
        async with host.open_session("s") as session, trio.open_nursery() as nursery:
            nursery.start_soon(session.load_all)
            await trio.testing.wait_all_tasks_blocked()
            await session.unload("a")
            assert session.registrations.active_count == 0
            nursery.cancel_scope.cancel("unloaded")
