"""Where the cancellation sweep plays: a session with everybody in it, and how it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.testing
from runtime.fakes import assert_nothing_left
from runtime.sweep_actors import LATENCY_S, OBJECT, Actor, Everybody, LatePerson, add_actors
from runtime.sweep_checks import check_tables, check_tasks, descriptors, everybody_has_left

from trio_exthost import Deadlines, Host, HostConfig, Limits, Run, Session, SimpleTool, open_host
from trio_exthost.state import Advance, Checkout, Commit, SessionState, read_actions
from trio_exthost.state.memory import MemoryStores

QUIET_S = 20.0
"""After so long everything that was begun has ended: above each grace and deadline of a stop."""


def stored(schema: int = 1) -> MemoryStores:
    """Stores in which `m` has state in an old schema on the branch `old`, and none where the session stands."""
    stores = MemoryStores()
    raw = [{"kind": "set_state", "key": "k", "value": 1}]
    actions = read_actions(raw, extension="m")
    state = SessionState(stores.open_session("s"))
    operations = [
        Advance("old"), Commit(extension="m", schema=schema, actions=actions, sequence=1), Checkout(""), Advance("new"),
    ]  # fmt: skip
    state.publish(state.write(operations))
    state.close()
    stores.open_extension("m").commit(actions, schema=schema, sequence=1)
    return stores


@attrs.define(eq=False)
class Stage:
    """A session with everybody in it."""

    around: Everybody
    host: Host
    session: Session
    person: LatePerson
    stores: MemoryStores
    nursery: trio.Nursery
    """For what goes on beside what is swept."""
    run: Run | None = None
    notes: dict[str, Any] = attrs.field(factory=dict)
    """What a scenario remembers for its own look afterwards."""

    def actors(self) -> list[Actor]:
        return [program for program in self.around.programs.values() if isinstance(program, Actor)]

    def value(self, extension: str, key: str) -> Any:
        """What is stored."""
        return self.session.persistence.projection(extension).get(key)


DEADLINES = Deadlines()
TIGHT = attrs.evolve(
    DEADLINES,
    intercept_s=LATENCY_S,
    transform_s=LATENCY_S,
    life_cycle_s=LATENCY_S,
    command_s=LATENCY_S,
    tool_s=LATENCY_S,
)
"""Each time-out falls on the very moment of the answer."""


async def host_tool(arguments: dict[str, Any], context: Any) -> str:
    """The agent's own tool."""
    await trio.sleep(LATENCY_S)
    return "own"


def leave_run(stage: Stage) -> None:
    """The run that a scenario has opened, if it is open, is left as an agent leaves it."""
    if stage.run is not None and not stage.run.is_closed:
        stage.notes["leave"].__exit__(None, None, None)
    assert not stage.session.runs
    assert not stage.session.requests


@asynccontextmanager
async def staged(
    directory: Path, *, loaded: tuple[str, ...] = ("e", "z"), tight: bool = False, present: tuple[str, ...] = ("e", "z")
) -> AsyncIterator[Stage]:
    """A host with these extensions present and these loaded; leaving asserts that nothing of it is left anywhere."""
    before = descriptors()
    async with trio.open_nursery() as nursery:
        around = Everybody(nursery)
        add_actors(around, present)
        deadlines = TIGHT if tight else DEADLINES
        limits = Limits(circuit_failures=10**6)  # whoever is out of service is told nothing
        config = HostConfig(deadlines=deadlines, limits=limits, data_dir=directory)
        person, stores = LatePerson(nursery), stored()
        async with open_host(config, spawn=around.spawn, catalogue=around.catalogue, state=stores, secrets=()) as host:
            async with host.open_session(
                "s", client=person, tools=[SimpleTool("own", "x", OBJECT, host_tool)]
            ) as session:
                stage = Stage(around, host, session, person, stores, nursery)
                for candidate in around.candidates:
                    if candidate.name in loaded:
                        await session.load(candidate)
                session.start()
                yield stage
                leave_run(stage)
                left_at = trio.current_time()
            assert trio.current_time() - left_at <= deadlines.stop_total_s
            assert_nothing_left(session)
        assert host.pump.watched == 0
    everybody_has_left(around)
    assert descriptors() == before


async def quiet(stage: Stage, *, at_once: bool = True) -> None:
    """Look at once, while answers are on their way; then wait until all that was late has come, and look again."""
    session = stage.session
    await trio.testing.wait_all_tasks_blocked()
    if at_once:
        check_tables(session)
        assert all(not question.is_open for question in stage.person.questions), "nobody waits for its answer"
    await trio.sleep(QUIET_S)
    check_tables(session)
    assert not session.loader._beside
    assert not session.loader.boundary._waiting
    assert session._reloader._current is None
    check_tasks(stage.host, session)
    assert all(not question.is_open for question in stage.person.questions)
    assert not any(asked for actor in stage.actors() for asked in actor.open.values()), (
        "it waits for an answer for ever"
    )
