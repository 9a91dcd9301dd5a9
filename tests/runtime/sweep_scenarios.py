"""What the cancellation sweep cuts: one scenario or more for each public async call, and what must hold after each cut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from runtime.sweep_actors import LATENCY_S, OBJECT
from runtime.sweep_stage import Stage

from trio_exthost import BranchTarget, ModelRef, PositionError, SessionTarget, SimpleTool, ToolContext
from trio_exthost.effects import EffectKind
from trio_exthost.runtime.occasion import Occasion

REQUEST = {
    "provider": "p",
    "model": "m",
    "system_instructions": "Be kind.",
    "messages": [],
    "visible_tools": [],
    "executable_tool_names": [],
    "generation_options": {},
}
Act = Callable[[Stage], Awaitable[object]]


async def nothing(stage: Stage) -> None:
    """Nothing to prepare, or nothing more to look at."""


@attrs.frozen
class Scenario:
    """One operation that is swept."""

    calls: tuple[str, ...]
    """The public async calls in it."""
    act: Act
    """The operation; run once more, uncut, afterwards."""
    check: Act = nothing
    """Looks whether what it was to do is done wholly or not at all."""
    prepare: Act = nothing
    """Comes before."""
    present: tuple[str, ...] = ("e", "z")
    loaded: tuple[str, ...] = ("e", "z")
    is_shielded: bool = False
    """Whether it goes on to its end, cut or not."""
    is_alone: bool = True
    """Whether nothing else goes on, so that every table is empty the moment it is cut."""


SCENARIOS: dict[str, Scenario] = {}


def scenario(*calls: str, **about: Any) -> Callable[[Act], Act]:
    """The operation of a scenario that is called as the function is."""

    def note(act: Act) -> Act:
        SCENARIOS[act.__name__] = Scenario(calls, act, **about)
        return act

    return note


# --- points of a session ---


@scenario("Session.intercept")
async def intercept(stage: Stage) -> None:
    await stage.session.intercept("tool_call", {"tool_id": "t", "tool_name": "x", "tool_args": {}})


@scenario("Session.ask")
async def ask(stage: Stage) -> None:
    await stage.session.ask(Occasion(event="turn_start", payload={"step": 1}))


async def model_is_told(stage: Stage) -> None:
    """The model is another one if and only if a hook's gate has said so; whoever is asked next sees the one there is."""
    model = stage.session.model
    assert model in (ModelRef(), ModelRef("p", "ask"))
    await stage.session.run_command("keep-e", {"n": 7})
    envelopes = [each["envelope"] for each in stage.around.guests["e"].received if each["type"] == "invoke"]
    told = envelopes[-1]["context"].get("model")
    assert told == ({"provider": "p", "model": "ask"} if model.provider else None)


@scenario("Session.select_model", check=model_is_told)
async def select_model(stage: Stage) -> None:
    assert (await stage.session.select_model(ModelRef("p", "ask"))).allowed


@scenario("Session.before_switch")
async def before_switch(stage: Stage) -> None:
    await stage.session.before_switch(BranchTarget("ask", "e2"))
    await stage.session.before_switch(SessionTarget("other"))


@scenario("Session.before_fork")
async def before_fork(stage: Stage) -> None:
    await stage.session.before_fork("ask")


# --- tools and commands ---


async def tool_counts_whole(stage: Stage) -> None:
    """What the tool's answer stores is stored once for each call that has ended well, at most once for one that was cut."""
    assert stage.value("e", "tool") in (None, 1)


@scenario("Session.call_tool", check=tool_counts_whole)
async def call_tool(stage: Stage) -> None:
    """It asks a person, calls another tool through its chain, uses a broker, and stores."""
    assert not (await stage.session.call_tool("work-e", {})).is_error


@scenario("Session.call_tool")
async def call_zot_tool(stage: Stage) -> None:
    assert (await stage.session.call_tool("zt", {})).text == "zot"


