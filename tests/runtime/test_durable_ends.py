"""Bounds and ends of what stores: too much waits, the session is over."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.test_durable_state import run, stored

from trio_exthost import ClosedError
from trio_exthost.errors import PositionError, SessionBusy, StoreFailed
from trio_exthost.runtime import brokers, committing
from trio_exthost.state.sqlite import SqliteStores


async def test_what_is_asked_for_after_the_end_is_refused_and_opens_nothing(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path) as (session, _):
        committer = await session.persistence.open()
    with pytest.raises(ClosedError):
        await session.persistence.open()
    with pytest.raises(ClosedError):
        await session.persistence.advance("m1")
    with pytest.raises(ClosedError):
        await session.advance("m1")
    with pytest.raises(ClosedError):
        await committer.submit(None)


async def test_more_than_may_wait_is_refused_and_the_others_are_stored(tmp_path, autojump_clock, monkeypatch) -> None:
    monkeypatch.setattr(committing, "MAX_WAITING", 3)
    refused = []

    async def advance(session, number):
        try:
            await session.advance(f"m{number}")
        except StoreFailed as exc:
            refused.append(exc.code)

    async with stored(tmp_path) as (session, _):
        committer = await session.persistence.open()
        gate, write = trio.Event(), committer._write

        async def late(group):
            await gate.wait()
            await write(group)

        monkeypatch.setattr(committer, "_write", late)
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(advance, session, number)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        # Those that the writer has taken do not wait any more.
        assert 3 <= len(committer.state.tree.positions) - 1 == 10 - len(refused) <= 6
        assert set(refused) == {"resource_limit"}


async def test_a_fork_of_an_entry_that_is_not_there_makes_no_session(tmp_path) -> None:
    stores = SqliteStores(tmp_path / "state")
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        with pytest.raises(PositionError):
            await session.fork("m9", "copy")
        with pytest.raises(SessionBusy):
            await session.fork("m1", session.id)
        assert [each.name for each in stores.sessions()] == [session.id]
        await session.fork("m1", "copy")
        assert [each.name for each in stores.sessions()] == ["copy", session.id]


async def test_what_was_deleted_from_the_memory_makes_room_at_once(tmp_path, autojump_clock, monkeypatch) -> None:
    monkeypatch.setattr(brokers, "MAX_MEMORY_BYTES", 100)
    old, new = ("memory.set", {"key": "old", "value": "x" * 60}), ("memory.set", {"key": "new", "value": "x" * 60})
    async with stored(tmp_path) as (session, _):
        assert await run(session, old) == [None]
        assert await run(session, new, ("memory.delete", {"key": "old"}), new) == ["resource_limit", None, None]
        assert await run(session, old, ("memory.get", {"key": "new"})) == ["resource_limit", "x" * 60]
        assert await run(session, ("memory.clear", {}), old, ("memory.get", {"key": "new"})) == [None, None, None]
