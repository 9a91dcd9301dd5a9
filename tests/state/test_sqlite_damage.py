"""Files that are cut off, altered or something else: told, kept as they are, and never taken for an empty state or another one."""

import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from trio_exthost.errors import StoreDamaged, StoreFailed
from trio_exthost.state import Advance, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

SEED = int(os.environ.get("EXTHOST_SEED", "1"))


def batch(number):
    raw = [
        {"kind": "set_state", "key": f"key {number % 30}", "value": {"n": number, "text": "x" * (number % 300)}},
        {"kind": "append_custom_event", "event_id": f"event {number}", "custom_type": "tick", "payload": number},
    ]
    return read_actions(raw, extension="todo")


class Session:
    """What is damaged and read: a session of some pages."""

    folder = "sessions"

    def fill(self, stores):
        state = SessionState(stores.open_session("todo"))
        for number in range(150):
            todo = [Commit(extension="todo", schema=1, actions=batch(number), sequence=number)]
            todo += [Advance(f"entry {number}")] if number % 10 == 0 else []
            state.publish(state.write(todo))
        state.close()

    def read(self, stores, **options):
        store = stores.open_session("todo", **options)
        try:
            state = SessionState(store)
            return state.projections, list(state.tree.positions), list(state.history())
        finally:
            store.close()


class Extension:
    """The same of what an extension shares."""

    folder = "extensions"

    def fill(self, stores):
        for number in range(60):
            stores.open_extension("todo").commit(batch(number), schema=1, sequence=number)

    def read(self, stores, **options):
        return stores.open_extension("todo", **options).read()


@pytest.fixture(scope="module", params=[Session(), Extension()], ids=["session", "extension"])
def whole(request, tmp_path_factory):
    """A kind of file, and a directory with a whole one."""
    directory = tmp_path_factory.mktemp("whole")
    request.param.fill(SqliteStores(directory))
    return request.param, directory


@pytest.fixture
def kind(whole):
    return whole[0]


@pytest.fixture
def stores(whole, tmp_path):
    shutil.copytree(whole[1], tmp_path / "state")
    return SqliteStores(tmp_path / "state")


def file_of(stores, kind) -> Path:
    return stores.directory / kind.folder / "todo.db"


def check_told_and_kept(stores, kind):
    path = file_of(stores, kind)
    content = path.read_bytes()
    kept = path.with_name("todo.damaged-1.db")
    for _ in range(2):  # not empty the second time either
        with pytest.raises(StoreDamaged) as caught:
            kind.read(stores)
        assert (caught.value.code, caught.value.path, caught.value.kept) == ("store_damaged", str(path), str(kept))
        assert str(kept) in str(caught.value)
        assert "restore a copy" in caught.value.hint
        assert kept.read_bytes() == content
        assert not path.exists()
    return caught.value


@pytest.mark.parametrize("share", [0, 0.001, 0.02, 0.5, 0.9, 0.9999])
def test_one_that_is_cut_off_is_told_and_kept(stores, kind, share):
    path = file_of(stores, kind)
    os.truncate(path, int(path.stat().st_size * share))
    check_told_and_kept(stores, kind)


@pytest.mark.parametrize(
    "statements",
    [
        ["PRAGMA application_id=1"],
        ["PRAGMA user_version=0"],
        ["DELETE FROM head"],
        ["UPDATE head SET sum = sum + 1"],
        ["DROP TABLE head"],
    ],
)
def test_one_whose_head_is_another_is_told_and_kept(stores, kind, statements):
    alter(file_of(stores, kind), statements)
    check_told_and_kept(stores, kind)


def alter(path, statements):
    connection = sqlite3.connect(path)
    for each in statements:
        connection.execute(each)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\0" + bytes(4080)])