@scenario("Session.call_tool", "SimpleTool.__call__")
async def call_own_tool(stage: Stage) -> None:
    assert (await stage.session.call_tool("own", {})).text == "own"


@scenario("HostTool.__call__", check=tool_counts_whole)
async def merged_tool(stage: Stage) -> None:
    """A tool out of the one list of the agent's and the extensions'."""
    merged = stage.session.registrations.merge_tools([SimpleTool("other", "x", OBJECT, no_tool)])
    tool = next(each for each in merged.tools if each.name == "work-e")
    await tool({}, ToolContext(stage.session, None, "t"))


async def no_tool(arguments: dict[str, Any]) -> str:
    return ""


async def command_counts_whole(stage: Stage) -> None:
    """State, memory, and the registration that its answer replaces: all of the answer counts, or nothing."""
    session = stage.session
    instance = session.loader.running("e")
    is_stored = stage.value("e", "k") == 5
    assert stage.value("e", "command") == (1 if is_stored else None)
    assert ("m" in instance.brokers._memory) is is_stored
    (record,) = session.ledger.active_records(EffectKind.PROMPT_SECTION)
    assert (record.handle != stage.notes["handle"]) is is_stored


async def note_handle(stage: Stage) -> None:
    (record,) = stage.session.ledger.active_records(EffectKind.PROMPT_SECTION)
    stage.notes["handle"] = record.handle


@scenario("Session.run_command", prepare=note_handle, check=command_counts_whole)
async def run_command(stage: Stage) -> None:
    """It writes through brokers, and its answer stores, and takes back what is registered anew right behind it."""
    await stage.session.run_command("keep-e", {"n": 5})


@scenario("Session.run_command")
async def run_zot_command(stage: Stage) -> None:
    await stage.session.run_command("zc")
    stage.session.panel("p").close()


@scenario("Session.wait_changed")
async def wait_changed(stage: Stage) -> None:
    async def change() -> None:
        await trio.sleep(LATENCY_S)
        stage.session.mark_changed()

    stage.nursery.start_soon(change)
    await stage.session.wait_changed(stage.session.version)


# --- what is stored ---


async def is_at_a_known_position(stage: Stage) -> None:
    state = stage.session.persistence._committer
    if state is not None:
        assert state.state.tree.selected.name in ("new", "next")


@scenario("Session.advance", check=is_at_a_known_position)
async def advance(stage: Stage) -> None:
    try:
        await stage.session.advance("next")
    except PositionError:
        assert stage.notes.get("was_cut")  # it counts since then


async def schema_is_that_of_the_branch(stage: Stage) -> None:
    """Where the old branch is selected, its state is migrated, or its extension does not run on it."""
    tree = stage.session.persistence._committer.state.tree
    row = next(row for row in stage.session.extensions() if row.name == "m")
    if tree.selected.name == "old" and row.state == "ready":
        assert stage.value("m", "k") == 101
    else:
        assert row.state == "ready"


@scenario("Session.checkout", check=schema_is_that_of_the_branch, present=("e", "m"), loaded=("e", "m"), is_alone=False)
async def checkout(stage: Stage) -> None:
    await stage.session.checkout("old")
    assert stage.value("m", "k") == 101


async def copy_is_whole(stage: Stage) -> None:
    names = [each.name for each in stage.stores.sessions()]
    stage.notes["copies"] = [name for name in names if name.startswith("copy")]
    for name in stage.notes["copies"]:
        store = stage.stores.open_session(name)  # nobody holds it
        assert store.load_tree().tree.next_row in (1, 2, 3)
        store.close()


@scenario("Session.fork", check=copy_is_whole, present=("m",), loaded=("m",))
async def fork(stage: Stage) -> None:
    await stage.session.fork("old", f"copy-{len(stage.notes.get('copies', ()))}")


@scenario("Session.compact_state")
async def compact_state(stage: Stage) -> None:
    await stage.session.compact_state()
