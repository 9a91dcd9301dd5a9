"""Programs that do not read, read late, or are stopped: the host's own clock decides, and frames stay whole."""

from __future__ import annotations

import json
import os
import signal

import pytest
import trio
import trio.testing
from runtime.real.programs import (
    GOOD,
    QUICK,
    Place,
    assert_good_answers,
    codes_of,
    emit_in_step,
    row_of,
    run_alone,
    running,
    text_of,
    until_state,
)

from trio_exthost import CallTimedOut, Deadlines, Outcome, Overloaded, StepKind, open_host

SOON = Deadlines(
    ready_cap_s=30, tool_s=0.5, intercept_s=0.5, chain_s=0.8, stall_s=60, stop_grace_s=0.2, term_grace_s=0.2
)
ASK = {"tool_id": "t", "tool_name": "bash", "tool_args": {}}
DEAF = "greet(events=['tick'], intercept=['tool_call'], tools=['never']); hang()"


async def flood_the_deaf(place: Place) -> dict[str, object]:
    async with open_host(place.config(deadlines=SOON)) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        seen = await emit_in_step(session, 0, 20_000, text="x" * 1000)
        with trio.fail_after(0.4), pytest.raises(Overloaded):  # less than a deadline: nothing is waited for
            await session.call_tool("never", {})
        with trio.fail_after(0.4):
            verdict = await session.intercept("tool_call", ASK)
        await assert_good_answers(session)
        return {
            "in_order": seen == list(range(20_000)),
            "steps": [(step.extension, step.kind.value) for step in verdict.steps],
            "dropped": "events_dropped" in codes_of(host, "deaf"),
        }


def test_20_000_events_for_one_that_never_reads_cost_the_others_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", DEAF)
    place.add("good", GOOD)
    outcome = run_alone(flood_the_deaf, place)
    assert outcome["in_order"]
    assert outcome["steps"] == [["deaf", StepKind.OVERLOADED.value]]
    assert outcome["dropped"]
    assert outcome["grown_mib"] < 32
    assert place.alive() == []


async def test_calls_that_wait_behind_a_full_pipe_end_at_their_deadline(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", DEAF)
    place.add("good", GOOD)
    async with running(place, deadlines=SOON) as (_host, session):
        await emit_in_step(session, 0, 100, text="x" * 2000)  # more than a pipe holds, less than the outbox
        with pytest.raises(CallTimedOut) as caught:
            await session.call_tool("never", {})
        assert caught.value.may_have_run is False
        verdict = await session.intercept("tool_call", ASK)
        assert [(step.kind, verdict.outcome) for step in verdict.steps] == [(StepKind.TIMED_OUT, Outcome.ALLOW)]
        await assert_good_answers(session)


async def test_one_that_takes_no_byte_is_stopped_as_unresponsive(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", DEAF)
    place.add("good", GOOD)
    async with running(place, deadlines=Deadlines(ready_cap_s=30, stall_s=0.5, stop_grace_s=0.2)) as (host, session):
        await emit_in_step(session, 0, 100, text="x" * 2000)
        row = await until_state(session, "deaf", "failed")
        assert "read nothing for 0.5 s" in row.reason
        assert "unresponsive" in codes_of(host, "deaf")
        await assert_good_answers(session)


async def test_a_question_given_up_in_mid_frame_is_still_a_whole_frame(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "sleeper",
        "greet(events=['small'], intercept=['tool_call'], commands=['got'])\nwait_for('go')\ngot = []\n"
        "for frame in frames():\n"
        "    got.append([frame['type'], len(frame.get('text', ''))])\n"
        "    if frame['type'] == 'command_invoked':\n"
        "        send(type='command_response', id=frame['id'], action='display', display=json.dumps(got))",
    )
    async with running(place, deadlines=SOON) as (host, session):
        verdict = await session.intercept("tool_call", ASK | {"text": "x" * 300_000})
        assert [step.kind for step in verdict.steps] == [StepKind.TIMED_OUT]
        session.emit("small", {})
        place.signal("go")
        got = json.loads((await session.run_command("got")).text)
        assert got == [["hello_ack", 0], ["event_intercept", 300_000], ["event", 0], ["command_invoked", 0]]
        assert row_of(session, "sleeper").state == "ready"


async def test_three_stopped_interceptors_cost_one_chain_deadline(tmp_path) -> None:
    place = Place(tmp_path)
    for name in ("a", "b", "c"):
        place.add(name, "greet(intercept=['tool_call'], tools=[os.path.basename(os.getcwd())]); hang()")
    place.add("good", GOOD)
    async with running(place, deadlines=SOON) as (_host, session):
        for name in ("a", "b", "c"):
            os.kill(row_of(session, name).pid, signal.SIGSTOP)
        begun = trio.current_time()
        verdict = await session.intercept("tool_call", ASK)
        assert 0.75 < trio.current_time() - begun < SOON.chain_s + 0.5
        assert [step.kind for step in verdict.steps] == [StepKind.TIMED_OUT] * 3
        assert "not asked" in verdict.explain()
        begun = trio.current_time()
        with pytest.raises(CallTimedOut):
            await session.call_tool("a", {})
        assert trio.current_time() - begun < SOON.tool_s + 0.5
        await assert_good_answers(session)


async def test_one_that_writes_5_mib_before_it_reads_anything_and_one_that_is_sent_as_much(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "eager", "put(b'{\"type\":\"hello\",\"name\":\"e\"}\\n' + (b'x' * 65535 + b'\\n') * 80); serve(tools=['t'])"
    )
    async with running(place) as (_host, session):
        assert text_of(await session.call_tool("t", {"text": "x" * 1_900_000})) == "ok"


CHECKER = """
greet(events=['tick'], tools=['size'], commands=['ticks'])
ticks = 0
for frame in frames():
    if frame["type"] == "event":
        ticks += len(frame["text"]) == 1000
    elif frame["type"] == "tool_call":
        result(frame["id"], str(len(frame["args"]["text"])))
    elif frame["type"] == "command_invoked":
        send(type="command_response", id=frame["id"], action="display", display=str(ticks))
"""


async def test_50_calls_of_200_kib_among_events_are_whole_frames(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("checker", CHECKER)
    sizes: dict[int, int] = {}
    async with running(place) as (host, session):

        async def ask(number: int) -> None:
            answer = await session.call_tool("size", {"text": "x" * (200 * 1024 + number)})
            sizes[number] = int(text_of(answer))

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ask, number)
                session.emit("tick", {"text": "x" * 1000})
            for _ in range(10):
                for _ in range(5):
                    session.emit("tick", {"text": "x" * 1000})
                await trio.lowlevel.checkpoint()
        assert sizes == {number: 200 * 1024 + number for number in range(50)}
        assert (await session.run_command("ticks")).text == "100"
        assert codes_of(host, "checker") == []


async def test_one_that_is_stopped_and_continued_gets_everything(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    async with running(place, deadlines=QUICK) as (_host, session):
        pid = row_of(session, "good").pid
        os.kill(pid, signal.SIGSTOP)
        for n in range(100):
            session.emit("tick", {"n": n, "text": "x" * 2000})
        await trio.testing.wait_all_tasks_blocked()
        os.kill(pid, signal.SIGCONT)
        assert json.loads((await session.run_command("ticks")).text) == list(range(100))
