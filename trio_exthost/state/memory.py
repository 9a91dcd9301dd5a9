"""Stores that live as long as their process: for tests, and for agents that keep nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence

from trio_exthost.errors import SessionBusy, StoreFailed
from trio_exthost.state.actions import Action
from trio_exthost.state.branches import Record
from trio_exthost.state.committed import Committed
from trio_exthost.state.compaction import compact
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.projection import Projection
from trio_exthost.state.shared_space import apply_shared, migrate_shared
from trio_exthost.state.store import Compaction, StoredName, StoredTree
from trio_exthost.state.table import Table
from trio_exthost.state.tree import Path, Position, read_tree


class MemoryStores:
    """A `StateStores`. Sessions and extensions are there until it goes."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._extensions: dict[str, MemoryExtensionStore] = {}
        self._lock = threading.Lock()

    def open_session(self, session_id: str, *, begin_anew: bool = False) -> MemorySessionStore:  # noqa: ARG002 - as `StateStores`; nothing here is ever damaged
        """As `StateStores.open_session`."""
        with self._lock:
            session = self._sessions.setdefault(session_id, _Session())
            if session.holder is not None:
                raise SessionBusy(
                    f"session {session_id!r} is open in process {os.getpid()} (this one)", pid=os.getpid(),
                    hint="close it there first",
                )  # fmt: skip
            session.holder = store = MemorySessionStore(session_id, session)
        return store

    def open_extension(self, extension: str, *, begin_anew: bool = False) -> MemoryExtensionStore:  # noqa: ARG002 - as above
        """As `StateStores.open_extension`."""
        with self._lock:
            return self._extensions.setdefault(extension, MemoryExtensionStore(extension))

    def sessions(self) -> tuple[StoredName, ...]:
        """As `StateStores.sessions`."""
        with self._lock:
            found = sorted(self._sessions.items())
        return tuple(StoredName(name=name, path="", size_bytes=each.size_bytes) for name, each in found)

    def extensions(self) -> tuple[StoredName, ...]:
        """As `StateStores.extensions`."""
        with self._lock:
            found = sorted(self._extensions.items())
        sizes = ((name, each.read().usage.live_bytes, each.read().revision) for name, each in found)
        return tuple(StoredName(name=name, path="", size_bytes=size) for name, size, revision in sizes if revision)


class _Session:
    """What is kept of one session."""

    def __init__(self) -> None:
        self.holder: MemorySessionStore | None = None
        self.positions: list[Position] = []
        self.batches: dict[int, StoredBatch] = {}
        self.selected = 0
        self.last_row = 0
        self.last_sequence = 0

    @property
    def size_bytes(self) -> int:
        return sum(len(each.body) for each in self.batches.values())


class MemorySessionStore:
    """A `SessionStore`. Made by `MemoryStores.open_session`."""

    def __init__(self, session_id: str, session: _Session) -> None:
        self.session_id = session_id
        self._session = session

    def append_group(self, records: Sequence[Record], *, selected: int) -> None:
        """As `SessionStore.append_group`."""
        session = self._opened()
        for record in records:
            if isinstance(record, Position):
                session.positions.append(record)
            else:
                session.batches[record.row] = record
                session.last_sequence = max(session.last_sequence, record.sequence)
            session.last_row = record.row
        session.selected = selected

    def load_tree(self) -> StoredTree:
        """As `SessionStore.load_tree`."""
        session = self._opened()
        rows = ((each.row, each.name, each.parent.row) for each in session.positions if each.parent is not None)
        tree = read_tree(rows, selected=session.selected, last_row=session.last_row)
        return StoredTree(tree=tree, last_sequence=session.last_sequence)

    def load_branch(self, path: Path) -> Iterator[StoredBatch]:
        """As `SessionStore.load_branch`."""
        until = dict(path)
        return iter([each for each in self._opened().batches.values() if each.row < until.get(each.position, 0)])

    def load_all(self) -> Iterator[StoredBatch]:
        """As `SessionStore.load_all`."""
        return iter(tuple(self._opened().batches.values()))

    def compact(self) -> Compaction:
        """As `SessionStore.compact`."""
        session = self._opened()
        count, size = len(session.batches), session.size_bytes
        by_position: dict[int, list[StoredBatch]] = {}
        for each in session.batches.values():
            by_position.setdefault(each.position, []).append(each)
        for rewrite in list(compact(session.positions, lambda row: by_position.get(row, ()))):
            old = session.batches[rewrite.row]
            if rewrite.body is None:
                del session.batches[rewrite.row]
            else:
                session.batches[rewrite.row] = StoredBatch(old.row, old.position, old.sequence, rewrite.body)
        return Compaction(
            batches_before=count, batches_after=len(session.batches), bytes_before=size, bytes_after=session.size_bytes
        )

    def close(self) -> None:
        """As `SessionStore.close`."""
        if self._session.holder is self:
            self._session.holder = None

    def _opened(self) -> _Session:
        if self._session.holder is not self:
            raise StoreFailed(f"the store of session {self.session_id!r} is closed", hint="open the session again")
        return self._session


class MemoryExtensionStore:
    """An `ExtensionStore`. Made by `MemoryStores.open_extension`."""

    def __init__(self, extension: str) -> None:
        self.extension = extension
        self._projection = Projection(extension=extension)
        self._lock = threading.Lock()

    def commit(
        self, actions: Sequence[Action], *, schema: int, sequence: int = 0, limits: StateLimits = DEFAULT_LIMITS
    ) -> Committed:
        """As `ExtensionStore.commit`."""
        with self._lock:
            applied = apply_shared(self._projection, actions, schema=schema, sequence=sequence, limits=limits)
            self._projection = applied.projection
        return applied.committed

    def migrate(
        self,
        state: object,
        *,
        expected_revision: int,
        to_schema: int,
        sequence: int = 0,
        limits: StateLimits = DEFAULT_LIMITS,
    ) -> Committed:
        """As `ExtensionStore.migrate`."""
        with self._lock:
            migrated = migrate_shared(
                self._projection, state,
                expected_revision=expected_revision, to_schema=to_schema, sequence=sequence, limits=limits,
            )  # fmt: skip
            self._projection = migrated.projection
        return migrated.committed

    def read(self, keys: Collection[str] | None = None) -> Projection:
        """As `ExtensionStore.read`."""
        projection = self._projection
        if keys is None:
            return projection
        values = {key: projection.values[key] for key in keys if key in projection.values}
        return Projection(
            extension=self.extension, values=Table(values),
            schema=projection.schema, revision=projection.revision, usage=projection.usage,
        )  # fmt: skip
