"""The cancellation sweep with a real process and SQLite: a whole life of a host, cut at each of its checkpoints."""

from __future__ import annotations

import time
from pathlib import Path

import trio
from runtime.real.keeping import add, ask, increment, put, stores_of
from runtime.real.programs import PATIENCE_S, QUICK, SLACK_S, Place, descriptors
from runtime.sweeping import Cut, Moment, cut, sweep

from trio_exthost import open_host
from trio_exthost.state import SessionState


async def life(place: Place) -> None:
    """The catalogue is read and the state written in threads, the extension is a process."""
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        await session.advance("m1")
        assert await ask(session, commits=[("extension", [increment()])], actions=[put("a", 1), put("b", 1)]) == [1]
        await session.fork("m1", "copy")
        await session.checkout("")
        await session.compact_state()
        await session.unload("keeper")


def test_a_life_with_a_process_can_be_given_up_at_each_checkpoint(tmp_path: Path) -> None:
    async def main(place: Place, at: int) -> Cut:
        with trio.fail_after(PATIENCE_S):
            return await cut(lambda: life(place), at, Moment.WAITS)

    def play(at: int) -> Cut:
        (tmp_path / str(at)).mkdir()
        place = Place(tmp_path / str(at))
        add(place)
        before = descriptors()
        begun = time.monotonic()
        done = trio.run(main, place, at)
        assert time.monotonic() - begun < QUICK.stop_total_s + 2 * SLACK_S + PATIENCE_S / 2
        assert descriptors() == before
        assert place.alive() == []
        check_state(place)
        return done

    assert sweep(play, most=60) > 10


def check_state(place: Place) -> None:
    """What an answer stores is there wholly or not at all, a copy too; and nobody holds the files any more."""
    stores = stores_of(place)
    for name in [each.name for each in stores.sessions()]:
        state = SessionState(stores.open_session(name))
        try:
            projection = state.projection("keeper")
            assert projection.get("a") == projection.get("b")
            assert name == "s" or state.tree.selected.name in ("", "m1")
        finally:
            state.close()
