"""Reload: what a new look at the catalogue does, and that nobody is ever without the one or the other."""

from __future__ import annotations

import attrs
import trio
from runtime.fakes import Guest, assert_nothing_left, serve, world


def change(around, name: str, digest: str) -> None:
    """Something in this extension's directory is another now."""
    for place, each in enumerate(around.candidates):
        if each.name == name:
            around.candidates[place] = attrs.evolve(each, digest=digest)


async def test_what_has_changed_gets_another_process_and_the_rest_is_left_alone(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        for name in ("a", "b"):
            around.add(name, serve)
            change(around, name, "1")
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", "2")
            before = {row.name: row.pid for row in session.extensions()}
            report = await session.reload()
            after = {row.name: row.pid for row in session.extensions()}
            assert report.unchanged == ("b",)
            (restarted,) = report.restarted
            assert (restarted.name, restarted.old_pid, restarted.new_pid) == ("a", before["a"], after["a"])
            assert before["a"] != after["a"]
            assert before["b"] == after["b"]
            assert (report.added, report.removed, report.failed) == ((), (), ())
            assert session.reload_report is report
        assert_nothing_left(session)
