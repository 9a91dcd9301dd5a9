"""A required guard and a sandbox that overrides, as real processes: for each way to be absent `bash` is refused, never bare."""

from __future__ import annotations

import os
import signal

import attrs
import pytest
import trio
from runtime.real.programs import PATIENCE_S, Place, nothing_left, until_state

from trio_exthost import Deadlines, ExtensionPolicy, Policy, SimpleTool, open_host

DEADLINES = Deadlines(hello_s=4, ready_cap_s=30, auto_ready_s=0.1, stop_grace_s=0.3, term_grace_s=0.2)
"""Short only where a program is silent for ever: a busy machine starts the others slowly."""
POLICY = Policy(
    extensions={
        "guard": ExtensionPolicy(required=True, guards=["tool:bash"]),
        "sandbox": ExtensionPolicy(grant=["tools.override:bash"], on_absent="refuse"),
        "restarting": ExtensionPolicy(
            required=True, guards=["tool:write"], restart="on_crash", restart_delay_s=60, restart_delay_max_s=60
        ),
    }
)
GUARD = """
greet(intercept=["tool_call"])
for frame in frames("event_intercept"):
    send(type="event_intercept_response", id=frame["id"])
"""
SANDBOX = """
greet(capabilities=["effects"], ready=False)
send(type="register", registration_id=1, kind="tool", descriptor={
    "name": "bash", "label": "bash", "description": "boxed", "input_schema": {"type": "object"}, "override": True})
send(type="ready")
for frame in frames("invoke"):
    send(type="invoke_result", id=frame["id"], value={"content": [{"type": "text", "text": "boxed"}]})
"""
ABSENT = {
    "never installed": None,
    "dead at once": "sys.exit(3)",
    "silent": "hang()",
    "dead between hello and ready": "greet(ready=False); sys.exit(3)",
    "garbage": "put(b'not a protocol\\n' * 100); hang()",
    "ready without a word, and without registering": "greet(commands=['x'], ready=False); hang()",
    "crashing when it is asked": "greet(intercept=['tool_call'])\nfor f in frames('event_intercept'): sys.exit(1)",
}


async def ran(session) -> tuple[str, str]:
    """The text of the result, and the explanation."""
    with session.open_run() as run:
        async with run.tool_call("1", "bash", {"command": "true"}) as call:
            result = await call.execute()
        return result.text, call.verdict.explain()


def host_tools(executed: list[str]):
    async def bare(arguments):
        executed.append("bare")
        await trio.lowlevel.checkpoint()
        return "bare"

    return [SimpleTool(name, "", {"type": "object"}, bare) for name in ("bash", "write")]


def place_with(tmp_path, **programs) -> Place:
    place = Place(tmp_path)
    for name, source in programs.items():
        if source is not None:
            place.add(name.replace("_", "-"), source, permissions=["tools.register"])
    return place


@pytest.mark.parametrize("way", ABSENT)
@pytest.mark.parametrize("who", ["guard", "sandbox"])
async def test_absent_from_the_start(tmp_path, who, way) -> None:
    programs = {"guard": GUARD, "sandbox": SANDBOX, who: ABSENT[way]}
    place = place_with(tmp_path, **programs)
    executed: list[str] = []
    with nothing_left(place, DEADLINES.stop_total_s) as leave, trio.fail_after(PATIENCE_S):
        async with open_host(place.config(deadlines=DEADLINES), policy=POLICY) as host:
            async with host.open_session("s", cwd=tmp_path, tools=host_tools(executed)) as session:
                await session.load_all()
                for _ in range(2):
                    text, explained = await ran(session)
                    is_there = (
                        who == "sandbox" and "crashing" in way
                    )  # it serves no tool: the name is kept all the same
                    assert who in text or is_there, text
                    assert who in explained or is_there
                leave()
    assert executed == []


@pytest.mark.parametrize("who", ["guard", "sandbox"])
async def test_present_then_killed_then_loaded_again_then_unloaded(tmp_path, who) -> None:
    place = place_with(tmp_path, guard=GUARD, sandbox=SANDBOX)
    executed: list[str] = []
    with nothing_left(place, DEADLINES.stop_total_s) as leave, trio.fail_after(PATIENCE_S):
        async with open_host(place.config(deadlines=DEADLINES), policy=POLICY) as host:
            async with host.open_session("s", cwd=tmp_path, tools=host_tools(executed)) as session:
                await session.load_all()
                assert (await ran(session))[0] == "boxed"
                (pid,) = [row.pid for row in session.extensions() if row.name == who]

                os.kill(pid, signal.SIGKILL)
                await until_state(session, who, "failed")
                assert who in (await ran(session))[0]
                await session.load_all()
                assert (await ran(session))[0] == "boxed"
                await session.unload(who)
                text, explained = await ran(session)
                assert who in text
                assert "stopped" in explained
                leave()
    assert executed == []


async def test_a_hung_guard_is_refused_by_policy_then_tripped_and_while_it_waits_for_its_restart(tmp_path) -> None:
    place = place_with(
        tmp_path,
        guard="greet(intercept=['tool_call'])\nfor f in frames('event_intercept'): pass",
        sandbox=SANDBOX,
        restarting="greet(intercept=['tool_call']); sys.exit(1)",
    )
    executed: list[str] = []
    with nothing_left(place, DEADLINES.stop_total_s) as leave, trio.fail_after(PATIENCE_S):
        async with open_host(place.config(deadlines=attrs.evolve(DEADLINES, intercept_s=0.3)), policy=POLICY) as host:
            async with host.open_session("s", cwd=tmp_path, tools=host_tools(executed)) as session:
                await session.load_all()
                for _ in range(3):
                    assert "gave no answer within 0.3 s" in (await ran(session))[0]
                assert "tripped: 3 failures in a row" in (await ran(session))[0]
                await until_state(session, "restarting", "waiting")
                with session.open_run() as run:
                    async with run.tool_call("1", "write", {}) as call:
                        assert call.verdict.code == "guard_absent"
                        assert "started again in" in call.verdict.explain()
                leave()
    assert executed == []
