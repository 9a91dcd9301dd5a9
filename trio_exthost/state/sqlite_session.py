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
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.lease import Lease, LeaseTaken
from trio_exthost.state.sqlite_file import (
    Damage,
    check,
    check_pages,
    check_sum,
    connect,
    create,
    failures,
    kept_aside,
    left_damaged,
    leftovers,
    set_aside,
    transaction,
    was_damaged,
)
from trio_exthost.state.sqlite_rows import (
    LAYOUT,
    insert,
    last_row,
    last_sequence,
    read_branch,
    read_piece,
    read_positions,
    rewrite_all,
    size,
)
from trio_exthost.state.store import Compaction, StoredTree
from trio_exthost.state.tree import Path, read_tree


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
        except BaseException:  # whatever it is, nobody else would let go of its lease
            self.close()
            raise

    def append_group(self, records: Sequence[Record], *, selected: int) -> None:
        """As `SessionStore.append_group`."""
        with self._using("cannot store") as connection, transaction(connection):
            insert(connection, records)
            if selected != self._selected:
                self._write_head(connection, selected, self._last_sequence)
        self._selected = selected
        if records and self._lease is not None:
            self._lease.note(records[-1].row)

    def load_tree(self) -> StoredTree:
        """As `SessionStore.load_tree`."""
        with self._using("cannot be read") as connection:
            self._read_head(connection)
            tree = read_tree(read_positions(connection), selected=self._selected, last_row=last_row(connection))
            sequence = max(last_sequence(connection), self._last_sequence)
            return StoredTree(tree=tree, last_sequence=sequence)

    def load_branch(self, path: Path) -> Iterator[StoredBatch]:
        """As `SessionStore.load_branch`."""
        with self._using("cannot be read") as connection:
            yield from read_branch(connection, path)

    def load_all(self) -> Iterator[StoredBatch]:
        """As `SessionStore.load_all`."""
        # Piece by piece: whoever stops in the middle must not keep others from writing.
        row = 0
        while True:
            with self._using("cannot be read") as connection:
                batches = read_piece(connection, row)
            if not batches:
                return
            yield from batches
            row = batches[-1].row

    def compact(self) -> Compaction:
        """As `SessionStore.compact`. Gives what it frees back to the file system."""
        positions = self.load_tree().tree.positions.values()
        with self._using("cannot be compacted") as connection, transaction(connection):
            before = size(connection)
            self._last_sequence = max(last_sequence(connection), self._last_sequence)
            self._write_head(connection, self._selected, self._last_sequence)
            rewrite_all(connection, positions)
            after = size(connection)
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
        last = last_row(connection)
        if last < self._lease.mark:
            raise Damage(
                f"it ends at row {last}, and {self._lease.mark} were stored: its journal is cut off, altered or gone, "
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
        # Moved while it is open: closing would remove its journal, and with it what could be recovered from there.
        damaged = left_damaged(self._path, reason) if self._lease is None else set_aside(self._path, reason)
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
