"""The committer by itself, with a store in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import TypeVar

import trio
import trio.testing

from trio_exthost.runtime.committing import Committer
from trio_exthost.state import Advance, SessionState
from trio_exthost.state.memory import MemoryStores

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    await trio.lowlevel.checkpoint()
    return function()


async def test_who_has_stored_something_is_not_kept_in_memory_until_the_next_does() -> None:
    class Caller:
        def is_stored(self, _outcome: object) -> None:
            stored.set()

    committer = Committer(SessionState(MemoryStores().open_session("s")), in_thread)
    stored, caller = trio.Event(), Caller()
    alive = weakref.ref(caller)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(committer.run)
        await committer.submit(Advance("a"), on_stored=caller.is_stored)
        assert stored.is_set()
        del caller
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        is_kept = alive() is not None
        await committer.aclose()
    assert not is_kept
