"""Cases from the field: what a reload replaces, keeps, bounds and says; and that undoing is complete."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import trio
from field.helpers_a import change_manifest
from field.helpers_b import ASK, bash, execute
from runtime.fakes import Client, Guest, assert_nothing_left, world
from runtime.real.programs import GOOD, SLACK_S, Place, assert_good_answers, row_of, running, text_of
from runtime.reloads import change, version

from trio_exthost import (
    Deadlines,
    DisposeCause,
    ExtensionPolicy,
    HostInstrument,
    Outcome,
    Policy,
    Reloaded,
    open_host,
)

FIRST = """
greet(tools=["a", "b"], commands=["x"], events=["tick"], intercept=["tool_call"], ready=False)
send(type="open_panel", panel={"id": "p", "title": "v1"})
send(type="ready")
for f in frames("tool_call", "event_intercept"):
    if f["type"] == "tool_call": result(f["id"], "v1")
    else: send(type="event_intercept_response", id=f["id"], block=True, reason="v1")
"""


async def test_c67_after_a_reload_there_is_exactly_the_second_version(tmp_path) -> None:
    place = Place(tmp_path)
    folder = place.add("a", FIRST)
    async with running(place) as (_host, session):
        while len(session.panels) == 0:
            await trio.lowlevel.checkpoint()
        assert (await session.intercept("tool_call", ASK)).outcome is Outcome.BLOCK
        (folder / "main.py").write_text("from guest import *\nserve(tools=['b2'])\n")
        (restarted,) = (await session.reload()).restarted
        assert [tool.name for tool in session.tools()] == ["b2"]
        assert session.commands() == ()
        assert len(session.panels) == 0
        assert session.ledger.active_count == 1
        assert (await session.intercept("tool_call", ASK)).steps == ()
        assert [line.split()[0] for line in place.alive()] == [str(restarted.new_pid)]


async def test_c67_100_reloads_leave_the_ledger_as_it_was(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("0", tools=("t",), commands=("x",), events=("tick",), intercept=("tool_call",)))
        change(around, "a")
        async with host.open_session("s") as session:
            await session.load_all()
            size = session.ledger.active_count
            for number in range(100):
                old = around.guests["a"]
                program = version(
                    f"{number}", tools=("t",), commands=("x",), events=("tick",), intercept=("tool_call",)
                )
                change(around, "a", program)
                await session.reload()
                assert session.ledger.active_count == size
                assert old.reaped
                assert text_of(await session.call_tool("t", {})) == f"{number}"
        assert_nothing_left(session)


async def test_c68_one_reload_finds_what_is_new_gone_changed_and_switched_off(tmp_path) -> None:
    place = Place(tmp_path)
    folders = {name: place.add(name, "serve()", root="found") for name in ("gone", "changed", "off", "same")}
    more: dict[str, Any] = {"project_roots": (tmp_path / "found",), "trust": lambda _candidate: True}
    async with running(place, **more) as (_host, session):
        place.add("new", "serve()", root="found")
        shutil.rmtree(folders["gone"])
        change_manifest(folders["changed"], description="another")
        change_manifest(folders["off"], enabled=False)
        report = await session.reload()
        assert report.added == ("new",)
        assert sorted(report.removed) == ["gone", "off"]
        assert [each.name for each in report.restarted] == ["changed"]
        assert report.unchanged == ("same",)
        assert report.failed == ()


BOXED = """
greet(capabilities=["effects"], ready=False)
send(type="register", registration_id=1, kind="tool", descriptor={
    "name": "bash", "label": "bash", "description": "boxed", "input_schema": {"type": "object"}, "override": True})
send(type="ready")
for frame in frames("invoke"):
    send(type="invoke_result", id=frame["id"], value={"content": [{"type": "text", "text": "boxed"}]})
