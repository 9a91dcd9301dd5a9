"""What an extension stores for all sessions, in one SQLite file that threads, hosts and processes share.

Each call opens the file, does one short transaction under the lock file's lease, and closes it: nothing is remembered that
another process may have changed, and a file that was moved or replaced meanwhile is never written to. The journal is one
that is rolled back: write-ahead logs with several writers have had faults that lose what was written.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trio_exthost.errors import StateRefused, StoreFailed
from trio_exthost.packages.files import printable
from trio_exthost.state.actions import Action, AddState, AppendCustomEvent, DeleteState, SetState
from trio_exthost.state.applying import Applied
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import Batch, DeleteEntry, EventEntry, SetEntry
from trio_exthost.state.lease import Lease, LeaseTaken
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.projection import CustomEvent, Projection, Value
from trio_exthost.state.shared_space import apply_shared, migrate_shared
from trio_exthost.state.sqlite_file import (
    Damage,
    Layout,
    check,
    check_size,
    check_sum,
    connect,
    create,
    failures,
    kept_aside,
    leftovers,
    make_directory,
    set_aside,
    sum_holds,
    transaction,
    was_damaged,
)
from trio_exthost.state.table import Table
from trio_exthost.state.usage import Usage

LAYOUT = Layout(
    application_id=0x65786865,
    steps=(
        """
        CREATE TABLE head (
            id INTEGER PRIMARY KEY CHECK (id = 1), extension TEXT NOT NULL, schema INTEGER, revision INTEGER NOT NULL,
            value_count INTEGER NOT NULL, value_bytes INTEGER NOT NULL,
            event_count INTEGER NOT NULL, event_bytes INTEGER NOT NULL, sum INTEGER NOT NULL);
        CREATE TABLE state (
            key TEXT PRIMARY KEY, revision INTEGER NOT NULL, sum INTEGER NOT NULL, text BLOB NOT NULL);
        CREATE TABLE events (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, custom_type TEXT NOT NULL, sequence INTEGER NOT NULL,
            sum INTEGER NOT NULL, text BLOB NOT NULL)
        """,
    ),
    wal=False,
)
"""`head` has one row. A sum is over a row's own text and what it belongs to."""

_WAIT_S = 10.0
"""How long one transaction waits for those of others."""


class SqliteExtensionStore:
    """An `ExtensionStore`. Made by `SqliteStores`."""

    def __init__(self, path: Path, extension: str, *, begin_anew: bool = False) -> None:
        """Name the file; it is not touched before it is needed.

        Args:
          path: The file; its directory is made with it.
          extension: Whose it is.
          begin_anew: Make an empty file where a damaged one was kept aside.
        """
        self.extension = extension
        self._path = path
        self._begin_anew = begin_anew

    def commit(
        self, actions: Sequence[Action], *, schema: int, sequence: int = 0, limits: StateLimits = DEFAULT_LIMITS
    ) -> Committed:
        """As `ExtensionStore.commit`."""
        with self._writing() as connection:
            applied = self._apply(connection, actions, schema=schema, sequence=sequence, limits=limits)
            if applied.batch is not None:
                _write(connection, applied.projection, applied.batch)
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
        with self._writing() as connection:
            migrated = migrate_shared(
                _read(connection, self.extension, None), state,
                expected_revision=expected_revision, to_schema=to_schema, sequence=sequence, limits=limits,
            )  # fmt: skip
            _write(connection, migrated.projection, migrated.batch)
        return migrated.committed

    def read(self, keys: Collection[str] | None = None) -> Projection:
        """As `ExtensionStore.read`."""
        with failures(self._path, "cannot be read"):
            nothing_there = not self._path.exists() and not kept_aside(self._path)
        if nothing_there:
            return Projection(extension=self.extension)
        with self._writing() as connection:
            return _read(connection, self.extension, keys, None if keys is None else ())

    def _apply(
        self,
        connection: sqlite3.Connection,
        actions: Sequence[Action],
        *,
        schema: int,
        sequence: int,
        limits: StateLimits,
    ) -> Applied:
        keys = [each.key for each in actions if isinstance(each, SetState | AddState | DeleteState)]
        events = [each.event_id for each in actions if isinstance(each, AppendCustomEvent)]
        found = _read(connection, self.extension, keys, events)
        try:
            return apply_shared(found, actions, schema=schema, sequence=sequence, limits=limits)
        except StateRefused as exc:
            if exc.code != "resource_limit":
                raise
            # Refused again, by all that is stored: the message then names the largest key.
            everything = _read(connection, self.extension, None)
            return apply_shared(everything, actions, schema=schema, sequence=sequence, limits=limits)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        path = self._path
        with contextlib.ExitStack() as stack:
            try:
                with failures(path, "cannot be opened"):
                    make_directory(path.parent)
                    stack.callback(Lease(path.with_suffix(".lock"), wait_s=_WAIT_S).release)
            except LeaseTaken as exc:
                raise StoreFailed(
                    f"was locked for {_WAIT_S:g} s by {exc.holder}", path=printable(path), extension=self.extension,
                    hint="try again; see whether that process has been stopped",
                ) from None  # fmt: skip
            try:
                with (
                    failures(path, "cannot be read or written"),
                    contextlib.closing(self._open()) as connection,
                    transaction(connection),
                ):
                    check_size(connection, path)
                    yield connection
            except Damage as exc:
                raise set_aside(path, str(exc)) from exc

    def _open(self) -> sqlite3.Connection:
        path = self._path
        if not path.exists():
            kept = kept_aside(path)
            if kept and not self._begin_anew:
                raise was_damaged(path, kept[-1])
            if leftovers(path):
                # The journal of a file that is gone: it must not be taken for that of the new one.
                lost = set_aside(path, "only its journal is there")
                if not self._begin_anew:
                    raise lost
            empty = Projection(extension=self.extension)
            create(path, LAYOUT, lambda connection: _write_head(connection, empty))
        connection = connect(path)
        try:
            check(connection, path, LAYOUT)
        except BaseException:  # whatever it is, nobody else would close it
            connection.close()
            raise
        return connection


