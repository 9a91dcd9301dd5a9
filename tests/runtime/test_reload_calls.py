"""Reload with calls in flight, with open runs, and with chains on their way."""

from __future__ import annotations

import pytest
import trio
from runtime.fakes import Guest, assert_nothing_left, world
from runtime.reloads import answer, ask, broken, change, frames_of, silent, version

from trio_exthost import ExtensionPolicy, Policy
from trio_exthost.errors import Reloaded


def slow(text: str, *, after: float, intercept=(), block: bool = False):
    """A program whose tool `t` takes so long, and which is in no hurry to go while it works."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=["tool_cancel"])
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="subscribe", intercept=list(intercept))
        guest.send(type="ready")
        async with trio.open_nursery() as nursery:

            async def work(frame) -> None:
                await trio.sleep(after)
                answer(guest, frame, text, block)

            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                nursery.start_soon(work, frame)
            nursery.cancel_scope.cancel()

    return program


async def test_a_result_that_comes_within_the_grace_is_delivered_and_new_calls_go_to_the_old_one_until_then(
    tmp_path, autojump_clock
) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", slow("old", after=3))
        async with host.open_session("s") as session:
            await session.load_all()
            old = around.guests["a"]
            change(around, "a", version("new", tools=("t",)))
            texts: list[str] = []

            async def call(at: float) -> None:
                await trio.sleep(at)
                texts.append((await session.call_tool("t", {})).text)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, 0)
                nursery.start_soon(call, 2)  # given to the old one within the grace of the first: it has its own
                await trio.sleep(0.5)
                begun = trio.current_time()
                report = await session.reload(when="now", grace_s=5)
                assert 4 <= trio.current_time() - begun <= 5
            assert texts == ["old", "old"]
            assert (await session.call_tool("t", {})).text == "new"
            assert len(report.restarted) == 1
            assert old.reaped


async def test_without_a_grace_it_ends_with_a_typed_error_and_the_extension_is_told(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", slow("old", after=3))
        async with host.open_session("s") as session:
            await session.load_all()
            old = around.guests["a"]
            change(around, "a", version("new", tools=("t",)))

            async def call() -> None:
                begun = trio.current_time()
                with pytest.raises(Reloaded) as caught:
                    await session.call_tool("t", {})
                assert trio.current_time() - begun < 1
                assert caught.value.extension == "a"
                assert caught.value.may_have_run

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await trio.sleep(0.5)
                await session.reload(when="now", grace_s=0)
            assert len(frames_of(old, "tool_cancel")) == 1
            assert (await session.call_tool("t", {})).text == "new"
        assert_nothing_left(session)


@pytest.mark.parametrize("required", [True, False])
async def test_a_question_that_is_cut_off_is_asked_of_the_successor(tmp_path, autojump_clock, required) -> None:
    policy = Policy(extensions={"a": ExtensionPolicy(required=True, guards={"tool:*"})} if required else {})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("a", slow("old", after=4, intercept=("tool_call",)))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("new", intercept=("tool_call",), block=True))
            verdicts = []

            async def check() -> None:
                verdicts.append(await ask(session))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(check)
                await trio.sleep(0.5)
                await session.reload(when="now", grace_s=0)
            assert [(each.blocked, each.reason) for each in verdicts] == [(True, "new")]


async def test_the_one_who_is_asked_is_whoever_is_there_when_its_turn_comes(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("first", slow("yes", after=2, intercept=("tool_call",)), priority=10)
        around.add("a", version("old", intercept=("tool_call",)))
        for name in ("first", "a"):
            change(around, name)
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("new", intercept=("tool_call",), block=True))
            async with trio.open_nursery() as nursery:

                async def check() -> None:
                    verdict = await ask(session)
                    assert [(step.extension, verdict.reason) for step in verdict.steps[-1:]] == [("a", "new")]

                nursery.start_soon(check)
                await trio.sleep(0.5)
                await session.reload(when="now")


async def test_a_successor_that_would_drop_a_required_guard_does_not_take_over(tmp_path, autojump_clock) -> None:
    policy = Policy(extensions={"a": ExtensionPolicy(required=True, guards={"tool:*"})})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("a", version("old", intercept=("tool_call",), block=True))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("new", tools=("t",)))
            (failure,) = (await session.reload()).failed
            assert failure.stage == "guard"
            assert "does not intercept tool_call" in failure.reason
            assert "unload it" in failure.reason
            assert (await ask(session)).reason == "old"
            assert session.tools() == ()
            around.programs["a"] = broken
            await session.reload()
            assert (await ask(session)).reason == "old"
        assert_nothing_left(session)


async def test_idle_waits_for_open_runs_and_takes_over_in_the_step_between_two(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("old", tools=("t",)))
        around.add("b", version("b"))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("new", tools=("t",)))
            around.candidates.pop()
            async with trio.open_nursery() as nursery:
                with session.open_run(), session.open_run():
                    nursery.start_soon(session.reload)
                    await trio.sleep(60)
                    assert session.reload_pending == ("a", "b")
                    assert session.reload_report is None
                    assert (await session.call_tool("t", {})).text == "old"
                # The next run opens before any other task has had a step.
                with session.open_run():
                    assert (await session.call_tool("t", {})).text == "new"
                    assert session.reload_pending == ()
            assert session.reload_report is not None
            assert [each.name for each in session.reload_report.restarted] == ["a"]
            assert session.reload_report.removed == ("b",)


async def test_now_does_not_wait_and_takes_over_what_waited(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            reports = []

            async def reload(**how) -> None:
                reports.append(await session.reload(**how))

            with session.open_run():
                async with trio.open_nursery() as nursery:
                    change(around, "a", version("2", tools=("t",)))
                    nursery.start_soon(reload)
                    await trio.testing.wait_all_tasks_blocked()
                    waiting = around.guests["a"]
                    assert session.reload_pending == ("a",)
                    change(around, "a", version("3", tools=("t",)))
                    nursery.start_soon(lambda: reload(when="now"))
                assert (await session.call_tool("t", {})).text == "3"
            assert reports[0] is reports[1]
            assert waiting.reaped


async def test_the_newest_candidate_wins_and_one_that_dies_while_it_waits_is_told(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            async with trio.open_nursery() as nursery:
                with session.open_run():
                    for number in ("2", "3"):
                        change(around, "a", version(number, tools=("t",)))
                        nursery.start_soon(session.reload)
                        await trio.testing.wait_all_tasks_blocked()
                        await trio.sleep(1)
                assert (await session.call_tool("t", {})).text == "3"
            assert around.spawned == 3
            change(around, "a", version("4", tools=("t",)))
            with session.open_run():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(session.reload)
                    await trio.testing.wait_all_tasks_blocked()
                    around.guests["a"].exit(7)
                assert session.reload_report is not None
                (failure,) = session.reload_report.failed
                assert "exited by itself" in failure.reason
                assert (await session.call_tool("t", {})).text == "3"


async def test_a_cancelled_reload_that_waits_leaves_the_old_one(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("2", tools=("t",)))
            with session.open_run():
                with trio.move_on_after(5):
                    await session.reload()
                assert session.reload_pending == ()
            assert (await session.call_tool("t", {})).text == "1"
            await session.reload()
            assert (await session.call_tool("t", {})).text == "2"


async def test_one_that_is_out_of_service_is_replaced_and_comes_back_never(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t", "u"), hold=("tool_call",)))
        async with host.open_session("s") as session:
            await session.load_all()
            for _ in range(3):
                with pytest.raises(Exception):  # noqa: B017 - a time-out, whichever
                    await session.call_tool("t", {})
            assert session.extensions()[0].state == "tripped"
            change(around, "a", version("2", tools=("t",)))
            await session.reload()
            await trio.sleep(1000)
            assert [tool.name for tool in session.tools()] == ["t"]
            assert (await session.call_tool("t", {})).text == "2"


async def test_one_that_is_still_starting_is_replaced(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", silent)
        async with host.open_session("s") as session:
            await session.load_all()
            old = around.guests["a"]
            change(around, "a", version("2", tools=("t",)))
            await session.reload()
            assert (await session.call_tool("t", {})).text == "2"
            assert old.reaped
        assert_nothing_left(session)
