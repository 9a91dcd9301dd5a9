"""Reload with real processes: another process with the new code, and nothing of the old one."""

from __future__ import annotations

import shutil

import trio
from runtime.real.programs import GOOD, Place, assert_good_answers, running, text_of

HELPED = "import helper\nserve(lambda f: result(f['id'], helper.TEXT), tools=['say'])"


async def test_a_change_of_a_helper_file_gives_a_new_process_with_the_new_code(tmp_path) -> None:
    place = Place(tmp_path)
    directory = place.add("a", HELPED)
    (directory / "helper.py").write_text("TEXT = 'one'\n")
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        assert text_of(await session.call_tool("say", {})) == "one"
        (directory / "helper.py").write_text("TEXT = 'two'\n")
        report = await session.reload()
        (restarted,) = report.restarted
        assert restarted.name == "a"
        assert restarted.old_pid != restarted.new_pid
        assert report.unchanged == ("good",)
        assert text_of(await session.call_tool("say", {})) == "two"
        assert [line.split()[0] for line in place.alive()].count(str(restarted.old_pid)) == 0
        assert (await session.reload()).restarted == ()
        await assert_good_answers(session)


async def test_a_folder_that_is_new_and_one_that_is_gone_take_one_reload(tmp_path) -> None:
    place = Place(tmp_path)
    gone = place.add("gone", "serve(tools=['gone'])", root="found")
    more = {"project_roots": (tmp_path / "found",), "trust": lambda _candidate: True}
    async with running(place, **more) as (_host, session):
        place.add("new", "serve(tools=['new'])", root="found")
        shutil.rmtree(gone)
        report = await session.reload()
        assert report.added == ("new",)
        assert report.removed == ("gone",)
        assert [tool.name for tool in session.tools()] == ["new"]


async def test_one_that_raises_at_its_start_leaves_the_old_one_with_its_traceback_told(tmp_path) -> None:
    place = Place(tmp_path)
    directory = place.add("a", "serve(lambda f: result(f['id'], 'old'), tools=['say'])")
    async with running(place) as (_host, session):
        source = (directory / "main.py").read_text()
        (directory / "main.py").write_text(source + "\nthis is no python\n")
        (failure,) = (await session.reload()).failed
        assert failure.name == "a"
        assert "SyntaxError" in failure.reason
        assert text_of(await session.call_tool("say", {})) == "old"


async def test_a_result_that_comes_within_the_grace_is_delivered(tmp_path) -> None:
    place = Place(tmp_path)
    source = "def work(f):\n    open('../begun', 'w').close()\n    wait_for('go')\n    result(f['id'], 'old')\nserve(work, tools=['say'])"
    directory = place.add("a", source)
    async with running(place) as (_host, session):
        texts: list[str] = []

        async def call() -> None:
            texts.append(text_of(await session.call_tool("say", {})))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            while not (tmp_path / "begun").exists():
                await session.wait_changed(session.version - 1)
            (directory / "main.py").write_text(
                "from guest import *\nserve(lambda f: result(f['id'], 'new'), tools=['say'])\n"
            )
            nursery.start_soon(lambda: session.reload(when="now", grace_s=30))
            while len(place.started) < 2:
                await session.wait_changed(session.version - 1)
            place.signal("go")
        assert texts == ["old"]
        assert text_of(await session.call_tool("say", {})) == "new"
