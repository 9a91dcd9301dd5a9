"""The tables of a session's file: positions and batches as rows, each with a sum that tells when it was altered."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from trio_exthost.state.branches import Record
from trio_exthost.state.compaction import compact
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.sqlite_file import Damage, Layout, check_sum, sum_holds
from trio_exthost.state.tree import Path, Position

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

_BATCH = "SELECT b.row, b.position, b.sequence, b.sum, b.body FROM batches b"
_PIECE = 256


def insert(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    """Append these rows."""
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
    if positions:
        connection.executemany("INSERT INTO positions VALUES (?, ?, ?, ?)", positions)
    if batches:
        connection.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", batches)


def read_positions(connection: sqlite3.Connection) -> list[tuple[int, str, int]]:
    """Row, name and parent's row of each position, in the order of rows.

    Raises:
      Damage: One was altered.
    """
    rows = connection.execute("SELECT row, name, parent, sum FROM positions ORDER BY row").fetchall()
    for row, name, parent, found in rows:
        if found != _sum_of_position(row, name, parent):
            raise Damage(f"the position in row {row} was altered")
    return [row[:3] for row in rows]


def read_branch(connection: sqlite3.Connection, path: Path) -> Iterator[StoredBatch]:
    """The batches that belong to a branch, in the order of rows.

    Raises:
      Damage: One was altered.
    """
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS branch (position INTEGER PRIMARY KEY, until INTEGER)")
    connection.execute("BEGIN")
    connection.execute("DELETE FROM branch")
    connection.executemany("INSERT INTO branch VALUES (?, ?)", path)
    connection.execute("COMMIT")
    yield from _batches(
        connection.execute(
            f"{_BATCH} CROSS JOIN branch ON branch.position = b.position WHERE b.row < branch.until ORDER BY b.row"
        )
    )


def read_piece(connection: sqlite3.Connection, after_row: int) -> list[StoredBatch]:
    """The next batches of all branches, in the order of rows; none if there are no more.

    Raises:
      Damage: One was altered.
    """
    query = f"{_BATCH} WHERE b.row > ? ORDER BY b.row LIMIT {_PIECE}"
    return list(_batches(connection.execute(query, (after_row,))))


def rewrite_all(connection: sqlite3.Connection, positions: Iterable[Position]) -> None:
    """Make the batches smaller, without a difference to any position's state.

    Raises:
      Damage: One was altered.
    """
    connection.execute("CREATE INDEX batches_of_position ON batches (position, row)")
    for rewrite in compact(positions, lambda row: _batches_of(connection, row)):
        if rewrite.body is None:
            connection.execute("DELETE FROM batches WHERE row = ?", (rewrite.row,))
        else:
            _replace(connection, rewrite.row, rewrite.body)
    # Only a compaction looks for a position's batches; an index that stayed would cost each commit a page.
    connection.execute("DROP INDEX batches_of_position")


def last_row(connection: sqlite3.Connection) -> int:
    """The highest row of a position or a batch; 0 if there is none."""
    query = "SELECT max(ifnull((SELECT max(row) FROM positions), 0), ifnull((SELECT max(row) FROM batches), 0))"
    return _whole(connection, query)


def last_sequence(connection: sqlite3.Connection) -> int:
    """The highest sequence of a batch; 0 if there is none."""
    return _whole(connection, "SELECT ifnull(max(sequence), 0) FROM batches")


def size(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many batches there are, and the bytes of their texts."""
    count, total = connection.execute("SELECT count(*), ifnull(sum(length(body)), 0) FROM batches").fetchone()
    return count, total


def _whole(connection: sqlite3.Connection, query: str) -> int:
    (found,) = connection.execute(query).fetchone()
    if not isinstance(found, int):  # SQLite gives whatever type an altered row says
        raise Damage("a row was altered")
    return found


def _sum_of_position(row: int, name: str, parent: int) -> int:
    return check_sum(b"", row, parent, name)


def _sum_of_batch(batch: StoredBatch) -> int:
    return check_sum(batch.body, batch.row, batch.position, batch.sequence)


def _batches(rows: sqlite3.Cursor) -> Iterator[StoredBatch]:
    for row, position, sequence, found, body in rows:
        if not sum_holds(found, body, row, position, sequence):
            raise Damage(f"the batch in row {row} was altered")
        yield StoredBatch(row, position, sequence, body)


def _batches_of(connection: sqlite3.Connection, position: int) -> list[StoredBatch]:
    return list(_batches(connection.execute(f"{_BATCH} WHERE b.position = ? ORDER BY b.row", (position,))))


def _replace(connection: sqlite3.Connection, row: int, body: bytes) -> None:
    position, sequence = connection.execute("SELECT position, sequence FROM batches WHERE row = ?", (row,)).fetchone()
    found = _sum_of_batch(StoredBatch(row, position, sequence, body))
    connection.execute("UPDATE batches SET body = ?, sum = ? WHERE row = ?", (body, found, row))
