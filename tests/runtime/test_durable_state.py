"""Durable state in a session, over stores in memory: answers that store, commits at any time, brokers, branches, migration."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from runtime.fakes import codes, serve, world
from runtime.hookers import hooker

from trio_exthost import CallError, MalformedReply, Success
from trio_exthost.errors import PositionError, SessionBusy, StoreFailed
from trio_exthost.runtime import brokers
from trio_exthost.state.memory import MemoryStores

WRITER = {"permissions": ("session.write", "commands.register"), "state_schema": 1}


def set_state(key, value, **more):
    return {"kind": "set_state", "key": key, "value": value, **more}


def context(context_id, content, placement="system_prompt_section"):
    return {"kind": "append_model_context", "context_id": context_id, "placement": placement, "content": content}


def storing(*, schema_migration=None):
    """Registers a command `c` whose arguments say what it does while it runs, and what it answers."""

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False, events=["commit"])
        descriptor = {"name": "c", "description": "c", "argument_schema": {"type": "object"}}
        guest.send(type="register", registration_id=1, kind="command", descriptor=descriptor)
        if schema_migration is not None:
            guest.send(type="register", registration_id=2, kind="migration", descriptor={})
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None:
            if frame["type"] == "shutdown":
                return
            if frame["type"] == "event":
                guest.send(type="state_commit", **frame["commit"])
            if frame["type"] == "invoke" and frame["envelope"]["event"] == "migration":
                answer = schema_migration(frame["envelope"]["payload"])
                guest.send(type="invoke_result", id=frame["id"], **answer)
            elif frame["type"] == "invoke":
                await _work(guest, frame)

    return program


async def _work(guest, frame):
    arguments = frame["envelope"]["payload"]["arguments"]
    seen = []
    for number, (operation, values) in enumerate(arguments.get("brokers", [])):
        guest.send(type="broker_call", id=f"b{number}", invocation=frame["id"], operation=operation, arguments=values)
        result = await guest.frames("broker_result")
        seen.append(result.get("value") if result["ok"] else result["error"]["code"])
    answer = {"value": {"status": "success", "data": seen}, "actions": arguments.get("actions", [])}
    if arguments.get("fails"):
        answer = {"error": {"code": "oops", "message": "broken"}}
    guest.send(type="invoke_result", id=frame["id"], **answer)


@asynccontextmanager
async def stored(tmp_path, program=None, *, stores=None, session_id="s", section=None, name="a"):
    async with world(tmp_path, state=stores or MemoryStores()) as (around, host):
        around.add(name, program or storing(), **(section or WRITER))
        async with host.open_session(session_id) as session:
            await session.load_all()
            yield session, around.guests[name]


async def run(session, *brokers, actions=(), fails=False):
    outcome = await session.run_command("c", {"brokers": list(brokers), "actions": list(actions), "fails": fails})
    assert isinstance(outcome, Success)
    return outcome.data


async def ended(session):
    """The row of `a` once nothing of it runs."""
    while (row := next(row for row in session.extensions() if row.name == "a")).state == "stopping":
        await session.wait_changed(session.version)
    return row


GET = ("state.get", {"key": "k"})


async def test_what_an_answer_stores_is_there_afterwards_also_in_another_life(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        assert await run(session, GET, actions=[set_state("k", {"n": 1})]) == [None]
        assert await run(session, GET, ("state.revision", {"key": "k"}), ("state.schema", {})) == [{"n": 1}, 1, 1]
        last = session.next_sequence()
    async with stored(tmp_path, stores=stores) as (session, _):
        assert await run(session, GET) == [{"n": 1}]
        assert session.next_sequence() > 2
        assert last > 2
    async with stored(tmp_path, stores=stores, session_id="other") as (session, _):
        assert await run(session, GET) == [None]


async def test_an_answer_whose_batch_is_refused_is_not_applied_at_all(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path) as (session, _):
        await run(session, actions=[set_state("k", 1)])
        with pytest.raises(CallError) as caught:
            await run(session, actions=[set_state("other", 2), set_state("k", 2, if_revision=7)])
        assert caught.value.code == "conflict"
        with pytest.raises(MalformedReply):
            await run(session, actions=[set_state("", 2)])
        assert await run(session, GET, ("state.get", {"key": "other"})) == [1, None]


async def test_an_invocation_sees_what_it_writes_and_a_failure_takes_it_back(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path) as (session, _):
        write = ("set_state", {"key": "k", "value": 5})
        assert await run(session, write, GET, ("add_state", {"key": "k", "by": 2}), GET) == [True, 5, True, 7]
        assert await run(session, GET) == [7]
        with pytest.raises(CallError):
            await run(session, ("set_state", {"key": "k", "value": 9}), fails=True)
        assert await run(session, GET) == [7]
        # One that could not be stored is refused at once, and spoils nothing.
        assert await run(session, ("add_state", {"key": "k", "by": "x"}), ("set_state", {"key": "k", "value": 8})) == [
            "invalid_payload",
            True,
        ]
        assert await run(session, GET) == [8]


async def test_the_memory_follows_the_invocation_and_does_not_outlive_the_instance(
    tmp_path, autojump_clock, monkeypatch
) -> None:
    stores = MemoryStores()
    get = ("memory.get", {"key": "m"})
    async with stored(tmp_path, stores=stores) as (session, _):
        assert await run(session, ("memory.set", {"key": "m", "value": [1]}), get) == [None, [1]]
        with pytest.raises(CallError):
            await run(session, ("memory.set", {"key": "m", "value": 2}), ("memory.delete", {"key": "m"}), fails=True)
        assert await run(session, get, ("memory.clear", {}), get) == [[1], None, None]
        assert await run(session, get) == [None]
        monkeypatch.setattr(brokers, "MAX_MEMORY_BYTES", 100)
        assert await run(session, *[("memory.set", {"key": f"{n}", "value": "x" * 60}) for n in range(2)]) == [
            None,
            "resource_limit",
        ]


async def test_brokers_refuse_what_they_must(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path) as (session, guest):
        assert await run(
            session,
            ("capabilities.has", {"permission": "session.write"}),
            ("capabilities.has", {"permission": "process.spawn"}),
            ("workspace.readText", {"path": "x"}),
            ("state.get", {}),
            ("state.get", {"key": "k", "space": "moon"}),
        ) == [True, False, "broker_unavailable", "invalid_arguments", "invalid_arguments"]
        many = await run(session, *[GET] * 40)
        assert many == [None] * 32 + ["resource_limit"] * 8
        guest.send(type="broker_call", id="late", invocation="7", operation="memory.get", arguments={"key": "k"})
        await trio.testing.wait_all_tasks_blocked()
        assert guest.received[-1]["error"]["code"] == "cancelled"


async def test_state_commit_at_any_time_in_both_spaces(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, guest):

        async def commit(id, space, *actions):
            session.emit("commit", {"commit": {"id": id, "space": space, "actions": list(actions)}})
            await trio.testing.wait_all_tasks_blocked()
            (answer,) = [each for each in guest.received if each["type"] == "state_result" and each["id"] == id]
            return answer

        answer = await commit("1", "session", set_state("k", 1), {"kind": "add_state", "key": "n", "by": 2})
        assert (answer["ok"], answer["revision"], answer["values"]) == (True, 1, {"k": 1, "n": 2})
        assert (await commit("2", "extension", set_state("k", "shared")))["ok"]
        refused = await commit("3", "session", set_state("k", 2, if_revision=9))
        assert (refused["ok"], refused["error"]["code"]) == (False, "conflict")
        refused = await commit("4", "extension", context("c", "x"))
        assert refused["error"]["code"] == "invalid_payload"
        assert await run(session, GET, ("state.get", {"key": "k", "space": "extension"})) == [1, "shared"]
        assert "state_refused" in codes(session.host)
    async with stored(tmp_path, stores=stores, session_id="other") as (session, _):
        assert await run(session, GET, ("state.get", {"key": "k", "space": "extension"})) == [None, "shared"]


async def test_hooks_store_with_their_answer(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {"actions": [set_state("seen", len(payload["messages"])), {"kind": "replace_context", "messages": []}]}

    program = hooker({"event": "context"}, reply=reply)
    async with stored(tmp_path, program) as (session, _):
        with session.open_run() as a_run:
            assert await a_run.context([{"role": "user", "content": "x"}]) == []
            verdict = await a_run.what_if("context", {"messages": []})
            assert verdict.value["messages"] == []
        assert session.persistence.projection("a").state() == {"seen": 1}  # a dry run stores nothing


async def test_events_are_replayed_in_order_and_by_type(tmp_path, autojump_clock) -> None:
    def event(number, kind):
        return {"kind": "append_custom_event", "event_id": f"e{number}", "custom_type": kind, "payload": number}

    async with stored(tmp_path) as (session, _):
        await run(session, actions=[event(1, "x"), event(2, "y")])
        await run(session, actions=[event(3, "x")])
        (replayed, some) = await run(session, ("events.replay", {}), ("events.replay", {"custom_type": "x"}))
        assert [each["payload"] for each in replayed] == [1, 2, 3]
        assert [each["event_id"] for each in some] == ["e1", "e3"]


async def test_state_and_contexts_follow_the_selected_branch(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        await run(session, actions=[set_state("k", "one"), context("c", "Be kind.")])
        await session.advance("m2")
        await run(session, actions=[set_state("k", "two"), context("c", "Be brief."), context("d", "And quick.")])
        assert [(each.context_id, each.content) for each in session.model_context()] == [
            ("c", "Be brief."),
            ("d", "And quick."),
        ]
        await session.checkout("m1")
        assert await run(session, GET) == ["one"]
        assert [each.content for each in session.model_context()] == ["Be kind."]
        await session.advance("m3")
        await run(session, actions=[set_state("k", "three")])
        with pytest.raises(PositionError):
            await session.advance("m2")
        with pytest.raises(PositionError):
            await session.checkout("m9")
        await session.fork("m2", "copy")
        await session.checkout("m2")
        assert await run(session, GET) == ["two"]
        await session.checkout("")
        assert await run(session, GET) == [None]
        before = session.persistence.projection("a")
        await session.compact_state()
        assert session.persistence.projection("a") == before
        with pytest.raises(StoreFailed):
            await session.fork("m2", "copy")
    async with stored(tmp_path, stores=stores, session_id="copy") as (session, _):
        assert await run(session, GET) == ["two"]


async def test_old_state_is_migrated_once_before_anything_else_runs(tmp_path, autojump_clock) -> None:
    stores, asked = MemoryStores(), []

    def migrate(payload):
        asked.append(payload)
        return {"value": {"state": {"k2": payload["state"]["k"] + 1}}}

    async with stored(tmp_path, stores=stores) as (session, guest):
        await run(session, actions=[set_state("k", 1)])
        session.emit("commit", {"commit": {"id": "x", "space": "extension", "actions": [set_state("k", 10)]}})
        await trio.testing.wait_all_tasks_blocked()
    section = {**WRITER, "state_schema": 2}
    for _ in range(2):
        async with stored(tmp_path, storing(schema_migration=migrate), stores=stores, section=section) as (session, _):
            assert await run(
                session, GET, ("state.get", {"key": "k2"}), ("state.get", {"key": "k2", "space": "extension"})
            ) == [None, 2, 11]
    assert [
        (each["space"], each["from_schema_version"], each["to_schema_version"], each["state"]) for each in asked
    ] == [
        ("session", 1, 2, {"k": 1}),
        ("extension", 1, 2, {"k": 10}),
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": {"code": "oops", "message": "cannot"}}, "cannot"),
        ({"value": {"state": [1]}}, "object"),
        ({"value": {}}, "a migration answers"),
        ({"value": {"state": {}}, "actions": [set_state("k", 1)]}, "may not store"),
    ],
)
async def test_a_migration_that_fails_disables_only_that_extension_and_keeps_the_history(
    tmp_path, autojump_clock, answer, why
) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await run(session, actions=[set_state("k", 1)])
    async with world(tmp_path, state=stores) as (around, host):
        around.add("a", storing(schema_migration=lambda _: answer), **{**WRITER, "state_schema": 2})
        around.add("b", serve)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert [row.name for row in report.rows if row.state == "ready"] == ["b"]
            (row,) = [row for row in session.extensions() if row.name == "a"]
            assert why in row.reason
        assert "state_migration_failed" in codes(host)
    async with stored(tmp_path, stores=stores) as (session, _):
        assert await run(session, GET) == [1]


async def test_an_older_extension_and_one_without_a_schema_do_not_run_on_newer_state(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores, section={**WRITER, "state_schema": 2}) as (session, _):
        await run(session, actions=[set_state("k", 1)])
    async with world(tmp_path, state=stores) as (around, host):
        around.add("a", storing(), **WRITER)
        async with host.open_session("s") as session:
            await session.load_all()
            row = await ended(session)
            assert (row.state, "newer" in row.reason) == ("failed", True)
            assert "install the newer version" in row.reason


async def test_a_branch_in_an_older_schema_is_migrated_when_it_is_selected(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        await run(session, actions=[set_state("k", 1)])
        await session.checkout("")
    migrate = storing(schema_migration=lambda payload: {"value": {"state": {"k": payload["state"]["k"] + 100}}})
    async with stored(tmp_path, migrate, stores=stores, section={**WRITER, "state_schema": 2}) as (session, _):
        assert await run(session, GET) == [None]
        await session.checkout("m1")
        assert await run(session, GET) == [101]


async def test_a_session_that_is_open_elsewhere_keeps_only_those_that_store_from_running(
    tmp_path, autojump_clock
) -> None:
    class Busy(MemoryStores):
        def open_session(self, session_id, *, begin_anew=False):
            raise SessionBusy(f"session {session_id!r} is open in process 7", pid=7, hint="close it there")

    async with world(tmp_path, state=Busy()) as (around, host):
        around.add("a", storing(), **WRITER)
        around.add("b", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await ended(session)
            states = {row.name: (row.state, row.reason) for row in session.extensions()}
            assert states["b"][0] == "ready"
            assert states["a"][0] == "failed"
            assert "open in process 7" in states["a"][1]
            with pytest.raises(SessionBusy):
                await session.advance("m1")


async def test_a_cancelled_commit_is_withdrawn_or_completes(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path) as (session, _):
        with trio.move_on_after(0):
            await session.advance("never")
        await session.advance("m1")
        with pytest.raises(PositionError):
            await session.checkout("never")


async def test_what_was_acknowledged_is_there_and_all_is_closed_where_everything_is_cancelled(
    tmp_path, autojump_clock
) -> None:
    stores = MemoryStores()
    with trio.CancelScope() as scope:
        async with stored(tmp_path, stores=stores) as (session, _):
            await run(session, actions=[set_state("k", 1)])
            scope.cancel("all of it")
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    async with stored(tmp_path, stores=stores) as (session, _):  # the first has let go of the session
        assert await run(session, GET) == [1]
