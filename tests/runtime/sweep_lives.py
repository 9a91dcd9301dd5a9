"""What the cancellation sweep cuts where extensions, sessions and hosts begin and end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import trio
from runtime.reloads import candidate, change
from runtime.sweep_actors import Actor, Everybody
from runtime.sweep_runs import open_run
from runtime.sweep_scenarios import scenario
from runtime.sweep_stage import Stage, stored

from trio_exthost import CallError, HostConfig, Scope, open_host

BOTH = ("e", "m")


def row_of(stage: Stage, name: str) -> str:
    """In which state an extension is."""
    return next((row.state for row in stage.session.extensions() if row.name == name), "not looked for")


async def runs_or_is_gone(stage: Stage) -> None:
    """Whoever was to begin has begun, or nothing of it is left: no process, no record."""
    session = stage.session
    for name in ("e", "m"):
        instance = session.loader.running(name)
        if row_of(stage, name) == "ready":
            assert session.ledger.records_for_owner(instance.owner)
        else:
            assert row_of(stage, name) in ("stopped", "not looked for", "discovered", "not loaded", "effective")
            assert instance is None
            guests = [each for each in stage.around.every if each.name == name]
            assert all(each.reaped for each in guests)
            assert not [
                each for each in session.ledger.records_for_scope(Scope.SESSION) if each.owner.extension_id == name
            ]


@scenario("Session.load", check=runs_or_is_gone, present=BOTH, loaded=("e",))
async def load(stage: Stage) -> None:
    """It has old state to migrate, in both spaces, and a hook about its begin."""
    if stage.session.loader.running("m") is None:
        await stage.session.load(candidate(stage.around, "m"))
    assert row_of(stage, "m") == "ready"


@scenario("Session.load_all", check=runs_or_is_gone, present=BOTH, loaded=())
async def load_all(stage: Stage) -> None:
    await stage.session.load_all()
    assert (row_of(stage, "e"), row_of(stage, "m")) == ("ready", "ready")


async def is_stopped(stage: Stage) -> None:
    """It is, also where nobody waited for it; it was told its end as always."""
    guest = stage.around.guests["m"]
    if stage.session.loader.running("m") is None:
        assert guest.reaped
        told = [frame["envelope"]["event"] for frame in guest.received if frame["type"] == "invoke"]
        assert told[-2:] == ["session_shutdown", "extension_unload"]
    else:
        assert row_of(stage, "m") == "ready"


@scenario("Session.unload", check=is_stopped, present=BOTH, loaded=BOTH)
async def unload(stage: Stage) -> None:
    await stage.session.unload("m")
    assert stage.session.loader.running("m") is None


class Second(Actor):
    """The program after a change."""


async def changed(stage: Stage) -> None:
    change(stage.around, "e")  # its look at it before did not know a content
    change(stage.around, "e", Second(hooks=stage.around.programs["e"].hooks))
    stage.nursery.start_soon(call_meanwhile, stage)
    await trio.sleep(0)


async def call_meanwhile(stage: Stage) -> None:
    """A command in flight, over the moment of the reload: however it ends, it does once."""
    with suppress(CallError):
        await stage.session.run_command("keep-e", {"n": 5})


async def one_serves(stage: Stage) -> None:
    """The old one or the new one, with all records; never both, never none."""
    session = stage.session
    assert row_of(stage, "e") == "ready"
    alive = [each for each in stage.around.every if each.name == "e" and not each.reaped]
    assert len(alive) == 1
    owners = {each.owner for each in session.ledger.records_for_scope(Scope.SESSION) if each.owner.extension_id == "e"}
    assert owners == {session.loader.running("e").owner}


@scenario("Session.reload", prepare=changed, check=one_serves, is_alone=False)
async def reload(stage: Stage) -> None:
    await stage.session.reload("e")


async def in_a_run(stage: Stage) -> None:
    """A run is open, and ends a while later."""
    await changed(stage)
    await open_run(stage)

    async def later() -> None:
        await trio.sleep(1)
        stage.notes["leave"].__exit__(None, None, None)

    stage.nursery.start_soon(later)


@scenario("Session.reload", prepare=in_a_run, check=one_serves, is_alone=False)
async def reload_in_a_run(stage: Stage) -> None:
    """It waits for the run to end, and takes over in that moment."""
    await stage.session.reload("e", when="idle")


@scenario("Session.reload", prepare=in_a_run, check=one_serves, is_alone=False)
async def reload_now(stage: Stage) -> None:
    await stage.session.reload("e", when="now")


async def is_closed(stage: Stage) -> None:
    assert stage.session.is_closed
    assert stage.session.loader.instances() == ()


@scenario("Session.aclose", present=BOTH, loaded=BOTH, is_shielded=True)
async def aclose(stage: Stage) -> None:
    """Shielded: cut or not, it is done wholly, and within its bound."""
    await stage.session.aclose()
    await is_closed(stage)


async def whole_life(directory: Path, around: Everybody) -> None:
    """A host and two sessions, from the first checkpoint to the last."""
    config = HostConfig(data_dir=directory)
    async with open_host(config, spawn=around.spawn, catalogue=around.catalogue, state=stored()) as host:
        async with host.open_session("s") as session, host.open_session("other") as other:
            await session.load_all()
            other.start()
            await session.run_command("keep-e", {"n": 1})
            with session.open_run() as run:
                async with run.tool_call("t", "zt", {}) as call:
                    await call.execute()


WHOLE_LIFE = ("open_host", "Host.open_session")
"""The calls that are swept there."""
