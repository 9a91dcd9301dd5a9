"""Reload: what a new look at the catalogue does, and what becomes of what fails."""

from __future__ import annotations

import attrs
import pytest
import trio
from runtime.fakes import assert_nothing_left, codes, serve, world
from runtime.reloads import ask, broken, candidate, change, silent, version

from trio_exthost import ClosedError, Deadlines, ExtensionPolicy, LoadError, Policy
from trio_exthost.packages import Status


def pids(session) -> dict[str, int | None]:
    return {row.name: row.pid for row in session.extensions()}


async def test_one_look_adds_removes_restarts_and_leaves_alone(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        for name in ("gone", "off", "same", "other"):
            around.add(name, serve)
            change(around, name)
        async with host.open_session("s") as session:
            await session.load_all()
            before = pids(session)
            around.add("new", serve)
            change(around, "new")
            around.candidates.remove(candidate(around, "gone"))
            change(around, "off", status=Status.DISABLED, code="disabled", reason="its manifest says enabled: false")
            change(around, "other")
            report = await session.reload()
            after = pids(session)
            assert report.added == ("new",)
            assert report.removed == ("gone", "off")
            assert report.unchanged == ("same",)
            assert report.failed == ()
            (restarted,) = report.restarted
            assert (restarted.name, restarted.old_pid, restarted.new_pid) == ("other", before["other"], after["other"])
            assert before["other"] != after["other"]
            assert before["same"] == after["same"]
            assert after["off"] is None
            assert set(after) == {"off", "same", "other", "new"}
            assert session.reload_report is report
            again = await session.reload()
            assert set(again.unchanged) == {"same", "other", "new"}
            assert (again.added, again.removed, again.restarted, again.failed) == ((), (), (), ())
            assert session.reload_report is again
        assert_nothing_left(session)


async def test_a_changed_manifest_and_an_unknown_digest_count_as_changes(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve)
        change(around, "a", digest="1")
        around.add("huge", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            manifest = attrs.evolve(candidate(around, "a").manifest, version="2")
            change(around, "a", digest="1", manifest=manifest)
            report = await session.reload()
            assert [each.name for each in report.restarted] == ["a", "huge"]


async def test_the_named_one_gets_a_new_process_and_nobody_else_is_looked_at(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        for name in ("a", "b"):
            around.add(name, serve)
            change(around, name)
        async with host.open_session("s") as session:
            await session.load_all()
            before = pids(session)
            change(around, "b")
            report = await session.reload("a")
            assert [each.name for each in report.restarted] == ["a"]
            assert report.unchanged == ()
            assert pids(session)["a"] != before["a"]
            assert pids(session)["b"] == before["b"]
            assert [each.name for each in (await session.reload()).restarted] == ["b"]
            unknown = await session.reload("nobody")
            (failure,) = unknown.failed
            assert (failure.name, failure.stage) == ("nobody", "discovery")
            assert "no extension of that name" in failure.reason


async def test_what_does_not_come_up_leaves_the_old_one_and_says_why(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=Deadlines(hello_s=3)) as (around, host):
        for name in ("a", "b", "c"):
            around.add(name, version("old", tools=(f"t-{name}",)))
            change(around, name)
        async with host.open_session("s") as session:
            await session.load_all()
            before = pids(session)
            change(around, "a", broken)
            change(around, "b", silent)
            change(around, "c", version("new", tools=("t-c",)))
            report = await session.reload()
            first, second = report.failed
            assert (first.name, first.stage) == ("a", "hello")
            assert "SyntaxError" in first.reason
            assert first.log_path.endswith("a.log")
            assert (second.name, second.stage) == ("b", "hello")
            assert "no hello within 3 s" in second.reason
            assert [each.name for each in report.restarted] == ["c"]
            assert {name: pid for name, pid in pids(session).items() if name != "c"} == {
                "a": before["a"],
                "b": before["b"],
            }
            for name, text in (("a", "old"), ("b", "old"), ("c", "new")):
                assert (await session.call_tool(f"t-{name}", {})).text == text
            assert session.reload_report is report
            change(around, "a", version("mended", tools=("t-a",)))
            await session.reload("a")
            assert (await session.call_tool("t-a", {})).text == "mended"
        assert_nothing_left(session)


async def test_a_manifest_that_cannot_be_read_is_looked_at_twice_and_leaves_the_old_one(
    tmp_path, autojump_clock
) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("old", tools=("t",)))
        change(around, "a")
        async with host.open_session("s") as session:
            await session.load_all()
            whole = candidate(around, "a")
            cut = {"status": Status.REJECTED, "code": "manifest_invalid", "reason": "not JSON", "manifest": None}
            change(around, "a", name="a-folder", **cut)
            looks = 0
            look = around.catalogue

            async def mended_in_between(config, cwd):
                nonlocal looks
                looks += 1
                if looks == 2:
                    around.candidates[0] = whole
                return await look(config, cwd)

            host.catalogue = mended_in_between
            assert (await session.reload()).unchanged == ("a",)
            assert looks == 2
            change(around, "a", name="a-folder", **cut)
            (failure,) = (await session.reload()).failed
            assert (failure.name, failure.reason, failure.stage) == ("a", "not JSON", "discovery")
            assert (await session.call_tool("t", {})).text == "old"
            assert [(row.name, row.state) for row in session.extensions()] == [("a", "ready")]


async def test_it_ends_within_its_total_and_the_others_run_at_once(tmp_path, autojump_clock) -> None:
    deadlines = Deadlines(hello_s=100, reload_total_s=6)
    async with world(tmp_path, deadlines=deadlines) as (around, host):
        around.add("stalls-at-its-end", silent_at_the_end)
        around.add("stalls-at-its-start", serve)
        around.add("good", version("old", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "stalls-at-its-end", serve)
            change(around, "stalls-at-its-start", silent)
            change(around, "good", version("new", tools=("t",)))
            begun = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.reload)
                while (await session.call_tool("t", {})).text != "new":
                    await session.wait_changed(session.version)
                assert trio.current_time() - begun < 0.1
            assert trio.current_time() - begun <= 6
            assert session.reload_report is not None
            (failure,) = session.reload_report.failed
            assert failure.name == "stalls-at-its-start"
            assert "not ready after 6 s" in failure.reason
            assert len(session.reload_report.restarted) == 2


async def silent_at_the_end(guest) -> None:
    guest.ignores.add(15)
    await serve(guest)
    await trio.sleep_forever()


@pytest.mark.parametrize("mode", ["never", "on_crash"])
async def test_one_that_has_failed_is_started_again_and_one_that_was_unloaded_is_not(
    tmp_path, autojump_clock, mode
) -> None:
    policy = Policy(extensions={"a": ExtensionPolicy(restart=mode, restart_delay_s=20)})
    async with world(tmp_path, policy=policy) as (around, host):
        for name in ("a", "b"):
            around.add(name, serve)
            change(around, name)
        async with host.open_session("s") as session:
            await session.load_all()
            old = pids(session)["a"]
            around.guests["a"].exit(3)
            await trio.testing.wait_all_tasks_blocked()
            await session.unload("b")
            report = await session.reload()
            (restarted,) = report.restarted
            assert (restarted.name, restarted.old_pid) == ("a", old)
            assert report.unchanged == ("b",)
            await trio.sleep(100)
            assert around.spawned == 3
            assert [each.name for each in (await session.reload("b")).restarted] == ["b"]


async def test_a_cancelled_reload_stops_what_was_to_take_over(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=Deadlines(hello_s=100)) as (around, host):
        around.add("a", version("old", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", silent)
            with trio.move_on_after(1):
                await session.reload()
            new = around.guests["a"]
            await trio.sleep(5)
            assert new.reaped
            assert (await session.call_tool("t", {})).text == "old"
            assert session.reload_report is None
        assert_nothing_left(session)


async def test_requests_that_come_together_are_one_and_a_cancelled_one_leaves_it_to_the_others(
    tmp_path, autojump_clock
) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(session.reload, "a")
                given_up = trio.CancelScope()

                async def give_up() -> None:
                    with given_up:
                        await session.reload("a")

                nursery.start_soon(give_up)
                await trio.testing.wait_all_tasks_blocked()
                given_up.cancel()
            assert around.spawned <= 3
            assert around.spawned >= 2


async def test_unloading_calls_a_reload_off_and_so_does_the_end(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=Deadlines(hello_s=100)) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", silent)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.reload)
                await trio.testing.wait_all_tasks_blocked()
                await session.unload("a")
            assert session.reload_report is not None
            (failure,) = session.reload_report.failed
            assert "asked to stop" in failure.reason
            assert session.extensions()[0].state == "stopped"
            around.programs["a"] = serve
            await session.reload("a")
            around.programs["a"] = silent

            async def in_vain() -> None:
                with pytest.raises(ClosedError):
                    await session.reload("a")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(in_vain)
                await trio.testing.wait_all_tasks_blocked()
                await session.aclose()
        with pytest.raises(ClosedError):
            await session.reload()
        assert_nothing_left(session)


async def test_what_the_catalogue_raises_is_raised_and_nothing_has_changed(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()

            async def refuses(config, cwd):
                await trio.lowlevel.checkpoint()
                raise PermissionError("no")

            host.catalogue = refuses
            with pytest.raises(PermissionError):
                await session.reload()
            host.catalogue = around.catalogue
            assert [each.name for each in (await session.reload()).restarted] == ["a"]
            for wrong in ({"when": "later"}, {"grace_s": -1}, {"grace_s": float("inf")}):
                with pytest.raises(ValueError):
                    await session.reload(**wrong)


async def test_what_was_loaded_by_hand_stays_and_a_new_place_in_the_catalogue_counts(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("x", version("x", intercept=("turn_start",)))
        around.add("y", version("y", intercept=("turn_start",)))
        for name in "xy":
            change(around, name)
        by_hand = around.candidates.pop()
        rows = around.candidates
        async with host.open_session("s") as session:
            await session.load_all()
            await session.load(by_hand)

            async def catalogue(config, cwd):
                await trio.lowlevel.checkpoint()
                return [by_hand] if config.extensions == (by_hand.directory,) else rows

            host.catalogue = catalogue
            assert (await session.reload()).unchanged == ("x", "y")
            verdict = await session.intercept("turn_start", {"step": 1})
            assert [step.extension for step in verdict.steps] == ["x", "y"]
            rows.insert(0, by_hand)
            assert (await session.reload()).unchanged == ("y", "x")
            verdict = await session.intercept("turn_start", {"step": 1})
            assert [step.extension for step in verdict.steps] == ["y", "x"]
            assert "shadowed" not in codes(host)


async def test_load_and_ask_work_as_before_after_a_reload(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", intercept=("tool_call",), block=True))
        async with host.open_session("s") as session:
            await session.load_all()
            await session.reload()
            assert (await ask(session)).blocked
            with pytest.raises(LoadError):
                await session.load(around.candidates[0])
            await session.unload("a")
            assert (await ask(session)).allowed
            await session.load(around.candidates[0])
            assert (await ask(session)).blocked
