"""What an extension shares between sessions, hosts and processes: read and written where it holds up nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from trio_exthost.errors import MigrationRefused

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.turns import Turn
    from trio_exthost.state import Action, Committed, Projection, StateStores

T = TypeVar("T")
MAX_AT_ONCE = 4
"""Threads of one session that may wait for files that other processes have locked."""


class _InThread(Protocol):
    async def __call__(self, function: Callable[[], T], *, limiter: trio.CapacityLimiter | None = None) -> T: ...


class SharedSpace:
    """The spaces that extensions share, as one session uses them. Nothing is remembered: others may have changed it."""

    def __init__(self, session: Session, stores: Callable[[], StateStores], in_thread: _InThread) -> None:
        """Nothing is opened; `in_thread` runs what blocks."""
        self._session = session
        self._stores = stores
        self._in_thread = in_thread
        # Not the one of the session's own store: its commits must not wait for other processes.
        self._limiter = trio.CapacityLimiter(MAX_AT_ONCE)
        self._locks: dict[str, trio.Lock] = {}

    async def commit(self, instance: Instance, actions: tuple[Action, ...], turn: Turn) -> Committed:
        """Store a batch when it is its turn; one at a time for each extension. The actions were checked.

        Raises:
          StateError: It was refused, or could not be stored; nothing of it counts.
        """
        await turn.wait()
        schema, sequence = instance.registrant.state_schema, self._session.next_sequence()
        assert schema is not None, "checked with the actions"
        stores = self._stores()
        try:
            async with self._locks.setdefault(instance.name, trio.Lock()):
                return await self._run(
                    lambda: stores.open_extension(instance.name).commit(actions, schema=schema, sequence=sequence)
                )
        except MigrationRefused as exc:
            refused = exc
        await self._look_again(instance)
        raise refused

    async def _look_again(self, instance: Instance) -> None:
        """What it has found when it began is of another form now: what an older one has stored since is migrated."""
        schema, stored = instance.registrant.state_schema, (await self.read(instance.name, ())).schema
        if stored is not None and schema is not None and stored < schema:
            instance.life.bring_in_order()

    async def read(self, extension: str, keys: Sequence[str] | None = None) -> Projection:
        """What an extension has stored; only these keys of it, if any are named.

        Raises:
          StateError: It could not be read.
        """
        stores = self._stores()
        return await self._run(lambda: stores.open_extension(extension).read(keys))

    async def migrate(self, instance: Instance, base: Projection, state: object) -> None:
        """Store what a migration returned.

        Raises:
          StateError: It cannot be; with `conflict` where it is not `base` any more that is stored.
        """
        schema, sequence = instance.registrant.state_schema, self._session.next_sequence()
        assert schema is not None
        stores = self._stores()
        await self._run(
            lambda: stores.open_extension(instance.name).migrate(
                state, expected_revision=base.revision, to_schema=schema, sequence=sequence
            )
        )

    async def _run(self, function: Callable[[], T]) -> T:
        return await self._in_thread(function, limiter=self._limiter)
