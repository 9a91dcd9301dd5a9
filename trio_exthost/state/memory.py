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
        self._sessions: dict[str, MemorySessionStore] = {}
        self._extensions: dict[str, MemoryExtensionStore] = {}
        self._lock = threading.Lock()

    def open_session(self, session_id: str, *, begin_anew: bool = False) -> MemorySessionStore:  # noqa: ARG002 - as `StateStores`; nothing here is ever damaged
        """As `StateStores.open_session`."""
        with self._lock:
            store = self._sessions.setdefault(session_id, MemorySessionStore(session_id))
            if store.is_open:
                raise SessionBusy(
                    f"session {session_id!r} is open in process {os.getpid()} (this one)", pid=os.getpid(),
                    hint="close it there first",
                )  # fmt: skip
            store.is_open = True
        return store

    def open_extension(self, extension: str) -> MemoryExtensionStore:
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


class MemorySessionStore:
    """A `SessionStore`. Made by `MemoryStores.open_session`."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.is_open = False
        self._positions: list[Position] = []
        self._batches: dict[int, StoredBatch] = {}
        self._selected = 0
        self._last_row = 0
        self._last_sequence = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all texts."""
        return sum(len(each.body) for each in self._batches.values())

    def append_group(self, records: Sequence[Record], *, selected: int) -> None:
        """As `SessionStore.append_group`."""
        self._check_open()
        for record in records:
            if isinstance(record, Position):
                self._positions.append(record)
            else:
                self._batches[record.row] = record
                self._last_sequence = max(self._last_sequence, record.sequence)
            self._last_row = record.row
        self._selected = selected

    def load_tree(self) -> StoredTree:
        """As `SessionStore.load_tree`."""
        self._check_open()
        rows = ((each.row, each.name, each.parent.row) for each in self._positions if each.parent is not None)
        tree = read_tree(rows, selected=self._selected, last_row=self._last_row)
        return StoredTree(tree=tree, last_sequence=self._last_sequence)

    def load_branch(self, path: Path) -> Iterator[StoredBatch]:
        """As `SessionStore.load_branch`."""
        self._check_open()
        until = dict(path)
        return iter([each for each in self._batches.values() if each.row < until.get(each.position, 0)])

    def load_all(self) -> Iterator[StoredBatch]:
        """As `SessionStore.load_all`."""
        self._check_open()
        return iter(tuple(self._batches.values()))

    def compact(self) -> Compaction:
        """As `SessionStore.compact`."""
        self._check_open()
        count, size = len(self._batches), self.size_bytes
        by_position: dict[int, list[StoredBatch]] = {}
        for each in self._batches.values():
            by_position.setdefault(each.position, []).append(each)
        for rewrite in list(compact(self._positions, lambda row: by_position.get(row, ()))):
            old = self._batches[rewrite.row]
            if rewrite.body is None:
                del self._batches[rewrite.row]
            else:
                self._batches[rewrite.row] = StoredBatch(old.row, old.position, old.sequence, rewrite.body)
        return Compaction(
            batches_before=count, batches_after=len(self._batches), bytes_before=size, bytes_after=self.size_bytes
        )

    def close(self) -> None:
        """As `SessionStore.close`."""
        self.is_open = False

    def _check_open(self) -> None:
        if not self.is_open:
            raise StoreFailed(f"the store of session {self.session_id!r} is closed", hint="open the session again")


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
