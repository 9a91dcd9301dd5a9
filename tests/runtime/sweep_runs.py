"""What the cancellation sweep cuts of a run: its points, text that streams, and tool calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from runtime.sweep_actors import LATENCY_S
from runtime.sweep_scenarios import REQUEST, Act, scenario
from runtime.sweep_stage import Stage

from trio_exthost import HookEvent, ToolStatus


async def open_run(stage: Stage) -> None:
    context = stage.session.open_run(run_id="r")
    stage.run = context.__enter__()
    stage.notes["leave"] = context


def in_run(*calls: str, **about: Any) -> Callable[[Act], Act]:
    """A scenario within a run that is open."""
    return scenario(*calls, **{"prepare": open_run, **about})


@in_run("Run.ask")
async def run_ask(stage: Stage) -> None:
    await stage.run.ask(HookEvent.CONTEXT, {"messages": []})


@in_run("Run.input")
async def run_input(stage: Stage) -> None:
    assert (await stage.run.input("hello")).message["content"] == "changed by e"


@in_run("Run.begin")
async def begin(stage: Stage) -> None:
    await stage.run.begin(system_prompt="x", messages=[])


@in_run("Run.context")
async def context(stage: Stage) -> None:
    assert len(await stage.run.context([])) == 1


@in_run("Run.model_request")
async def model_request(stage: Stage) -> None:
    with stage.run.open_request():
        assert "first" in (await stage.run.model_request(REQUEST))["system_instructions"]


@in_run("Run.system_prompt")
async def system_prompt(stage: Stage) -> None:
    assert "first" in await stage.run.system_prompt("base")


@in_run("Run.turn_start")
async def turn_start(stage: Stage) -> None:
    await stage.run.turn_start(1)


@in_run("Run.what_if")
async def what_if(stage: Stage) -> None:
    await stage.run.what_if("tool_call", {"tool_id": "t", "tool_name": "x", "tool_args": {}})
    await stage.run.what_if("before_model_request", {"request": REQUEST})


@in_run("Run.before_compaction")
async def before_compaction(stage: Stage) -> None:
    assert (await stage.run.before_compaction("ask")).allowed
    with stage.run.compaction(message_count=1, token_estimate=1):
        await trio.sleep(LATENCY_S)


@in_run("Run.assistant_text", "AssistantText.feed", "AssistantText.finish")
async def assistant_text(stage: Stage) -> None:
    async with stage.run.assistant_text("m") as text:
        await text.feed("x" * 300)
        await text.feed("y" * 300)
        await text.finish()
    async with stage.run.assistant_text("m2") as text:
        await text.feed("z")
    assert not stage.session.observing.streams


@in_run("Run.assistant_text", "AssistantText.feed", present=("e",), loaded=("e",))
async def assistant_text_that_is_shown(stage: Stage) -> None:
    """Nobody may hide the message, so it is shown, and told to who observes it, while it comes."""
    async with stage.run.assistant_text("m") as text:
        for piece in "xyz":
            assert await text.feed(piece * 300) == piece.upper() * 300
            await trio.sleep(LATENCY_S)


async def each_call_has_one_result(stage: Stage) -> None:
    """What was told is looked at when everybody has left; here, what the caller was given."""
    for call in stage.notes.pop("calls", ()):
        assert call.result is not None
        with_effect = call.result.status is not ToolStatus.CANCELLED and call.result.status is not ToolStatus.BLOCKED
        assert call.executed or not with_effect
    assert len(stage.session.observing.streams) == 0


@in_run("Run.tool_call", "ToolCall.confirm", "ToolCall.execute", check=each_call_has_one_result)
async def run_tool_call(stage: Stage) -> None:
    async with stage.run.tool_call("t1", "work-e", {"ask": 1}) as call:
        stage.notes.setdefault("calls", []).append(call)
        assert await call.confirm()
        assert not (await call.execute()).is_error


@scenario("Session.tool_call", "ToolCall.confirm", "ToolCall.execute", check=each_call_has_one_result)
async def session_tool_call(stage: Stage) -> None:
    async with stage.session.tool_call("t2", "own", {}) as call:
        stage.notes.setdefault("calls", []).append(call)
        assert await call.confirm(say_yes)
        assert (await call.execute()).text == "own"


async def say_yes(call: Any) -> bool:
    await trio.sleep(LATENCY_S)
    return True


@scenario("Run.turn_start", "Run.tool_call", "ToolCall.execute")
async def whole_run(stage: Stage) -> None:
    """The run is opened and left within what is cut: a sub-agent's, as these are told at both ends."""
    with stage.session.open_run() as run, run.open_request():
        await run.turn_start(1)
        async with run.tool_call("t3", "zt", {}) as call:
            await call.execute()
    assert not stage.session.runs
