"""What could be lost in a reload although nothing failed."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
from runtime.fakes import Client, Guest, assert_nothing_left, serve, world
from runtime.puppets import ALL, register, tool
from runtime.reloads import answer, ask, broken, candidate, change, version

from trio_exthost import Deadlines, ExtensionPolicy, Policy, SimpleTool
from trio_exthost.packages import Candidate, Origin, Status


def hangs(**subscribe):
    """It says hello, and then nothing more."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=[])
        await guest.until_shutdown()

    return program


async def test_one_that_hangs_after_its_hello_does_not_take_over(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("old", tools=("t",), intercept=("tool_call",), block=True))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", hangs())
            report = await session.reload()
            assert report.restarted == ()
            (failure,) = report.failed
            assert "ready" in failure.reason
            assert (await ask(session)).reason == "old"
            assert (await session.call_tool("t", {})).text == "old"


async def test_silence_counts_as_ready_where_it_did_before(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("old", tools=("t",), ready=False))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", version("new", tools=("t",), ready=False))
            assert len((await session.reload()).restarted) == 1
            assert (await session.call_tool("t", {})).text == "new"


async def test_one_that_was_removed_and_is_put_back_is_added(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        change(around, "a")
        async with host.open_session("s") as session:
            await session.load_all()
            row = around.candidates.pop()
            assert (await session.reload()).removed == ("a",)
            assert session.tools() == ()
            around.candidates.append(row)
            assert (await session.reload()).added == ("a",)
            assert (await session.call_tool("t", {})).text == "1"
            # As switching it off and on again.
            change(around, "a", status=Status.DISABLED)
            assert (await session.reload()).removed == ("a",)
            change(around, "a", status=Status.EFFECTIVE)
            assert (await session.reload()).added == ("a",)


@pytest.mark.parametrize("how", ["cancelled", "merged"])
async def test_what_is_to_be_removed_is_not_forgotten(tmp_path, autojump_clock, how) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        change(around, "a")
        async with host.open_session("s") as session:
            await session.load_all()
            around.candidates.pop()
            async with trio.open_nursery() as nursery:
                with session.open_run():
                    nursery.start_soon(session.reload)
                    await trio.sleep(1)
                    assert session.reload_pending == ("a",)
                    assert [row.state for row in session.extensions()] == ["ready"]
                    if how == "cancelled":
                        nursery.cancel_scope.cancel("it is given up")
                    else:
                        nursery.start_soon(session.reload)
                    with trio.CancelScope(shield=True):
                        await trio.testing.wait_all_tasks_blocked()
            if how == "cancelled":
                await session.reload()
            assert session.reload_report is not None
            assert session.reload_report.removed == ("a",)
            assert session.extensions() == ()
            assert session.tools() == ()


async def test_a_root_that_cannot_be_read_removes_nothing(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", tools=("t",)))
        change(around, "a")
        async with host.open_session("s") as session:
            await session.load_all()
            around.candidates[:] = [
                Candidate(
                    name="fake",
                    directory=Path("/fake"),
                    shown="/fake",
                    origin=Origin.USER,
                    status=Status.REJECTED,
                    code="unreadable",
                    reason="the root /fake cannot be read: Input/output error",
                )
            ]
            report = await session.reload()
            assert report.removed == ()
            assert "Input/output error" in report.failed[0].reason
            assert (await session.call_tool("t", {})).text == "1"


async def test_a_deferred_tool_that_was_activated_stays_so(tmp_path, autojump_clock) -> None:
    def deferred(text: str):
        async def program(guest: Guest) -> None:
            guest.send(type="hello", name=guest.name, capabilities=[])
            guest.send(type="register_tool", name="t", schema={"type": "object"}, exposure="deferred")
            guest.send(type="register_tool", name="u", schema={"type": "object"}, exposure="deferred")
            guest.send(type="ready")
            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                answer(guest, frame, text)

        return program

    async with world(tmp_path) as (around, host):
        around.add("a", deferred("1"))
        async with host.open_session("s") as session:
            await session.load_all()
            session.activate_tools(["t"])
            assert {each.name: each.active for each in session.tools()} == {"t": True, "u": False}
            change(around, "a", deferred("2"))
            await session.reload()
            assert {each.name: each.active for each in session.tools()} == {"t": True, "u": False}


async def test_a_panel_that_both_open_at_their_start_is_the_new_ones(tmp_path, autojump_clock) -> None:
    def with_panel(text: str):
        async def program(guest: Guest) -> None:
            guest.send(type="hello", name=guest.name, capabilities=[])
            guest.send(type="open_panel", panel={"id": "p", "title": text, "lines": [], "footer": ""})
            guest.send(type="ready")
            await guest.until_shutdown()

        return program

    client = Client()
    async with world(tmp_path) as (around, host):
        around.add("a", with_panel("old"))
        async with host.open_session("s", client=client) as session:
            await session.load_all()
            assert session.panel("p").spec.title == "old"
            change(around, "a", with_panel("new"))
            with session.open_run():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(session.reload)
                    await trio.sleep(5)
                    assert session.panel("p").spec.title == "old"
                    nursery.cancel_scope.cancel("not yet")
            await session.reload()
            assert session.panel("p").spec.title == "new"
            told = [
                (each[0], each[2] if isinstance(each[2], str) else each[2].title)
                for each in client.told
                if "panel" in each[0]
            ]
            assert told == [("open_panel", "old"), ("close_panel", "p"), ("open_panel", "new")]
        assert_nothing_left(session)


async def test_a_manifest_that_tightens_no_more_guards_no_more(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", intercept=("tool_call",)), on_failure="block")
        async with host.open_session("s") as session:
            await session.load_all()
            manifest = candidate(around, "a").manifest
            loose = attrs.evolve(manifest, exthost=attrs.evolve(manifest.exthost, on_failure=None))
            change(around, "a", version("2", intercept=("tool_call",)), manifest=loose)
            await session.reload()
            around.guests["a"].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            assert (await ask(session)).allowed
            change(around, "a", manifest=manifest)
            await session.reload()
            around.guests["a"].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            assert (await ask(session)).blocked


async def test_a_row_tells_of_what_runs_not_of_what_should(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            manifest = attrs.evolve(candidate(around, "a").manifest, version="2")
            change(around, "a", broken, manifest=manifest)
            assert len((await session.reload()).failed) == 1
            (row,) = session.extensions()
            assert (row.state, row.version) == ("ready", "")
            change(around, "a", serve)
            await session.reload()
            assert session.extensions()[0].version == "2"


async def test_an_override_at_work_reaches_what_it_displaced_through_the_swap(tmp_path, autojump_clock) -> None:
    """It was called before its successor took over, and calls the bare tool after."""

    async def bare(arguments):
        await trio.lowlevel.checkpoint()
        return "bare"

    def sandbox(text: str, after: float):
        async def program(guest: Guest) -> None:
            guest.send(type="hello", name=guest.name, capabilities=["effects", "call_tool"])
            guest.send(**register(1, "tool", tool("bash", override=True)))
            guest.send(type="ready")
            async with trio.open_nursery() as nursery:

                async def work(frame) -> None:
                    await trio.sleep(after)
                    guest.send(
                        type="call_tool",
                        id=f"n{frame['id']}",
                        name="bash",
                        args={},
                        parent_id=frame["id"],
                        displaced=True,
                    )

                while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                    if frame["type"] == "invoke":
                        nursery.start_soon(work, frame)
                    elif frame["type"] == "tool_result":
                        content = [{"type": "text", "text": f"{text} {frame['content'][0]['text']}"}]
                        guest.send(type="invoke_result", id=frame["id"][1:], value={"content": content})
                nursery.cancel_scope.cancel()

        return program

    policy = Policy(extensions={"a": ExtensionPolicy(grant=["tools.override:bash"])})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("a", sandbox("old", after=2), permissions=ALL)
        async with host.open_session("s", tools=[SimpleTool("bash", "", {"type": "object"}, bare)]) as session:
            await session.load_all()
            change(around, "a", sandbox("new", after=0))
            results = []

            async def call(at: float) -> None:
                await trio.sleep(at)
                results.append((await session.call_tool("bash", {})).text)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, 0)
                nursery.start_soon(call, 1.5)  # it is at work when its successor takes over
                await trio.sleep(1)
                await session.reload(when="now", grace_s=5)
            assert results == ["old bare", "old bare"]
            assert (await session.call_tool("bash", {})).text == "new bare"


@pytest.mark.parametrize("code", ["trust_required", "digest_failed"])
async def test_what_is_not_trusted_any_more_is_not_started_and_told_with_its_reason(
    tmp_path, autojump_clock, code
) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("old", tools=("t",)))
        async with host.open_session("s") as session:
            await session.load_all()
            change(around, "a", broken, status=Status.BLOCKED, code=code, reason="exthost trust /fake/a")
            report = await session.reload()
            assert around.spawned == 1
            assert report.removed == ("a",) or "exthost trust" in report.failed[0].reason
            assert "exthost trust" in str(session.extensions()) + str(report)


async def test_without_a_load_before_it_a_reload_loads(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, deadlines=Deadlines(ready_cap_s=1)) as (around, host):
        around.add("a", version("1", tools=("t",)))
        async with host.open_session("s") as session:
            assert (await session.reload()).added == ("a",)
            assert (await session.call_tool("t", {})).text == "1"
