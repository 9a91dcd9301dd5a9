"""A session's positions and batches in one SQLite file, with a lock file as its lease."""

from __future__ import annotations

import contextlib
import copy
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath

from trio_exthost.errors import SessionBusy, StateError, StoreDamaged, StoreFailed
from trio_exthost.packages.files import printable
from trio_exthost.state.branches import Record
from trio_exthost.state.compaction import compact
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.lease import Lease, LeaseTaken
from trio_exthost.state.sqlite_file import (
    Damage,
    Layout,
    check,
    check_pages,
    check_sum,
    connect,
    create,
    failures,
    kept_aside,
    leftovers,
    set_aside,
    sum_holds,
    transaction,
    was_damaged,
)
from trio_exthost.state.store import Compaction, StoredTree
from trio_exthost.state.tree import Path, Position, read_tree

LAYOUT = Layout(
    application_id=0x65786873,
    steps=(
        """
        CREATE TABLE head (
            id INTEGER PRIMARY KEY CHECK (id = 1), session TEXT NOT NULL, selected INTEGER NOT NULL,
            last_sequence INTEGER NOT NULL, sum INTEGER NOT NULL);
        CREATE TABLE positions (
            row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent INTEGER NOT NULL, sum INTEGER NOT NULL);
        CREATE TABLE batches (
            row INTEGER PRIMARY KEY, position INTEGER NOT NULL, sequence INTEGER NOT NULL, sum INTEGER NOT NULL,
            body BLOB NOT NULL)
        """,
    ),
    wal=True,
)
"""`head` has one row. A sum is over a row's own text and what it belongs to."""

_LAST_ROW = "SELECT max(ifnull((SELECT max(row) FROM positions), 0), ifnull((SELECT max(row) FROM batches), 0))"
_PIECE = 256
_BATCH = "SELECT b.row, b.position, b.sequence, b.sum, b.body FROM batches b"


