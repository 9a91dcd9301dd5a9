"""What the extensions of one session store: opened when the first needs it, written by one task, followed by all.

The store of a session is opened when an extension with a `state_schema` is loaded, or the embedder names a position. Where it
cannot be (another host has it, it is damaged), those extensions do not run, and everybody else does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError, ClosedError, PayloadError, StateError, StoreFailed
from trio_exthost.runtime.committing import Committer
from trio_exthost.runtime.sharing import SharedSpace
from trio_exthost.runtime.storing import Storing

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.turns import Turn
    from trio_exthost.state import Action, Committed, Compaction, Placement, Projection, StateStores
    from trio_exthost.state.session_state import Outcome

T = TypeVar("T")


@attrs.frozen
class StoredContext:
    """Something an extension wants the model to see."""

    extension: str
    """Whose it is."""
    context_id: str
    """Its id, once per extension."""
    placement: Placement
    """Where: in the system prompt (`content` is a text), or as a message (an object)."""
    content: Any
    """What. A new object at each look."""


class Persistence:
    """The durable state of one session."""

    def __init__(self, session: Session, stores: Callable[[], StateStores]) -> None:
        """Nothing is opened yet; `stores` is called when it is."""
        self._session = session
        self._make_stores = stores
        self._stores: StateStores | None = None
        self._committer: Committer | None = None
        self._is_closed = False
        self._opening = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)
        self.shared: SharedSpace = SharedSpace(session, self._stores_now, self.in_thread)
        """What extensions share between sessions."""
        self.storing: Storing = Storing(session)
        """What is being stored, whatever becomes of who has sent it."""

    async def in_thread(self, function: Callable[[], T], *, limiter: trio.CapacityLimiter | None = None) -> T:
        """Run what blocks, at once where the stores are in memory; what concerns the session's store, one at a time.

        Raises:
          StateError: It failed, in whatever way.
        """
        from trio_exthost.state.memory import MemoryStores  # noqa: PLC0415 - only with state

        try:
            if isinstance(self._stores, MemoryStores):
                await trio.lowlevel.checkpoint()
                return function()
            return await trio.to_thread.run_sync(function, limiter=limiter or self._limiter)
        except StateError:
            raise
        except Exception as exc:  # a store may be the embedder's: who asked is told, and nobody else is harmed
            raise StoreFailed(f"the store raised {exc!r}") from exc

    async def open(self) -> Committer:
        """Open the session's state, once.

        Raises:
          SessionBusy: Another host has it open.
          StateError: It cannot be opened; the next call tries again.
          ClosedError: The session has ended.
        """
        async with self._opening:
            if self._is_closed:  # nobody would close it again, and the host would wait for its committer
                raise ClosedError("the session has ended; nothing more is stored")
            if self._committer is None:
                from trio_exthost.state import SessionState  # noqa: PLC0415 - only with state

                stores = self._stores = self._make_stores()
                session = self._session

                def read() -> SessionState:
                    store = stores.open_session(session.id)
                    try:
                        return SessionState(store)
                    except BaseException:  # whatever it is, the lease must not stay
                        store.close()
                        raise

                with trio.CancelScope(shield=True):  # what was opened has to be closed by somebody
                    state = await self.in_thread(read)
                committer = Committer(state, self.in_thread)
                session.host.nursery.start_soon(committer.run, name=f"committer of {session.id}")
                session.raise_sequence(state.last_sequence)
                self._committer = committer
                self._follow()
            return self._committer

    async def aclose(self) -> None:
        """Write what waits, and close. Shielded: where everything around is cancelled, nobody else would. Idempotent."""
        with trio.CancelScope(shield=True):
            await self.storing.finish()
            async with self._opening:
                self._is_closed = True
                committer, self._committer = self._committer, None
            if committer is not None:
                await committer.aclose()

    def concerns(self, instance: Instance) -> bool:
        """Whether an instance may have a state, so that `prepare` has to come before all else."""
        return instance.registrant.state_schema is not None or self.is_due(instance)

    def is_due(self, instance: Instance) -> bool:
        """Whether what it has stored on the selected branch is in another form than it knows, or it knows none at all."""
        stored = self.projection(instance.name).schema
        return stored is not None and stored != instance.registrant.state_schema

    def _follow(self) -> None:
        """Another branch is seen from now on: whose state is in another form there is not asked before it is migrated."""
        for instance in self._session.loader.instances():
            if self.is_due(instance):
                instance.life.bring_in_order()

    # --- what is there ---

    def projection(self, extension: str) -> Projection:
        """What an extension has stored on the selected branch."""
        from trio_exthost.state import Projection  # noqa: PLC0415 - only with state

        if self._committer is None:
            return Projection(extension=extension)
        return self._committer.state.projection(extension)

    @property
    def selected(self) -> str:
        """The selected position; the beginning while nothing is open."""
        return self._committer.state.tree.selected.name if self._committer is not None else ""

    def model_context(self) -> tuple[StoredContext, ...]:
        """What the model shall see: extensions in catalogue order, of each in the order in which they began."""
        if self._committer is None:
            return ()
        place_of = self._session.loader.place_of
        projections = sorted(self._committer.state.projections.values(), key=lambda each: place_of(each.extension))
        return tuple(
            StoredContext(projection.extension, context_id, context.placement, context.content)
            for projection in projections
            for context_id, context in projection.contexts.items()
        )

    # --- what is written ---

    def read_actions(self, instance: Instance, raw: Sequence[Mapping[str, Any]]) -> tuple[Action, ...]:
        """Durable actions of an extension, checked.

        Raises:
          StateRefused: It may not store, or one of them is wrong.
        """
        from trio_exthost.state import check_may_store, read_actions  # noqa: PLC0415 - only with state

        check_may_store(
            instance.name,
            granted=instance.registrant.granted,
            state_schema=instance.registrant.state_schema,
        )
        return read_actions(raw, extension=instance.name)

    async def commit(
        self,
        instance: Instance,
        actions: tuple[Action, ...],
        turn: Turn,
        on_stored: Callable[[Outcome], None] = lambda _outcome: None,
        on_queued: Callable[[], None] = lambda: None,
        on_settled: Callable[[], None] = lambda: None,
    ) -> Committed:
        """Store a batch in the session's space, when it is its turn; as `Committer.submit`. The actions were checked."""

        def is_queued() -> None:
            turn.end()
            on_queued()

        def is_stored(outcome: Outcome) -> None:
            on_stored(outcome)
            if self._session.loader.running(instance.name) is not instance:  # its successor may have begun without it
                self._follow()

        from trio_exthost.state import Commit  # noqa: PLC0415 - only with state

        await turn.wait()
        committer = await self.open()
        schema = instance.registrant.state_schema
        assert schema is not None, "checked with the actions"
        commit = Commit(extension=instance.name, schema=schema, actions=actions, sequence=self._session.next_sequence())
        return await committer.submit(commit, is_stored, is_queued, on_settled)  # type: ignore[return-value]

    def _stores_now(self) -> StateStores:
        if self._stores is None:
            self._stores = self._make_stores()
        return self._stores

    # --- branches ---

    async def advance(self, entry_id: str) -> None:
        """See `Session.advance`."""
        from trio_exthost.state import Advance  # noqa: PLC0415 - only with state

        await (await self.open()).submit(Advance(entry_id))

    async def checkout(self, entry_id: str) -> None:
        """See `Session.checkout`."""
        from trio_exthost.state import Checkout  # noqa: PLC0415 - only with state

        await (await self.open()).submit(Checkout(entry_id), lambda _outcome: self._follow())
        for instance in self._session.loader.instances():
            await instance.life.until_in_order(math.inf)

    async def fork(self, entry_id: str, session_id: str) -> None:
        """See `Session.fork`."""
        committer = await self.open()
        stores = self._stores_now()
        committer.state.tree.find(entry_id)  # before a file is made for the other session

        def copy() -> None:
            target = stores.open_session(session_id)
            try:
                committer.state.fork(entry_id, target)
            finally:
                target.close()

        await self.in_thread(copy)

    async def compact(self) -> Compaction:
        """See `Session.compact_state`."""
        committer = await self.open()
        return await self.in_thread(committer.state.compact)

    # --- migration ---

    async def prepare(self, instance: Instance) -> str:
        """Bring an instance's state in order before anything of it runs; where that fails it is stopped, and why is told."""
        try:
            await self.open()
        except (StateError, ClosedError) as exc:
            return exc.message + (f" ({exc.hint})" if exc.hint else "")
        from trio_exthost.runtime.migrating import migrate  # noqa: PLC0415 - only with state

        try:
            await migrate(self, instance)
        except (StateError, CallError, PayloadError) as exc:
            why = f"its state cannot be used: {exc.message}" + (f" ({exc.hint})" if exc.hint else "")
            instance.report(Code.STATE_MIGRATION_FAILED, Severity.ERROR, why)
            instance.end(Code.STATE_MIGRATION_FAILED, why)
            return why
        return ""

    async def submit_migration(self, instance: Instance, base: Projection, state: object) -> None:
        """Store what a migration of the session's space returned."""
        from trio_exthost.state import Migrate  # noqa: PLC0415 - only with state

        schema = instance.registrant.state_schema
        assert schema is not None
        committer = await self.open()
        await committer.submit(
            Migrate(base=base, state=state, to_schema=schema, sequence=self._session.next_sequence())
        )
