"""A reload while the old incarnation's commits are on their way: the successor finds them, in the form that it knows."""

from __future__ import annotations

from contextlib import asynccontextmanager

import trio
import trio.testing
from runtime.fakes import world
from runtime.hookers import invoked
from runtime.reloads import change
from runtime.test_durable_migrating import NEWER, Slow
from runtime.test_durable_moments import commit, results
from runtime.test_durable_state import WRITER, set_state, storing

from trio_exthost.packages import Manifest
from trio_exthost.packages.manifest import HostSection
from trio_exthost.state import read_actions
from trio_exthost.state.memory import MemoryStores


class Disk:
    """Lets the session's store be written when the test says so."""

    def __init__(self, committer) -> None:
        self._in_thread = committer._in_thread
        self.may_write = trio.Event()
        committer._in_thread = self.write

    async def write(self, function):
        await self.may_write.wait()
        return await self._in_thread(function)


@asynccontextmanager
async def running(tmp_path, stores=None):
    async with world(tmp_path, state=stores or MemoryStores()) as (around, host):
        around.add("a", storing(), **WRITER)
        async with host.open_session("s") as session:
            await session.load_all()
            yield around, session


def upgrade(around, program) -> None:
    manifest = Manifest(name="a", exec="/bin/true", exthost=HostSection(**NEWER))
    change(around, "a", program, manifest=manifest)


async def test_what_the_old_one_has_sent_is_stored_though_it_has_gone(tmp_path, autojump_clock) -> None:
    async with running(tmp_path) as (around, session):
        disk = Disk(await session.persistence.open())
        old = around.guests["a"]
        for number in range(5):
            commit(old, str(number), "k", number)
        change(around, "a", storing())
        await session.reload("a")
        assert around.guests["a"] is not old
        disk.may_write.set()
        await trio.testing.wait_all_tasks_blocked()
        assert session.persistence.projection("a").state() == {"k": 4}


async def test_what_the_old_one_has_sent_and_is_stored_after_its_successor_has_begun_is_migrated(
    tmp_path, autojump_clock
) -> None:
    program = Slow()
    program.may_migrate.set()
    async with running(tmp_path) as (around, session):
        disk = Disk(await session.persistence.open())
        commit(around.guests["a"], "1", "k", "old")
        upgrade(around, program)
        await session.reload("a")
        assert program.asked == []
        disk.may_write.set()
        await trio.testing.wait_all_tasks_blocked()
        assert program.asked == [{"k": "old"}]
        await session.run_command("c", {"actions": [set_state("n", 2)]})
        assert session.persistence.projection("a").state() == {"k": "new", "n": 2}
        assert [each["event"] for each in invoked(around.guests["a"])] == ["migration", "command"]


async def test_what_an_older_one_in_another_session_shares_first_is_migrated_when_the_newer_one_stores(
    tmp_path, autojump_clock
) -> None:
    stores, program = MemoryStores(), Slow()
    program.may_migrate.set()
    async with running(tmp_path, stores) as (around, session):
        upgrade(around, program)
        await session.reload("a")
        stores.open_extension("a").commit(read_actions([set_state("k", "old")], extension="a"), schema=1)
        guest = around.guests["a"]
        commit(guest, "1", "n", 2, "extension")
        await trio.testing.wait_all_tasks_blocked()
        commit(guest, "2", "n", 2, "extension")
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {"1": (False, "state_migration_failed"), "2": (True, "")}
        assert stores.open_extension("a").read().state() == {"k": "new", "n": 2}


async def test_one_that_is_older_than_what_another_shares_goes_on_without_it(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with running(tmp_path, stores) as (around, session):
        stores.open_extension("a").commit(read_actions([set_state("k", "new")], extension="a"), schema=2)
        guest = around.guests["a"]
        commit(guest, "1", "n", 2, "extension")
        await trio.testing.wait_all_tasks_blocked()
        assert results(guest) == {"1": (False, "state_migration_failed")}
        assert [row.state for row in session.extensions()] == ["ready"]