"""


async def test_c69_a_sandbox_that_does_not_come_back_leaves_no_bare_bash(tmp_path) -> None:
    place = Place(tmp_path)
    folder = place.add("sandbox", BOXED, permissions=["tools.register"])
    policy = Policy(extensions={"sandbox": ExtensionPolicy(grant=["tools.override:bash"])})
    executed: list[Any] = []
    with trio.fail_after(60):
        async with open_host(place.config(), policy=policy) as host:
            async with host.open_session("s", cwd=tmp_path, tools=[bash(executed)]) as session:
                await session.load_all()
                (folder / "main.py").write_text("raise RuntimeError('v2')\n")
                (failure,) = (await session.reload()).failed
                assert "RuntimeError: v2" in failure.reason
                assert (await execute(session))[1] == "boxed", "the old one goes on"
                await session.unload("sandbox")
                await session.reload("sandbox")
                _verdict, text = await execute(session)
                assert "sandbox" in text, "refused, with whom it waits for"
    assert executed == []
    assert place.alive() == []


async def test_c69_a_guard_whose_next_version_does_not_start_still_guards(tmp_path) -> None:
    place = Place(tmp_path)
    no = "send(type='event_intercept_response', id=f['id'], block=True, reason='guarded')"
    folder = place.add(
        "guard", f"greet(intercept=['tool_call'])\nfor f in frames('event_intercept'): {no}", on_failure="block"
    )
    executed: list[Any] = []
    async with running(place, tools=[bash(executed)]) as (_host, session):
        (folder / "main.py").write_text("raise RuntimeError('v2')\n")
        (failure,) = (await session.reload()).failed
        assert "RuntimeError: v2" in failure.reason
        verdict, text = await execute(session)
        assert (verdict.by, "guarded" in text) == ("guard", True)
        await session.unload("guard")
        await session.reload("guard")
        verdict, text = await execute(session)
        assert (verdict.outcome, "guard" in text) == (Outcome.BLOCK, True), "refused, with whom it waits for"
    assert executed == []


async def test_c70_a_reload_is_bounded_and_one_that_stalls_holds_up_nobody(tmp_path) -> None:
    place = Place(tmp_path)
    stalls = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nserve()\nhang()"
    folders = {
        name: place.add(name, stalls if name == "at-its-end" else "serve()") for name in ("at-its-end", "at-its-start")
    }
    good = place.add("good", "serve(lambda f: result(f['id'], 'old'), tools=['t'])")
    deadlines = Deadlines(ready_cap_s=30, reload_total_s=3, stop_grace_s=0.3, term_grace_s=0.2)
    async with running(place, deadlines=deadlines) as (_host, session):
        (folders["at-its-end"] / "main.py").write_text("from guest import *\nserve()\n")
        (folders["at-its-start"] / "main.py").write_text("from guest import *\nhang()\n")
        (good / "main.py").write_text("from guest import *\nserve(lambda f: result(f['id'], 'new'), tools=['t'])\n")
        with trio.fail_after(deadlines.reload_total_s + SLACK_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.reload)
                while text_of(await session.call_tool("t", {})) != "new":
                    await trio.lowlevel.checkpoint()
                assert session.reload_report is None, "the good one works while the others stall"
        assert session.reload_report is not None
        (failure,) = session.reload_report.failed
        assert failure.name == "at-its-start"


WORKS = "def work(f):\n    wait_for('go')\n    result(f['id'], 'real')\nserve(work, tools=['t'])"


@pytest.mark.parametrize("grace_s", [30, 0])
async def test_c71_a_call_in_flight_has_its_grace_or_ends_with_a_typed_error(tmp_path, grace_s) -> None:
    place = Place(tmp_path)
    place.add("a", WORKS)
    async with running(place) as (_host, session):
        ended: list[str] = []

        async def call() -> None:
            try:
                ended.append(text_of(await session.call_tool("t", {})))
            except Reloaded as exc:
                ended.append(exc.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(lambda: session.reload("a", when="now", grace_s=grace_s))
            while len(place.started) < 2 or (grace_s == 0 and not ended):
                await trio.lowlevel.checkpoint()
            place.signal("go")
        assert ended == (["real"] if grace_s else [Reloaded.code])


async def test_c71_five_reloads_at_once_are_one_or_two(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("a", "serve()")
    async with running(place) as (_host, session):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(session.reload, "a")
        assert len(place.started) in (2, 3)
        assert row_of(session, "a").state == "ready"


async def test_c72_a_changed_line_or_helper_is_another_process_with_the_new_text(tmp_path) -> None:
    place = Place(tmp_path)
    folder = place.add("a", "import helper\nserve(lambda f: result(f['id'], 'one' + helper.TEXT), tools=['t'])")
    (folder / "helper.py").write_text("TEXT = 'one'\n")
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        for path, text in ((folder / "helper.py", "onetwo"), (folder / "main.py", "twotwo")):
            path.write_text(path.read_text().replace("'one'", "'two'"))
            before = row_of(session, "a").pid
            (restarted,) = (await session.reload()).restarted
            assert restarted.old_pid == before
            assert restarted.new_pid == row_of(session, "a").pid != before
            assert text_of(await session.call_tool("t", {})) == text
        await assert_good_answers(session)


class Raising(Client):
    """A client whose panels cannot all be closed: one raises, one passes on a cancellation that it has kept."""

    def __init__(self, kept: trio.Cancelled) -> None:
        super().__init__()
        self.raises: dict[str, BaseException] = {"p2": RuntimeError("p2"), "p4": kept}

    def close_panel(self, session, extension, panel_id) -> None:
        super().close_panel(session, extension, panel_id)
        if panel_id in self.raises:
            raise self.raises[panel_id]


class Undone(HostInstrument):
    """Keeps the handles of what was disposed of, in order."""

    def __init__(self) -> None:
        self.handles: list[int] = []

    def effects_changed(self, session_id, changes) -> None:
        self.handles += [each.record.handle for each in changes if each.cause is DisposeCause.FAULT]


async def test_c74_undoing_takes_every_step_in_reverse_order_also_where_some_raise(tmp_path, autojump_clock) -> None:
    async def program(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        for number in range(6):
            guest.send(type="register_tool", name=f"t{number}", schema={"type": "object"})
            guest.send(type="open_panel", panel={"id": f"p{number}", "title": "x"})
        guest.send(type="ready")
        await guest.until_shutdown()

    with trio.CancelScope() as scope:
        scope.cancel("p4")
        with pytest.raises(trio.Cancelled) as kept:
            await trio.lowlevel.checkpoint()
    client, instrument = Raising(kept.value), Undone()
    async with world(tmp_path, instrument=instrument) as (around, host):
        around.add("a", program)
        async with host.open_session("s", client=client) as session:
            await session.load_all()
            around.guests["a"].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            assert_nothing_left(session)
            assert [told[2] for told in client.told if told[0] == "close_panel"] == [
                f"p{n}" for n in (5, 4, 3, 2, 1, 0)
            ]
            assert len(instrument.handles) == 6
            assert instrument.handles == sorted(instrument.handles, reverse=True)
            raised = [each.message for each in host.diagnostics if each.code == "callback_failed"]
            assert ["p4" in raised[0], "p2" in raised[1], len(raised)] == [True, True, 2]
            assert row_of(session, "a").state == "failed"


async def test_c75_what_is_found_in_several_places_runs_once(tmp_path) -> None:
    place = Place(tmp_path)
    counts = "n = 0\ngreet(events=['tick'], tools=['count'])\nfor f in frames():\n    n += f['type'] == 'event'\n"
    counts += "    if f['type'] == 'tool_call': result(f['id'], str(n))"
    folder = place.add("a", counts)
    copied = place.add("a", counts, root="project")
    (tmp_path / "linked").symlink_to(folder)
    (tmp_path / "project" / "again").symlink_to(folder)
    place.directories.append(tmp_path / "linked")
    more: dict[str, Any] = {"project_roots": (tmp_path / "project",), "trust": lambda _candidate: True}
    async with running(place, **more) as (_host, session):
        session.emit("tick", {"n": 0})
        assert text_of(await session.call_tool("count", {})) == "1"
        assert len(place.started) == 1
        rows = session.extensions()
        assert [row.state for row in rows] == ["ready"] + ["shadowed"] * 3
        assert all(f"shadowed by {folder}" in row.reason for row in rows[1:])
        assert copied in [row.directory for row in rows]
        assert (await session.reload()).restarted == ()
        assert [row.state for row in session.extensions()] == ["ready"] + ["shadowed"] * 3
