"""Out of service and back: what an instance has registered goes with it, and comes back as its frames have left it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.fakes import assert_nothing_left, codes, world
from runtime.puppets import ALL, answer, command, do, puppet, register, result, section, text_value, tool

from trio_exthost import CallError, CallTimedOut, Deadlines, EffectKind, MalformedReply, RemoteError, Success

QUICK = Deadlines(tool_s=1, command_s=1, circuit_delay_s=10)


async def fail(session, times: int = 3) -> None:
    """Have the puppet's tool `t` not answer, so many times."""
    for _ in range(times):
        with pytest.raises(CallTimedOut):
            await session.call_tool("t", {})


def keys(session) -> dict[str, list[str]]:
    """What is registered, by kind, without the puppet's own command."""
    kinds = (EffectKind.TOOL, EffectKind.COMMAND, EffectKind.PROMPT_SECTION)
    found = {kind.value: [each.registration.key for each in session.ledger.active_records(kind)] for kind in kinds}
    found["command"] = [key for key in found["command"] if key != "do"]
    return found


async def test_its_records_go_and_come_back_with_the_probe(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(
                session,
                register(1, "tool", tool("t")),
                register(2, "prompt_section", section("s", "x")),
                register(3, "command", command("c")),
                answer(3, result({"status": "success"})),
            )
            await fail(session)
            assert session.extensions()[0].state == "tripped"
            assert keys(session) == {"tool": [], "command": [], "prompt_section": []}
            with pytest.raises(CallError):
                await session.call_tool("t", {})
            received = around.guests["p"].received
            await trio.testing.wait_all_tasks_blocked()
            assert [
                (frame["registration_id"], frame["cause"]) for frame in received if frame["type"] == "disposed"
            ] == [
                (3, "fault"),
                (2, "fault"),
                (1, "fault"),
            ]
            await trio.sleep(11)
            assert keys(session) == {"tool": ["t"], "command": ["c"], "prompt_section": ["s"]}
            assert await session.run_command("c") == Success()
            assert session.extensions()[0].state == "ready"
            assert session.extensions()[0].reason == ""
            handles = [frame["handle"] for frame in received if frame["type"] == "registered"]
            assert handles == sorted(set(handles))
            assert len(handles) == 6
            await fail(session, 2)
            assert session.extensions()[0].state == "ready"
        assert_nothing_left(session)


async def test_what_it_sends_while_it_is_out_of_service_counts_when_it_is_back(tmp_path, autojump_clock) -> None:
    async def program(guest) -> None:
        async def later() -> None:
            await trio.sleep(8)
            guest.send(type="dispose", registration_id=2)
            guest.send(type="update", registration_id=1, descriptor=tool("t", description="new"))
            guest.send(**register(3, "tool", tool("u")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(later)
            await puppet(guest)
            nursery.cancel_scope.cancel("shutdown")

    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", program, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(session, register(1, "tool", tool("t")), register(2, "tool", tool("gone")))
            await fail(session)
            await trio.sleep(7)
            assert keys(session)["tool"] == []
            await trio.sleep(10)
            assert {info.name: info.description for info in session.tools()} == {"t": "new", "u": "Does u"}


async def test_one_question_at_a_time_while_half_open_and_a_cancelled_one_is_no_probe(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(session, register(1, "tool", tool("t")))
            await fail(session)
            await trio.sleep(11)
            async with trio.open_nursery() as nursery:

                async def given_up() -> None:
                    with trio.move_on_after(0.5):
                        await session.call_tool("t", {})

                nursery.start_soon(given_up)
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(CallError, match="tripped"):
                    await session.call_tool("t", {})
            assert session.extensions()[0].state == "tripped"
            await do(session, answer(1, result(text_value("well"))))  # an answer of its command is as good as any
            assert session.extensions()[0].state == "ready"
            assert (await session.call_tool("t", {})).text == "well"


async def test_an_error_in_an_answer_is_an_answer_and_an_unusable_one_is_a_failure(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(session, register(1, "tool", tool("t")))
            await do(session, answer(1, result(None, error={"code": "no", "message": "no"})))
            for _ in range(5):
                with pytest.raises(RemoteError):
                    await session.call_tool("t", {})
            await do(session, answer(1, result({"content": "no list"})))
            for _ in range(3):
                with pytest.raises(MalformedReply):
                    await session.call_tool("t", {})
            assert session.extensions()[0].state == "tripped"
            assert "tripped" in codes(host)


async def test_one_out_of_service_can_be_unloaded_and_loaded(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(session, register(1, "tool", tool("t")))
            await fail(session)
            await session.unload("p")
            assert session.extensions()[0].state == "stopped"
            await trio.sleep(100)
            await session.load_all()
            assert session.extensions()[0].state == "ready"
            assert keys(session)["tool"] == []


async def test_what_was_bound_to_a_run_that_has_ended_does_not_come_back(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", puppet, permissions=ALL)
        around.add("q", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            with session.open_run(run_id="r"):
                await do(
                    session,
                    register(1, "tool", tool("t")),
                    register(2, "tool", tool("bound", scope="run"), scope="run", id="r"),
                    register(3, "tool", tool("taken")),
                )
                await fail(session)
            await do(session, register(1, "tool", tool("taken")), name="do-q")
            await trio.sleep(11)
            assert sorted(keys(session)["tool"]) == ["t", "taken"]
            frames = [frame for frame in around.guests["p"].received if frame["type"] == "rejected"]
            assert [(frame["registration_id"], frame["code"]) for frame in frames] == [(3, "conflict")]


async def test_zots_registrations_come_back_too(tmp_path, autojump_clock) -> None:
    async def zot(guest) -> None:
        guest.send(type="hello", name="z")
        guest.send(type="register_command", name="c")
        guest.send(type="subscribe", events=["tick"], intercept=["turn_start"])
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("z", zot)
        async with host.open_session("s") as session:
            await session.load_all()
            for _ in range(3):
                with pytest.raises(CallTimedOut):
                    await session.run_command("c")
            assert session.commands() == ()
            assert not session.views.subscribers
            await trio.sleep(11)
            assert [info.name for info in session.commands()] == ["c"]
            assert list(session.views.subscribers) == ["tick"]
            assert list(session.views.interceptors) == ["turn_start"]


async def test_an_answer_that_comes_while_it_is_out_of_service_takes_back_what_it_says(
    tmp_path, autojump_clock
) -> None:
    async with world(tmp_path, deadlines=Deadlines(tool_s=1, command_s=20, circuit_delay_s=10)) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            await do(
                session,
                register(1, "tool", tool("t")),
                register(2, "tool", tool("once")),
                register(3, "command", command("slow")),
                answer(3, {"type": "sleep", "s": 9}, result({"status": "success"}, dispose=[2])),
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run_command, "slow")
                await fail(session)
            await trio.sleep(20)
            assert keys(session)["tool"] == ["t"]


async def test_what_was_bound_to_a_run_does_not_move_to_a_later_one_of_that_id(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=QUICK) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            with session.open_run(run_id="r") as run, run.open_request("q"):
                await do(
                    session,
                    register(1, "tool", tool("t")),
                    register(2, "tool", tool("of-run", scope="run"), scope="run", id="r"),
                    register(3, "tool", tool("of-request", scope="request"), scope="request", id="q"),
                )
                await fail(session)
            with session.open_run(run_id="r") as run, run.open_request("q"):
                await trio.sleep(11)
                assert [info.name for info in session.tools(run)] == ["t"]
