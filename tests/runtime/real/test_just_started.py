"""What happens to a process in the very moment in which it is started."""

from __future__ import annotations

import trio
from runtime.real.programs import GOOD, Place, assert_good_answers, row_of, running


async def test_who_is_asked_to_stop_before_its_first_step_is_stopped(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("brief", "serve()")
    place.add("good", GOOD)
    async with running(place) as (_, session):
        (candidate,) = [each for each in session.loader.candidates if each.name == "brief"]
        await session.unload("brief")
        instance = session.loader.start_again(candidate)
        instance.stop()
        await instance.ended.wait()
        assert row_of(session, "brief").state == "stopped"
        await assert_good_answers(session)


async def test_the_host_can_be_asked_how_it_is_while_it_starts_them(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    async with running(place, load=False) as (host, session), trio.open_nursery() as nursery:
        nursery.start_soon(session.load_all)
        while not (started := session.loader.instances()):
            await trio.lowlevel.checkpoint()
        assert started[0].pid_was is None
        assert host.stats() is not None
