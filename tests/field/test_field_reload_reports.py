"""Cases from the field: what a reload says about what went wrong, and for how long that can be read."""

from __future__ import annotations

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
