"""Cases from the field: programs that die while the host writes to them, and whoever closes what another has opened."""

from __future__ import annotations

import gc
import json
import random
import warnings

import trio
from runtime.real.programs import GOOD, Place, codes_of, running, until_state

from trio_exthost import open_host

DYING = """
greet(events=["tick"])
for i, _ in zip(range(3), frames("event")): pass
time.sleep(float(open("../delay").read())); os._exit(7)
"""
DEATHS = 60


async def test_c42_processes_that_die_at_random_moments_between_writes_harm_nobody(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("dead", DYING)
    rng = random.Random(42)
    (tmp_path / "delay").write_text("0")
    emitted, seen = 0, []
    async with running(place) as (host, session):
        for _ in range(DEATHS):
            while any(row.name == "dead" and row.state == "ready" for row in session.extensions()):
                for _ in range(20):
                    session.emit("tick", {"n": emitted})
                    emitted += 1
                seen += json.loads((await session.run_command("ticks")).text)
            row = await until_state(session, "dead", "failed")
            assert "exit 7" in row.reason
            (tmp_path / "delay").write_text(str(rng.random() / 100))
            await session.load("dead")
        assert seen == list(range(emitted)), "the neighbour has every event, in order"
        assert codes_of(host, "good") == []
        assert len(place.started) == 1 + 1 + DEATHS


async def test_c46_another_task_may_close_a_session_and_its_own_task_after_it(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("a", "serve(tools=['t'])")
    async with running(place, load=False) as (host, _session):
        opened, closed = trio.Event(), trio.Event()

        async def own() -> None:
            async with host.open_session("other") as session:
                sessions.append(session)
                await session.load_all()
                opened.set()
                await closed.wait()
            assert session.is_closed

        sessions = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(own)
            await opened.wait()
            async with trio.open_nursery() as closing:
                for _ in range(3):
                    closing.start_soon(sessions[0].aclose)
            assert place.alive() == []
            closed.set()


async def test_c46_a_host_that_is_made_and_never_entered_leaves_nothing(tmp_path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = open_host(Place(tmp_path).config())
        del made
        gc.collect()
        await trio.lowlevel.checkpoint()
    assert [str(each.message) for each in caught] == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pids"]
