"""Starting several programs: at the same time, in an order that no race decides, and what is broken stays by itself."""

from __future__ import annotations

import json

import pytest
import trio
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    assert_good_answers,
    nothing_left,
    row_of,
    running,
    text_of,
    until_state,
)

from trio_exthost import ClosedError, Deadlines, LoadError, open_host

NAMES = ("a", "b", "c", "d", "e")


async def test_five_that_wait_for_each_other_are_all_ready(tmp_path) -> None:
    place = Place(tmp_path)
    for name in NAMES:
        # One after the other, the first would never greet.
        place.add(name, f"open('../{name}.here', 'w').close()\nfor n in {NAMES}: wait_for(n + '.here')\nserve()")
    async with running(place) as (_host, session):
        assert session.report.ready == NAMES
        assert session.report.failed == ()


async def test_the_first_in_the_catalogue_has_the_name_whoever_was_faster(tmp_path) -> None:
    place = Place(tmp_path)
    for name in NAMES:
        delay = "__import__('random').random() / 10"
        place.add(name, f"time.sleep({delay})\nserve(lambda f: result(f['id'], {name!r}), tools=['t'], commands=['c'])")
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        async with open_host(settings) as host:
            for number in range(10):
                async with host.open_session(f"s{number}", cwd=tmp_path) as session:
                    await session.load_all()
                    assert text_of(await session.call_tool("t", {})) == "a"
                    assert [(command.name, command.extension) for command in session.commands()] == [("c", "a")]


async def test_one_that_is_silent_holds_up_the_load_to_the_cap_and_no_longer(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("silent", "hang()")
    place.add("good", GOOD)
    async with running(place, load=False, deadlines=Deadlines(ready_cap_s=1.5, stop_grace_s=0.2)) as (_host, session):
        begun = trio.current_time()
        report = await session.load_all()
        assert trio.current_time() - begun < 2.5
        assert report.late[0] == "silent"
        await until_state(session, "good", "ready")
        await assert_good_answers(session)


BROKEN = {
    "bad-json": ("", "line 1, column 10"),
    "no-exec": ("", "does not exist"),
    "crash": ("raise RuntimeError('at once')", "exit 1"),
    "garbage": ("while True: put(os.urandom(1000))", "no hello within"),
    "bad-schema": ("send(type='hello', name=7); hang()", "name"),
    "silent": ("hang()", "no hello within"),
    "huge": ("put(b'x' * (100 << 20)); hang()", "thrown away"),
    "loud": ("os.write(2, b'e' * (5 << 20)); sys.exit(9)", "exit 9"),
}


async def test_eight_broken_ones_and_a_good_one_have_nine_rows_and_eight_reasons(tmp_path) -> None:
    place = Place(tmp_path)
    for name, (source, _) in BROKEN.items():
        place.add(name, source, startup_timeout_s=6 if name == "huge" else 2)
    (tmp_path / "bad-json" / "extension.json").write_text('{"name": ')
    manifest = json.loads((tmp_path / "no-exec" / "extension.json").read_text())
    (tmp_path / "no-exec" / "extension.json").write_text(json.dumps(manifest | {"exec": "./not-there"}))
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        assert session.report.ready == ("good",)
        await assert_good_answers(session)
        rows = {row.name: row for row in session.extensions()}
        assert len(rows) == 9
        for name, (_, reason) in BROKEN.items():
            (error,) = [each for each in session.report.failed if each.extension == name]
            assert rows[name].state in ("failed", "stopping", "rejected")
            assert reason.lower() in rows[name].reason.lower(), rows[name]
            assert reason.lower() in str(error).lower()


async def test_project_local_ones_are_listed_and_not_started_until_trusted(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("local", GOOD, root=".exthost/extensions")
    asked = []
    async with running(place, trust=lambda candidate: asked.append(candidate)) as (host, session):
        row = row_of(session, "local")
        assert (row.state, row.origin) == ("blocked", "project")
        assert row.reason
        assert place.started == []
        assert len(asked) == 1
        assert host.diagnostics.counts["trust_required"] == 1
    (tmp_path / "temporary").rmdir()
    async with running(place, trust=lambda _candidate: True) as (_host, session):
        assert session.report.ready == ("local",)
        await assert_good_answers(session)


async def test_a_cancelled_load_all_stops_what_was_not_ready(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("silent", "hang()")
    place.add("half", "greet(tools=['half'], ready=False)\nwhile True: send(type='notify'); time.sleep(0.05)")
    async with running(place, load=False) as (_host, session):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.load_all)
            await until_state(session, "good", "ready")
            nursery.cancel_scope.cancel()
        assert row_of(session, "good").state == "ready"
        for name in ("silent", "half"):
            await until_state(session, name, "stopped")
        assert [tool.name for tool in session.tools()] == ["echo"]
        await assert_good_answers(session)


async def test_a_cancelled_load_stops_that_one_and_it_can_be_loaded_again(tmp_path) -> None:
    place = Place(tmp_path)
    directory = place.add("slow", "wait_for('go')\nserve()")
    async with running(place, load=False, extensions=()) as (_host, session):
        with trio.move_on_after(0.3):
            await session.load(directory)
        await session.unload("slow")
        place.signal("go")
        assert (await session.load(directory)).state == "ready"
        with pytest.raises(LoadError, match="running"):
            await session.load(directory)


async def test_loaded_and_unloaded_from_different_tasks_over_and_over(tmp_path) -> None:
    place = Place(tmp_path)
    directory = place.add("good", GOOD)
    async with running(place, load=False, extensions=()) as (_host, session):
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.load, directory)
            await assert_good_answers(session)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.unload, "good")
                nursery.start_soon(session.unload, "good")
            await session.unload("good")
            assert place.alive() == []


async def test_a_session_that_ends_during_a_load_starts_nothing_more(tmp_path) -> None:
    place = Place(tmp_path)
    directory = place.add("good", GOOD)
    told: list[str] = []
    with trio.fail_after(PATIENCE_S):
        async with open_host(place.config()) as host, trio.open_nursery() as nursery:
            async with host.open_session("s", cwd=tmp_path) as session:

                async def load() -> None:
                    try:
                        await session.load(directory)
                    except ClosedError as exc:
                        told.append(str(exc))

                nursery.start_soon(load)
                await trio.lowlevel.checkpoint()  # it is looking at the disk, in a thread
            while not told:
                await trio.sleep(0.005)
            assert place.started == []
    assert "ended" in told[0]
