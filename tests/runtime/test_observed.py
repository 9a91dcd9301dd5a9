"""What a host remembers of itself: its decisions, in memory and in a log, and its statistics."""

from __future__ import annotations

import trio
from runtime.fakes import Guest, codes, world

from trio_exthost import Deadlines, HostInstrument, Limits, SimpleTool
from trio_exthost.runtime.decisions import read_decisions


async def _bash(arguments):
    await trio.lowlevel.checkpoint()
    return "ran"


BASH = SimpleTool("bash", "", {"type": "object"}, _bash)


async def guard(guest: Guest) -> None:
    """Rewrites the first call, is late with the second, refuses the rest; its command fails."""
    guest.send(type="hello", name=guest.name)
    guest.send(type="register_command", name="fail")
    guest.send(type="subscribe", intercept=["tool_call"])
    guest.send(type="ready")
    answers = [{"modified_args": {"command": "ls"}, "reason": "a key"}, None]
    while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
        if frame["type"] == "event_intercept":
            answer = answers.pop(0) if answers else {"block": True, "reason": "no"}
            if answer is not None:
                guest.send(type="event_intercept_response", id=frame["id"], **answer)
        elif frame["type"] == "command_invoked":
            guest.send(type="command_response", id=frame["id"], error="it failed")


async def use(host, around) -> list[str]:
    around.add("guard", guard)
    async with host.open_session("s", tools=[BASH]) as session:
        await session.load_all()
        explained = []
        with session.open_run() as run:
            for number in range(3):
                async with run.tool_call(f"c{number}", "bash", {"command": "TOKEN=abc123 ls"}) as call:
                    await call.execute()
                explained.append(call.verdict.explain())
        await session.run_command("fail", "")
    return explained


async def test_every_decision_is_in_memory_and_in_the_log(tmp_path, autojump_clock) -> None:
    path = tmp_path / "decisions.jsonl"
    async with world(tmp_path, decision_log=path) as (around, host):
        assert host.instrument is None
        explained = await use(host, around)
        kept = tuple(host.decisions)
    assert [each.explain() for each in kept] == explained
    assert read_decisions(path).decisions == kept
    assert [(each.tool_id, each.tool_name, each.run_id != "", each.session_id) for each in kept] == [
        (f"c{number}", "bash", True, "s") for number in range(3)
    ]
    assert host.decisions.of_tool("c1") == (kept[1],)
    assert b"abc123" not in path.read_bytes()


async def test_statistics_count_each_member_and_each_call(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=Deadlines(intercept_s=1)) as (around, host):
        await use(host, around)
        asked, command = sorted(host.stats().points, key=lambda point: point.name, reverse=True)
    assert (asked.extension, asked.name, asked.count, asked.timeouts, asked.max_s) == ("guard", "tool_call", 3, 1, 1)
    assert (command.extension, command.kind, command.name, command.count) == ("guard", "command", "fail", 1)


async def test_drops_and_waiting_frames_are_in_the_statistics(tmp_path, autojump_clock) -> None:
    async def deaf(guest: Guest) -> None:
        guest.greet(events=["turn_start"])
        await trio.sleep_forever()

    async with world(tmp_path, limits=Limits(outbox_frames=4), deadlines=Deadlines(stall_s=1000)) as (around, host):
        around.add("deaf", deaf)
        async with host.open_session("s") as session:
            await session.load_all()
            for _ in range(20):
                session.emit("turn_start", {"text": "x" * 100_000})  # the pipe takes less than one
            (row,) = host.stats().extensions
        assert (row.extension, row.dropped, row.waiting) == ("deaf", 16, 4)


async def test_embedders_instrument_hears_outcomes_once_each(tmp_path, autojump_clock) -> None:
    told = []

    class Mine(HostInstrument):
        def chain_ended(self, session_id, verdict, seconds) -> None:
            told.append(verdict.event)

        def call_ended(self, session_id, extension, kind, name, outcome, seconds) -> None:
            told.append(name)

    async with world(tmp_path, instrument=Mine()) as (around, host):
        await use(host, around)
    assert told == ["tool_call"] * 3 + ["fail"]


async def test_log_that_cannot_be_written_is_a_diagnostic_and_nothing_else(tmp_path, autojump_clock) -> None:
    (tmp_path / "file").write_text("")
    async with world(tmp_path, decision_log=tmp_path / "file" / "d.jsonl") as (around, host):
        assert len(await use(host, around)) == 3
        assert codes(host).count("log_write_failed") == 1
