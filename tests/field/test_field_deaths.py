"""Cases from the field: terminals, programs that die or hang, and who may end them."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from typing import Any

import pytest
import trio
from field.helpers_b import interrupted_on_terminal, offers, say, until_interrupted
from runtime.fakes import Guest, assert_nothing_left, serve, world
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    SLACK_S,
    Place,
    assert_good_answers,
    codes_of,
    row_of,
    running,
    until_state,
)

from trio_exthost import CallError, CallTimedOut, Deadlines, ExtensionExited, ExtensionPolicy, Policy, UnknownTool

SOON = Deadlines(ready_cap_s=30, tool_s=0.2, stall_s=60, stop_grace_s=0.3, term_grace_s=0.2)
TTY = """
def look(frame):
    try:
        os.open("/dev/tty", os.O_RDWR)
        result(frame["id"], "opened")
    except OSError as exc:
        result(frame["id"], type(exc).__name__)
serve(look, tools=["tty"])
"""


def test_c41_ctrl_c_is_the_hosts_and_no_extension_has_the_terminal(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("tty", TTY)
    assert json.loads(interrupted_on_terminal(until_interrupted, place))["tty"] == "OSError"
    assert place.alive() == []


THIRD = """
greet(events=["tick"], tools=["late"])
for i, _ in zip(range(3), frames("event")): pass
time.sleep({0}); os._exit(7)
"""


async def test_c42_death_on_the_third_event_is_a_state_and_a_typed_error(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    for number in range(6):
        place.add(f"dead{number}", THIRD.format(number / 200).replace("late", f"late{number}"))
    async with running(place) as (_host, session):
        ended: list[str] = []

        async def call(name: str) -> None:
            with pytest.raises(ExtensionExited) as caught:
                await session.call_tool(name, {})
            ended.append(caught.value.exit_status)

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(call, f"late{number}")
            await trio.testing.wait_all_tasks_blocked()
            while len(ended) < 6:
                session.emit("tick", {"n": 0})
                await trio.lowlevel.checkpoint()
        assert ended == ["exit 7"] * 6
        for number in range(6):
            assert "exit 7" in (await until_state(session, f"dead{number}", "failed")).reason
        await assert_good_answers(session)


async def test_c42_300_deaths_at_random_moments_end_nobody_else(tmp_path, autojump_clock) -> None:
    rng = random.Random(42)

    async def third(guest: Guest) -> None:
        guest.greet(events=["tick"])
        for _ in range(3):
            await guest.frames("event")
        await trio.sleep(rng.random() / 100)
        guest.exit(7)
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("dead", third)
        async with host.open_session("s") as session:
            for _ in range(300):
                await session.load("dead") if session.extensions() else await session.load_all()
                while row_of(session, "dead").state == "ready":
                    session.emit("tick", {})
                    await trio.sleep(0.001)
                row = await until_state(session, "dead", "failed")
                assert "exit 7" in row.reason
        assert around.spawned == 300
        assert_nothing_left(session)


async def test_c45_a_closed_stdout_ends_the_pending_call_and_the_program(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("mute", "serve(lambda frame: (os.close(1), hang()), tools=['wait'])")
    async with running(place) as (_host, session):
        with trio.fail_after(1 + SLACK_S), pytest.raises(ExtensionExited, match="closed its output"):
            await session.call_tool("wait", {})
        assert session.tools() == ()
        with trio.fail_after(5 + SLACK_S):
            await until_state(session, "mute", "failed")
        place.wait_gone(SLACK_S)


async def test_c45_a_closed_stdin_is_noticed_by_a_write(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", "greet(events=['tick'], ready=False); os.close(0); send(type='ready'); hang()")
    async with running(place) as (host, session):
        session.emit("tick", {"n": 0})
        assert "closed its input" in (await until_state(session, "deaf", "failed")).reason
        assert "input_closed" in codes_of(host, "deaf")


async def test_c46_any_task_may_start_stop_and_reload_and_what_is_stopped_can_be_stopped(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("a", "serve(tools=['t'])")
    place.add("good", GOOD)
    async with running(place, load=False) as (_host, session):
        acts = [session.load_all, session.reload, *(lambda: session.unload("a"),) * 2]
        for act in [*acts, lambda: session.load("a"), lambda: session.reload("a"), lambda: session.unload("a")]:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(act)
        assert row_of(session, "a").state == "stopped"
        await assert_good_answers(session)
        await session.aclose()
        await session.aclose()


async def test_c46_a_session_that_ends_within_a_cancelled_scope_ends(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("a", "serve()")
    async with running(place, load=False) as (host, _session):
        with trio.CancelScope() as scope:
            async with host.open_session("other") as session:
                await session.load_all()
                scope.cancel("the user leaves")
                await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert session.is_closed
        assert place.alive() == []


async def test_c49_a_crash_loop_has_a_budget_and_waits_for_a_person(tmp_path, autojump_clock) -> None:
    async def crash(guest: Guest) -> None:
        guest.greet()
        guest.exit(1)
        await trio.sleep_forever()

    policy = Policy(extensions={"a": ExtensionPolicy(restart="on_crash", restart_budget=5, restart_window_s=60)})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("a", crash)
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.sleep(600)
            assert around.spawned == 1 + 5
            row = row_of(session, "a")
            assert row.state == "gave_up"
            assert "given up after 5 restarts in 60 s" in row.reason
            around.programs["a"] = serve
            await session.reload("a")
            assert row_of(session, "a").state == "ready"


async def test_c50_a_crash_is_told_with_its_signal_its_last_words_and_its_log(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("dead", "serve(lambda frame: (print('Traceback: at last', file=sys.stderr), os.abort()), tools=['die'])")
    async with running(place) as (_host, session):
        with pytest.raises(ExtensionExited) as caught:
            await session.call_tool("die", {})
        row = await until_state(session, "dead", "failed")
        told = str(caught.value)
        assert "exit: killed by SIGABRT" in told
        assert "in flight: tool 'die'" in told
        assert caught.value.in_flight == ("tool 'die'",)
        assert 0 < caught.value.uptime_s < PATIENCE_S
        assert f"uptime: {caught.value.uptime_s:.2f} s" in told
        assert "Traceback: at last" in told
        assert str(row.log_path) in told
        assert (
            f"killed by SIGABRT after {caught.value.uptime_s:.2f} s; while tool 'die' awaited its answer" in row.reason
        )
        assert row.error.in_flight == ("tool 'die'",)
        assert row.error.stderr_tail == caught.value.stderr_tail


async def test_c50_uptime_is_from_the_start_and_all_in_flight_is_counted(tmp_path, autojump_clock) -> None:
    async def crash(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="ready")
        await trio.sleep(90)
        guest.exit(3)
        await trio.sleep_forever()

    ended: list[ExtensionExited] = []
    async with world(tmp_path, deadlines=Deadlines(tool_s=500)) as (around, host):
        around.add("a", crash)
        async with host.open_session("s") as session:
            await session.load_all()

            async def ask() -> None:
                with pytest.raises(ExtensionExited) as caught:
                    await session.call_tool("t", {})
                ended.append(caught.value)

            async with trio.open_nursery() as nursery:
                for _ in range(7):
                    nursery.start_soon(ask)
            row = row_of(session, "a")
            assert "(exit 3 after 90.00 s; while tool 't' awaited its answer, and 6 more; " in row.reason
            assert {each.uptime_s for each in ended} == {90.0}
            assert "uptime: 90.00 s\n  in flight: " + "tool 't', " * 5 + "2 more\n" in str(ended[0])


async def test_c51_an_endless_loop_is_seen_and_can_be_stopped(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("busy", "greet(tools=['t'])\nwhile True: pass")
    async with running(place, deadlines=SOON) as (host, session):
        for number in range(1, host.config.limits.circuit_failures + 1):
            with pytest.raises(CallTimedOut):
                await session.call_tool("t", {})
            row = row_of(session, "busy")
            assert (row.overdue_calls, row.last_overdue) == (number, "tool 't' got no answer within 0.2 s")
            if row.state == "ready":
                assert re.search("not responding for [0-9.]+ s: tool 't' got no answer within 0.2 s", row.reason)
        row = row_of(session, "busy")
        assert row.state == "tripped"
        assert "3 failures in a row, the last: tool 't' got no answer within 0.2 s" in row.reason
        with pytest.raises((CallError, UnknownTool)):
            await session.call_tool("t", {})
        with trio.fail_after(SOON.stop_total_s + SLACK_S):
            await session.unload("busy")
        assert place.alive() == []


async def test_c51_one_overdue_call_is_in_the_row_until_it_answers_again(tmp_path, autojump_clock) -> None:
    async def busy(guest: Guest, frame: dict[str, Any]) -> None:
        if frame["args"]["kind"] == "answer":
            say(guest, frame, "here")
        elif frame["args"]["kind"] == "garbage":
            guest.send(type="tool_result", id=frame["id"], content=7)
        await trio.lowlevel.checkpoint()

    async with world(tmp_path) as (around, host):
        around.add("a", offers("t", on_call=busy))
        async with host.open_session("s") as session:
            await session.load_all()

            async def ask(kind: str) -> Any:
                with suppress(CallError):
                    await session.call_tool("t", {"kind": kind})
                await trio.sleep(15)
                return row_of(session, "a")

            overdue = "tool 't' got no answer within 60 s"
            assert (await ask("answer")).overdue_calls == 0
            row = await ask("nothing")
            assert (row.state, row.overdue_calls, row.last_overdue) == ("ready", 1, overdue)
            assert row.reason == f"not responding for 75.0 s: {overdue}"
            assert (await ask("nothing")).reason == f"not responding for 150.0 s: {overdue}"
            row = await ask("answer")
            assert (row.state, row.reason, row.overdue_calls, row.last_overdue) == ("ready", "", 2, overdue)
            assert (await ask("nothing")).reason == f"not responding for 75.0 s: {overdue}"
            assert (await ask("garbage")).reason == "", "what cannot be used is an answer all the same"
