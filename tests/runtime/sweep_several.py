"""What the cancellation sweep cuts while the same goes on beside it: the others get what is theirs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from runtime.sweep_actors import LATENCY_S
from runtime.sweep_lives import BOTH, changed, one_serves, row_of, runs_or_is_gone
from runtime.sweep_scenarios import Act, nothing, scenario
from runtime.sweep_stage import Stage

from trio_exthost import SimpleTool, ToolContext

IN_COMPANY: list[str] = []
"""Their names."""


def beside(*operations: Callable[[Stage], Awaitable[object]]) -> Act:
    """Prepare a scenario: these begin at about the same time as what is cut, each a little later than the one before."""

    async def begin(stage: Stage) -> None:
        stage.notes["began"], stage.notes["ended"] = len(operations), []

        async def run(place: int) -> None:
            await trio.sleep(place * LATENCY_S / 2)
            stage.notes["ended"].append(await operations[place](stage))

        for place in range(len(operations)):
            stage.nursery.start_soon(run, place)

    return begin


def all_others_have_ended(check: Act) -> Act:
    """Each of them, and without an error: that would have left its nursery."""

    async def look(stage: Stage) -> None:
        assert len(stage.notes["ended"]) == stage.notes["began"]
        await check(stage)

    return look


def in_company(*calls: str, check: Act, **about: Any) -> Callable[[Act], Act]:
    """A scenario with others beside it."""

    def note(act: Act) -> Act:
        IN_COMPANY.append(act.__name__)
        return scenario(*calls, check=all_others_have_ended(check), is_alone=False, **about)(act)

    return note


async def count(stage: Stage) -> object:
    return await stage.session.run_command("keep-e", {"n": 0})


async def others_are_counted(stage: Stage) -> None:
    assert stage.value("e", "plain") in (3, 4)


@in_company("Session.run_command", prepare=beside(count, count, count), check=others_are_counted)
async def one_of_four_commands(stage: Stage) -> None:
    """All store under one key: the turn of the one that is cut does not hold up the next."""
    await count(stage)


async def load_them(stage: Stage) -> object:
    return await stage.session.load_all()


@in_company("Session.load_all", prepare=beside(load_them), check=runs_or_is_gone, present=BOTH, loaded=())
async def one_of_two_load_all(stage: Stage) -> None:
    await stage.session.load_all()
    assert {row_of(stage, "e"), row_of(stage, "m")} == {"ready"}


async def unload_it(stage: Stage) -> object:
    return await stage.session.unload("m")


async def it_is_unloaded(stage: Stage) -> None:
    assert stage.session.loader.running("m") is None


@in_company("Session.unload", prepare=beside(unload_it), check=it_is_unloaded, present=BOTH, loaded=BOTH)
async def one_of_two_unload(stage: Stage) -> None:
    await stage.session.unload("m")


async def reload_it(stage: Stage) -> object:
    report = await stage.session.reload("e")
    assert not report.failed
    return report


async def change_and_reload(stage: Stage) -> None:
    await changed(stage)
    await beside(reload_it)(stage)


@in_company("Session.reload", prepare=change_and_reload, check=one_serves)
async def one_of_two_reload(stage: Stage) -> None:
    await stage.session.reload("e")


async def advance_too(stage: Stage) -> object:
    return await stage.session.advance(f"other-{len(stage.notes['ended'])}")


async def others_are_there(stage: Stage) -> None:
    """Their positions are, so the store was opened for them, also where who was the first to open it was cut."""
    names = {each.name for each in stage.session.persistence._committer.state.tree.positions.values()}
    assert len({each for each in names if each.startswith("other")}) == 1


@in_company("Session.advance", prepare=beside(advance_too), check=others_are_there, present=("z",), loaded=("z",))
async def one_of_two_advance(stage: Stage) -> None:
    """The first of all that need the store."""
    stage.notes["mine"] = stage.notes.get("mine", 0) + 1
    await stage.session.advance(f"mine-{stage.notes['mine']}")


async def slow_reader(stage: Stage) -> None:
    """It reads a frame now and then: a large one stands half in the pipe, and what comes after it waits in the outbox."""
    stage.around.programs["z"].pause_s = LATENCY_S
    await beside(call_with_much, call_with_much)(stage)


async def call_with_much(stage: Stage) -> object:
    return await stage.session.call_tool("zt", {"text": "x" * 200_000})


@in_company("Session.call_tool", prepare=slow_reader, check=nothing)
async def one_of_three_large_calls(stage: Stage) -> None:
    """One that has begun to be written is written to its end and cancelled; one that has not is never sent."""
    await call_with_much(stage)


async def nested(arguments: dict[str, Any], context: ToolContext) -> str:
    """A tool of the agent's that works with a sub-agent."""
    with context.session.open_run(parent=context.run) as run:
        async with run.tool_call("inner", "work-e", {}) as call:
            await call.confirm()
            return (await call.execute()).text


async def with_nested_tool(stage: Stage) -> None:
    stage.session.host_tools["nested"] = SimpleTool("nested", "x", {}, nested)
    await beside()(stage)


async def no_run_is_open(stage: Stage) -> None:
    assert not stage.session.runs


@in_company("Session.tool_call", "ToolCall.execute", prepare=with_nested_tool, check=no_run_is_open)
async def a_call_within_a_call(stage: Stage) -> None:
    with stage.session.open_run() as run:
        async with run.tool_call("outer", "nested", {}) as call:
            await call.execute()
