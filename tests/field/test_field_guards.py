"""Cases from the field: who is asked before a tool runs, for how long, and what counts when no usable answer comes."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import pytest
import trio
from field.helpers_b import ASK, asked, bash, execute
from runtime.fakes import Guest, world
from runtime.real.programs import SLACK_S, Place, codes_of, row_of, running

from trio_exthost import CallTimedOut, Deadlines, Outcome, StepKind

STOPPED = Deadlines(ready_cap_s=30, intercept_s=0.3, chain_s=0.5, stall_s=60, stop_grace_s=0.3, term_grace_s=0.2)


async def test_c54_a_stopped_guard_takes_its_deadline_and_three_take_the_chains(tmp_path) -> None:
    place = Place(tmp_path)
    names = ("one", "two", "three")
    for name in names:
        place.add(name, "greet(intercept=['tool_call'])\nhang()")
    async with running(place, deadlines=STOPPED) as (_host, session):
        for name in names:
            os.kill(row_of(session, name).pid, signal.SIGSTOP)
        with trio.fail_after(STOPPED.chain_s + SLACK_S):
            verdict = await session.intercept("tool_call", ASK)
        kinds = [step.kind for step in verdict.steps]
        assert kinds == [StepKind.TIMED_OUT] * 3
        assert verdict.steps[-1].reason == "was not asked: the chain's time is used up"
        assert verdict.outcome is Outcome.ALLOW


async def test_c54_the_hosts_clock_alone_keeps_deadlines_of_one_that_never_reads(tmp_path, autojump_clock) -> None:
    async def never_reads(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name)
        if guest.name == "a":
            guest.send(type="register_command", name="x")
        guest.send(type="subscribe", intercept=["tool_call"])
        guest.send(type="ready")
        await trio.sleep_forever()

    async with world(tmp_path, deadlines=Deadlines(stall_s=1000)) as (around, host):
        around.add("a", never_reads)
        async with host.open_session("s") as session:
            await session.load_all()
            await session.intercept("tool_call", ASK)
            assert trio.current_time() == pytest.approx(5)
            with pytest.raises(CallTimedOut):
                await session.run_command("x")
            assert trio.current_time() == pytest.approx(35)
    async with world(tmp_path, deadlines=Deadlines(stall_s=1000)) as (around, host):
        for name in ("a", "b", "c"):
            around.add(name, never_reads)
        async with host.open_session("s") as session:
            await session.load_all()
            begun = trio.current_time()
            await session.intercept("tool_call", ASK)
            assert trio.current_time() - begun == pytest.approx(10), "the chain's limit, not three times five"


async def exits(guest: Guest) -> None:
    guest.greet(intercept=["tool_call"])
    await guest.frames("event_intercept")
    guest.exit(3)
    await trio.sleep_forever()


async def garbage(guest: Guest) -> None:
    guest.greet(intercept=["tool_call"])
    frame = await guest.frames("event_intercept")
    guest.send(type="event_intercept_response", id=frame["id"], block="perhaps")
    await guest.until_shutdown()


FAILING: dict[str, tuple[Any, StepKind]] = {
    "sleeps": (asked(lambda _frame: {}, after=6), StepKind.TIMED_OUT),
    "exits": (exits, StepKind.FAILED),
    "garbage": (garbage, StepKind.FAILED),
}


@pytest.mark.parametrize("way", FAILING)
@pytest.mark.parametrize("on_failure", ["block", None])
async def test_c55_a_guard_that_fails_counts_as_its_manifest_says(tmp_path, autojump_clock, way, on_failure) -> None:
    program, kind = FAILING[way]
    executed: list[Any] = []
    async with world(tmp_path) as (around, host):
        around.add("guard", program, **({"on_failure": on_failure} if on_failure else {}))
        async with host.open_session("s", tools=[bash(executed)]) as session:
            await session.load_all()
            verdict, text = await execute(session)
            (step,) = verdict.steps
            assert step.kind is kind
            assert step.policy.value == (on_failure or "allow")
            assert "guard" in verdict.explain()
            assert bool(executed) == (on_failure is None)
            assert ("guard" in text) == (on_failure == "block")
            assert "policy_decided" in codes_of(host, "guard"), "a visible warning"


async def test_c55_a_guard_that_did_not_load_refuses_and_one_without_that_word_does_not(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("guard", "sys.exit(3)", on_failure="block")
    executed: list[Any] = []
    async with running(place, tools=[bash(executed)]) as (_host, session):
        verdict, text = await execute(session)
        assert [step.kind for step in verdict.steps] == [StepKind.NOT_RUNNING]
        assert "guard" in text
        assert "exit 3" in verdict.explain()
        assert executed == []
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.add("lax", "sys.exit(3)")
    async with running(other, tools=[bash(executed)]) as (host, session):
        assert (await execute(session))[1] == "ran"
        assert "exited" in codes_of(host, "lax")


REASON = "nö:\n  1. «rm» is final\n  2. 删除 🗑"


@pytest.mark.parametrize("answer", [{"reason": REASON}, {"reason": ""}, {}])
async def test_c56_the_reason_reaches_the_model_word_for_word(tmp_path, answer) -> None:
    place = Place(tmp_path)
    say = f"send(type='event_intercept_response', id=f['id'], block=True, **{answer!r})"
    place.add("guard", f"greet(intercept=['tool_call'])\nfor f in frames('event_intercept'): {say}")
    async with running(place, tools=[bash()]) as (_host, session):
        verdict, text = await execute(session, command="rm")
        assert verdict.by == "guard"
        if answer.get("reason"):
            assert REASON in text
        else:
            assert text == "guard refused without giving a reason"


async def test_c58_the_chain_gives_the_same_result_whatever_the_delays(tmp_path, autojump_clock) -> None:
    def first(frame: dict[str, Any]) -> dict[str, Any]:
        command = frame["tool_args"]["command"]
        return {} if "a(" in command else {"modified_args": {"command": f"a({command})"}}

    def last(frame: dict[str, Any]) -> dict[str, Any]:
        return {"modified_args": {"command": f"c({frame['tool_args']['command']})"}}

    for seed in range(50):
        rng = random.Random(seed)
        executed: list[Any] = []
        async with world(tmp_path) as (around, host):
            around.add("told", late(told, rng.random()))
            for name, answer in (("a", first), ("b", lambda _frame: {}), ("c", last)):
                around.add(name, late(asked(answer, after=rng.random()), rng.random()))
            async with host.open_session("s", tools=[bash(executed)]) as session:
                await session.load_all()
                verdict, _ = await execute(session, command="ls")
                await trio.testing.wait_all_tasks_blocked()
                proposed, *_ = [each for each in around.guests["told"].received if each.get("event") == "tool_call"]
        assert proposed["tool_args"] == {"command": "ls"}, "the event is about what the model proposed"
        assert executed == [{"command": "c(a(ls))"}]
        assert verdict.original["tool_args"] == {"command": "ls"}
        assert [step.extension for step in verdict.steps if step.kind is StepKind.REWROTE] == ["a", "c"]


async def told(guest: Guest) -> None:
    guest.greet(events=["tool_call"])
    await guest.until_shutdown()


def late(program: Any, seconds: float) -> Any:
    """The program, started so much later."""

    async def later(guest: Guest) -> None:
        await trio.sleep(seconds)
        await program(guest)

    return later


async def test_c58_any_block_wins_and_says_whose_it_is(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", asked(lambda _frame: {"modified_args": {"command": "other"}}))
        around.add("b", asked(lambda _frame: {"block": True, "reason": "no"}, after=1))
        around.add("c", asked(lambda _frame: {}))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            verdict, text = await execute(session, command="ls")
            assert (verdict.outcome, verdict.by, verdict.reason) == (Outcome.BLOCK, "b", "no")
            assert "no" in text
            assert [step.extension for step in verdict.steps] == ["a", "b"]