def test_what_is_no_file_of_ours_is_told_and_kept(stores, kind, content):
    file_of(stores, kind).write_bytes(content)
    check_told_and_kept(stores, kind)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("batches", "body", b"{}"),
        ("batches", "body", "text"),
        ("batches", "position", 1),
        ("batches", "sequence", 99),
        ("positions", "name", "another"),
        ("positions", "parent", 0),
        ("state", "text", b"1"),
        ("state", "text", "text"),
        ("state", "revision", 1),
        ("events", "text", b"1"),
        ("events", "custom_type", "another"),
        ("events", "id", "another"),
    ],
)
def test_a_row_that_was_altered_is_told_and_kept(stores, kind, table, column, value):
    path = file_of(stores, kind)
    connection = sqlite3.connect(path)
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if there:
        (row,) = connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
        connection.commit()
    connection.close()
    if there:
        check_told_and_kept(stores, kind)
    else:
        assert kind.read(stores)


@pytest.mark.parametrize("table", ["state", "events"])
def test_a_row_that_is_gone_from_what_is_shared_is_told_and_kept(tmp_path, table):
    kind, stores = Extension(), SqliteStores(tmp_path)
    kind.fill(stores)
    alter(file_of(stores, kind), [f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})"])
    check_told_and_kept(stores, kind)


def read_or_kept(stores, kind):
    try:
        return kind.read(stores), None
    except StoreDamaged as exc:
        return None, Path(exc.kept)


def test_bytes_that_were_altered_anywhere_are_told_or_belong_to_nothing(whole, tmp_path):
    """Either the state is as it was, or the file is damaged: never another state, never another error."""
    kind, directory = whole
    rng = random.Random(SEED)
    expected = kind.read(SqliteStores(directory))
    told = 0
    for number in range(60):
        shutil.copytree(directory, tmp_path / str(number))
        stores = SqliteStores(tmp_path / str(number))
        path = file_of(stores, kind)
        content = bytearray(path.read_bytes())
        at = rng.randrange(len(content))
        length = rng.choice([1, 1, 16, 512])
        content[at : at + length] = rng.randbytes(len(content[at : at + length]))
        path.write_bytes(content)
        found, kept = read_or_kept(stores, kind)
        if kept is None:
            assert found == expected
        else:
            told += 1
            assert kept.read_bytes() == bytes(content)
    assert told > 5


def test_what_begins_anew_is_asked_for_and_leaves_what_is_kept(stores, kind):
    path = file_of(stores, kind)
    for number in (1, 2):
        os.truncate(path, 1000)
        with pytest.raises(StoreDamaged):
            kind.read(stores)
        assert kind.read(stores, begin_anew=True) == kind.read(SqliteStores(stores.directory / "nothing"))
        kind.fill(stores)
        assert path.with_name(f"todo.damaged-{number}.db").stat().st_size == 1000
    whole = kind.read(stores)
    assert kind.read(stores, begin_anew=True) == whole  # what can be read is never begun anew


def test_a_file_of_a_newer_version_is_left_as_it_is(stores, kind):
    alter(file_of(stores, kind), ["PRAGMA user_version=99"])
    content = file_of(stores, kind).read_bytes()
    with pytest.raises(StoreFailed, match="written by a newer version of this program") as caught:
        kind.read(stores)
    assert (caught.value.code, caught.value.path) == ("persistence_failed", str(file_of(stores, kind)))
    assert file_of(stores, kind).read_bytes() == content


def test_a_file_of_another_name_is_left_as_it_is(stores, kind):
    path = file_of(stores, kind)
    path.rename(path.with_name("other.db"))
    with pytest.raises(StoreFailed, match="'todo'"):
        stores.open_session("other") if kind.folder == "sessions" else stores.open_extension("other").read()
    path.with_name("other.db").rename(path)
    assert kind.read(stores)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are read from /proc")
def test_a_refused_file_is_not_kept_open_by_the_error(stores, kind):
    path = file_of(stores, kind)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreDamaged) as caught:
        kind.read(stores)
    # `caught` still has the frames in which it was opened.
    assert caught.tb is not None
    opened = {str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}
    assert not {each for each in opened if each.startswith(str(path.parent)) and not each.endswith(".lock")}
