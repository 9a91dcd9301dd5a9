"""Tables of an older version of this program: brought up to date in one step, or left as they are."""

import contextlib
import sqlite3

import pytest

from trio_exthost.errors import StoreFailed
from trio_exthost.state.sqlite_file import Layout, check, connect, create, failures

FIRST = "CREATE TABLE items (name TEXT NOT NULL); CREATE TABLE notes (text TEXT)"
SECOND = "ALTER TABLE items ADD COLUMN size INTEGER NOT NULL DEFAULT 7; DROP TABLE notes"
THIRD = "CREATE TABLE more (name TEXT)"


def layout(*steps, wal=True):
    return Layout(application_id=0x1234, steps=steps, wal=wal)


def rows(path, query):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture(params=[True, False])
def old(request, tmp_path):
    path = tmp_path / "s.db"

    def fill(connection):
        connection.execute("INSERT INTO items VALUES ('one')")

    create(path, layout(FIRST, wal=request.param), fill)
    return path, request.param


@pytest.mark.parametrize("steps", [(FIRST, SECOND), (FIRST, SECOND, THIRD)])
def test_an_older_file_gets_the_tables_of_this_version_and_keeps_what_it_holds(old, steps):
    path, wal = old
    for _ in range(2):  # the second time there is nothing to do
        with contextlib.closing(connect(path)) as connection:
            check(connection, path, layout(*steps, wal=wal))
    assert rows(path, "SELECT * FROM items") == [("one", 7)]
    assert rows(path, "PRAGMA user_version") == [(len(steps),)]
    assert rows(path, "PRAGMA application_id") == [(0x1234,)]


def test_a_step_that_fails_leaves_the_file_as_it_was(old, tmp_path):
    path, wal = old
    blocked = layout(FIRST, f"{SECOND}; INSERT INTO items VALUES ('two', NULL)", wal=wal)
    with contextlib.closing(connect(path)) as connection, pytest.raises(StoreFailed, match="NOT NULL"):
        with failures(path, "cannot be opened"):
            check(connection, path, blocked)
    assert rows(path, "SELECT * FROM items") == [("one",)]
    assert rows(path, "SELECT * FROM notes") == []
    assert rows(path, "PRAGMA user_version") == [(1,)]


def test_who_only_looks_changes_nothing_and_is_told_the_way_out(old):
    path, wal = old
    with contextlib.closing(connect(path, read_only=True)) as connection:
        with pytest.raises(StoreFailed, match="older version of this program") as caught:
            check(connection, path, layout(FIRST, SECOND, wal=wal), read_only=True)
    assert caught.value.path == str(path)
    assert "brings it up to date" in caught.value.hint
    assert rows(path, "PRAGMA user_version") == [(1,)]
