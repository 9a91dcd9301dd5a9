"""Cases from the field: what a reload says about what went wrong, and for how long that can be read."""

from __future__ import annotations

from typing import Any

from runtime.real.programs import Place, row_of, running, text_of

SAY = "serve(lambda f: result(f['id'], {0!r}), tools=[{0!r}])"


async def test_c23_each_failure_of_a_reload_has_stage_reason_and_log_until_the_next(tmp_path) -> None:
    place = Place(tmp_path)
    folders = {name: place.add(name, SAY.format(name)) for name in ("fine", "crash", "silent")}
    async with running(place) as (_host, session):
        (folders["crash"] / "main.py").write_text("raise RuntimeError('no API_KEY')\n")
        (folders["silent"] / "extension.json").write_text('{"name": "silent",\n "exec": }')
        report = await session.reload()
        assert session.reload_report is report
        crash, silent = sorted(report.failed, key=lambda each: each.name)
        assert (crash.name, crash.stage) == ("crash", "hello")
        assert "no API_KEY" in crash.reason
        assert crash.log_path == str(row_of(session, "crash").log_path)
        assert (silent.name, silent.stage) == ("silent", "discovery")
        assert "extension.json at line 2, column 10" in silent.reason
        assert report.unchanged == ("fine",)
        assert text_of(await session.call_tool("crash", {})) == "crash", "the old one goes on"
        (folders["crash"] / "main.py").write_text(f"from guest import *\n{SAY.format('crash')}\n")
        again = await session.reload()
        assert session.reload_report is again
        assert [each.name for each in again.failed] == ["silent"]


async def test_c23_what_a_reload_starts_in_vain_has_its_reason_in_its_row(tmp_path) -> None:
    place = Place(tmp_path)
    folder = place.add("stopped", SAY.format("stopped"), root="found")
    more: dict[str, Any] = {"project_roots": (tmp_path / "found",), "trust": lambda _candidate: True}
    async with running(place, **more) as (_host, session):
        await session.unload("stopped")
        (folder / "main.py").write_text("raise RuntimeError('no API_KEY')\n")
        place.add("new", "sys.exit(3)", root="found")
        assert {each.name for each in (await session.reload("stopped")).failed} == {"stopped"}
        assert {each.name for each in (await session.reload()).failed} == {"stopped", "new"}
        for name, said in (("stopped", "exit 1"), ("new", "exit 3")):
            row = row_of(session, name)
            assert (row.state, said in row.reason, row.error.stage) == ("failed", True, "hello")
            assert (row.log_path, row.pid) == (tmp_path / "data" / "logs" / f"{name}.log", None)
        for name in ("stopped", "new"):
            (tmp_path / "found" / name / "main.py").write_text(f"from guest import *\n{SAY.format(name)}\n")
        report = await session.reload()
        assert ([each.name for each in report.restarted], report.failed) == (["new", "stopped"], ())
        assert [row.state for row in session.extensions()] == ["ready"] * 2