class SqliteSessionStore:
    """A `SessionStore`. Made by `SqliteStores`."""

    def __init__(self, path: FilePath, session_id: str, *, begin_anew: bool = False, read_only: bool = False) -> None:
        """Open the file, or make it. Blocks.

        Args:
          path: The file; its directory is there.
          session_id: What it holds.
          begin_anew: Make an empty file where a damaged one was kept aside.
          read_only: Only look, also while another process has it open; the file is there.

        Raises:
          StoreFailed: As `StateStores.open_session`.
        """
        self.session_id = session_id
        self._path = path
        self._read_only = read_only
        self._connection: sqlite3.Connection | None = None
        self._selected = 0
        self._last_sequence = 0
        self._closed: StateError = StoreFailed(
            f"the store of session {session_id!r} is closed", path=printable(path), hint="open the session again"
        )
        self._lease = None if read_only else _lease(path, session_id)
        try:
            self._open(begin_anew=begin_anew)
        except BaseException:
            self.close()
            raise

    def append_group(self, records: Sequence[Record], *, selected: int) -> None:
        """As `SessionStore.append_group`."""
        positions = [
            (each.row, each.name, each.parent.row, _sum_of_position(each.row, each.name, each.parent.row))
            for each in records
            if isinstance(each, Position) and each.parent is not None
        ]
        batches = [
            (each.row, each.position, each.sequence, _sum_of_batch(each), each.body)
            for each in records
            if isinstance(each, StoredBatch)
        ]
        with self._using("cannot store") as connection, transaction(connection):
            if positions:
                connection.executemany("INSERT INTO positions VALUES (?, ?, ?, ?)", positions)
            if batches:
                connection.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", batches)
            if selected != self._selected:
                self._write_head(connection, selected, self._last_sequence)
        self._selected = selected
        if records and self._lease is not None:
            self._lease.note(records[-1].row)

    def load_tree(self) -> StoredTree:
        """As `SessionStore.load_tree`."""
        with self._using("cannot be read") as connection:
            self._read_head(connection)
            rows = connection.execute("SELECT row, name, parent, sum FROM positions ORDER BY row").fetchall()
            for row, name, parent, found in rows:
                if found != _sum_of_position(row, name, parent):
                    raise Damage(f"the position in row {row} was altered")
            last_row, last_sequence = connection.execute("SELECT max(row), max(sequence) FROM batches").fetchone()
            tree = read_tree((row[:3] for row in rows), selected=self._selected, last_row=last_row or 0)
            return StoredTree(tree=tree, last_sequence=max(last_sequence or 0, self._last_sequence))

    def load_branch(self, path: Path) -> Iterator[StoredBatch]:
        """As `SessionStore.load_branch`."""
        with self._using("cannot be read") as connection:
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS branch (position INTEGER PRIMARY KEY, until INTEGER)")
            connection.execute("DELETE FROM branch")
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO branch VALUES (?, ?)", path)
            connection.execute("COMMIT")
            rows = connection.execute(
                f"{_BATCH} CROSS JOIN branch ON branch.position = b.position WHERE b.row < branch.until ORDER BY b.row"
            )
            yield from _read_batches(rows)

    def load_all(self) -> Iterator[StoredBatch]:
        """As `SessionStore.load_all`."""
        # Piece by piece: whoever stops in the middle must not keep others from writing.
        row = 0
        while True:
            with self._using("cannot be read") as connection:
                query = f"{_BATCH} WHERE b.row > ? ORDER BY b.row LIMIT {_PIECE}"
                batches = list(_read_batches(connection.execute(query, (row,))))
            if not batches:
                return
            yield from batches
            row = batches[-1].row

    def compact(self) -> Compaction:
        """As `SessionStore.compact`. Gives what it frees back to the file system."""
        positions = self.load_tree().tree.positions.values()
        with self._using("cannot be compacted") as connection, transaction(connection):
            before = _size(connection)
            (sequence,) = connection.execute("SELECT max(sequence) FROM batches").fetchone()
            self._last_sequence = max(self._last_sequence, sequence or 0)
            self._write_head(connection, self._selected, self._last_sequence)
            connection.execute("CREATE INDEX batches_of_position ON batches (position, row)")
            for rewrite in compact(positions, lambda row: _batches_of(connection, row)):
                if rewrite.body is None:
                    connection.execute("DELETE FROM batches WHERE row = ?", (rewrite.row,))
                else:
                    _rewrite(connection, rewrite.row, rewrite.body)
            # Only a compaction looks for a position's batches; an index that stayed would cost each commit a page.
            connection.execute("DROP INDEX batches_of_position")
            after = _size(connection)
        return Compaction(
            batches_before=before[0],
            batches_after=after[0],
            bytes_before=before[1],
            bytes_after=after[1],
            problem=self._give_back(),
        )

    def _give_back(self) -> str:
        """Give what is free in the file back to the file system; why not, if that cannot be done now."""
        try:
            with self._using("cannot give room back") as connection:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except StoreDamaged:
            raise
        except StoreFailed as exc:  # it makes a copy first, for which there may be no room
            return str(exc)
        return ""

    def close(self) -> None:
        """As `SessionStore.close`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()  # moves what is in the journal into the file itself, whose damage is seen without a mark
        if self._lease is not None:
            self._lease.release(keep_mark=connection is None)

    def _open(self, *, begin_anew: bool) -> None:
        path = self._path
        try:
            with failures(path, "cannot be opened"):
                if not self._read_only and not path.exists():
                    self._make(begin_anew=begin_anew)
                self._connection = connect(path, read_only=self._read_only)
                check(self._connection, path, LAYOUT, read_only=self._read_only)
                check_pages(self._connection)
                self._read_head(self._connection)
                self._check_journal(self._connection)
        except Damage as exc:
            raise self._damaged(str(exc)) from exc

    def _check_journal(self, connection: sqlite3.Connection) -> None:
        """See that what a killed host had stored is all there: SQLite takes a damaged journal for a shorter one."""
        if self._lease is None:
            return
        (last_row,) = connection.execute(_LAST_ROW).fetchone()
        if last_row < self._lease.mark:
            raise Damage(
                f"it ends at row {last_row}, and {self._lease.mark} were stored: its journal is cut off, altered or gone, "
                "or this is an older copy"
            )

    def _make(self, *, begin_anew: bool) -> None:
        kept = kept_aside(self._path)
        if kept and not begin_anew:
            raise was_damaged(self._path, kept[-1])
        if leftovers(self._path):
            # It must not be taken for the journal of the new file, and may hold what was stored.
            lost = set_aside(self._path, "only its journal is there")
            if not begin_anew:
                raise lost
        create(self._path, LAYOUT, lambda connection: self._write_head(connection, 0, 0))
        if self._lease is not None:
            self._lease.forget()  # it spoke of the file that was here

    def _read_head(self, connection: sqlite3.Connection) -> None:
        head = connection.execute("SELECT session, selected, last_sequence, sum FROM head").fetchone()
        if head is None or head[3] != check_sum(b"", *head[:3]):
            raise Damage("its head was altered")
        if head[0] != self.session_id:
            raise StoreFailed(
                f"it holds session {head[0]!r}, not {self.session_id!r}", path=printable(self._path),
                hint="somebody renamed it; give it its name again",
            )  # fmt: skip
        self._selected = head[1]
        self._last_sequence = head[2]

    def _write_head(self, connection: sqlite3.Connection, selected: int, last_sequence: int) -> None:
        found = check_sum(b"", self.session_id, selected, last_sequence)
        row = (self.session_id, selected, last_sequence, found)
        connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _using(self, doing: str) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        if connection is None:
            raise copy.copy(self._closed)
        try:
            with failures(self._path, doing):
                yield connection
        except Damage as exc:
            raise self._damaged(str(exc)) from exc
        except StoreDamaged as exc:
            raise self._damaged(exc.message) from exc

    def _damaged(self, reason: str) -> StoreDamaged:
        """Close, and keep the file aside; nothing is written to it any more."""
        connection, self._connection = self._connection, None
        if self._lease is None:
            damaged = StoreDamaged(
                f"the file is damaged ({reason})", path=printable(self._path), kept=printable(self._path)
            )
        else:
            # Moved while it is open: closing would remove its journal, and with it what could be recovered from there.
            damaged = set_aside(self._path, reason)
        if connection is not None:
            connection.close()
        if self._lease is not None:
            self._closed = damaged
            self._lease.release()
        return damaged


def _lease(path: FilePath, session_id: str) -> Lease:
    try:
        with failures(path, "cannot be opened"):
            return Lease(path.with_suffix(".lock"))
    except LeaseTaken as exc:
        raise SessionBusy(
            f"session {session_id!r} is open in {exc.holder}", path=printable(path), pid=exc.pid,
            hint="close it there first; a session has one host at a time",
        ) from None  # fmt: skip


def _sum_of_position(row: int, name: str, parent: int) -> int:
    return check_sum(b"", row, parent, name)


def _sum_of_batch(batch: StoredBatch) -> int:
    return check_sum(batch.body, batch.row, batch.position, batch.sequence)


def _read_batches(rows: sqlite3.Cursor) -> Iterator[StoredBatch]:
    for row, position, sequence, found, body in rows:
        if not sum_holds(found, body, row, position, sequence):
            raise Damage(f"the batch in row {row} was altered")
        yield StoredBatch(row, position, sequence, body)


def _batches_of(connection: sqlite3.Connection, position: int) -> list[StoredBatch]:
    rows = connection.execute(f"{_BATCH} WHERE b.position = ? ORDER BY b.row", (position,))
    return list(_read_batches(rows))


def _rewrite(connection: sqlite3.Connection, row: int, body: bytes) -> None:
    position, sequence = connection.execute("SELECT position, sequence FROM batches WHERE row = ?", (row,)).fetchone()
    found = _sum_of_batch(StoredBatch(row, position, sequence, body))
    connection.execute("UPDATE batches SET body = ?, sum = ? WHERE row = ?", (body, found, row))


def _size(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many batches there are, and the bytes of their texts."""
    count, size = connection.execute("SELECT count(*), coalesce(sum(length(body)), 0) FROM batches").fetchone()
    return count, size