def _read(
    connection: sqlite3.Connection, extension: str, keys: Iterable[str] | None, events: Iterable[str] | None = None
) -> Projection:
    """The state: whole, or with these keys and events only. Schema, revision and usage are always of the whole."""
    head = connection.execute(
        "SELECT extension, schema, revision, value_count, value_bytes, event_count, event_bytes, sum FROM head"
    ).fetchone()
    if head is None or head[7] != check_sum(b"", *head[:7]):
        raise Damage("its head was altered")
    if head[0] != extension:
        raise StoreFailed(
            f"a file of the extension {head[0]!r}, which somebody renamed; give it its name again", extension=extension
        )
    values = {row[0]: _value(*row) for row in _rows(connection, "state", "key", keys)}
    found = {row[1]: _event(*row) for row in _rows(connection, "events", "id", events)}
    usage = Usage(values=head[3], value_bytes=head[4], events=head[5], event_bytes=head[6])
    if keys is None and len(values) != usage.values:
        raise Damage(f"it holds {len(values)} keys, of {usage.values} that were stored")
    if events is None and len(found) != usage.events:
        raise Damage(f"it holds {len(found)} events, of {usage.events} that were stored")
    return Projection(
        extension=extension, values=Table(values), events=Table(found),
        schema=head[1], revision=head[2], usage=usage,
    )  # fmt: skip


def _rows(connection: sqlite3.Connection, table: str, column: str, names: Iterable[str] | None) -> list[Any]:
    if names is None:
        return connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608 - a word of ours
    query = f"SELECT * FROM {table} WHERE {column} = ?"  # noqa: S608 - as above
    return [row for name in dict.fromkeys(names) for row in connection.execute(query, (name,))]


def _value(key: str, revision: int, found: int, text: bytes) -> Value:
    if not sum_holds(found, text, key, revision):
        raise Damage(f"the key {key!r} was altered")
    return Value(text, revision)


def _event(number: int, event_id: str, custom_type: str, sequence: int, found: int, text: bytes) -> CustomEvent:
    if not sum_holds(found, text, event_id, custom_type, sequence):
        raise Damage(f"the event in row {number} was altered")
    return CustomEvent(event_id, custom_type, text, sequence)


def _write(connection: sqlite3.Connection, projection: Projection, batch: Batch) -> None:
    """Bring the tables from the state before this batch to the state after it."""
    for entry in batch.entries:
        match entry:
            case SetEntry():
                text = bytes(entry.value)
                row = (entry.key, batch.revision, check_sum(text, entry.key, batch.revision), text)
                connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)", row)
            case DeleteEntry():
                connection.execute("DELETE FROM state WHERE key = ?", (entry.key,))
            case EventEntry():
                text = bytes(entry.payload)
                found = check_sum(text, entry.event_id, entry.custom_type, batch.sequence)
                connection.execute(
                    "INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?)",
                    (entry.event_id, entry.custom_type, batch.sequence, found, text),
                )
    _write_head(connection, projection)


def _write_head(connection: sqlite3.Connection, projection: Projection) -> None:
    used = projection.usage
    row = (
        projection.extension, projection.schema, projection.revision,
        used.values, used.value_bytes, used.events, used.event_bytes,
    )  # fmt: skip
    found = check_sum(b"", *row)
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, found))
