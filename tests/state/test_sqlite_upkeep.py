"""Upkeep of session files: a compaction stands even where the room it frees cannot be given back yet."""

import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest
from running import without_rights

from trio_exthost.errors import StoreFailed
from trio_exthost.state import Commit, SessionState, read_actions, sqlite_file
from trio_exthost.state.sqlite import SqliteStores


def put(number):
    raw = [{"kind": "set_state", "key": "k", "value": str(number) * 3000}]
    return Commit(extension="todo", schema=1, actions=read_actions(raw, extension="todo"))


@pytest.fixture
def state(tmp_path):
    state = SessionState(SqliteStores(tmp_path).open_session("s"))
    for number in range(50):
        state.publish(state.write([put(number)]))
    yield state
    state.close()


def test_what_a_compaction_frees_goes_back_to_the_file_system(state, tmp_path):
    done = state.compact()
    assert (done.batches_before, done.batches_after, done.problem) == (50, 1, "")
    assert (tmp_path / "sessions" / "s.db").stat().st_size < 50_000
    assert (tmp_path / "sessions" / "s.db-wal").stat().st_size == 0


def test_what_cannot_be_given_back_now_is_said_and_the_compaction_stands(state):
    connection = state._store._connection
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else 0)
    done = state.compact()
    assert (done.batches_before, done.batches_after) == (50, 1)
    assert "cannot give room back" in done.problem
    connection.set_authorizer(None)
    assert state.compact().problem == ""
    assert len(list(state.history())) == 1


def test_whoever_reads_the_history_keeps_nobody_from_writing(state):
    reading = state.history()
    assert next(reading).row == 1
    state.publish(state.write([put(50)]))
    assert state.compact().batches_after == 1
    assert [each.row for each in reading] == list(range(2, 52))  # a piece it had read already, then what came too


def test_one_who_only_looks_cannot_compact(state, tmp_path):
    looking = SqliteStores(tmp_path).look_into_session("s")
    with pytest.raises(StoreFailed, match="it is read-only"):
        looking.compact()
    looking.close()


def test_sequences_do_not_go_back_with_what_was_dropped(tmp_path):
    stores = SqliteStores(tmp_path)
    state = SessionState(stores.open_session("s"))
    batches = [("todo", 9), ("audit", 3), ("todo", 4)]
    for extension, sequence in batches:
        raw = [{"kind": "set_state", "key": "k", "value": sequence}]
        actions = read_actions(raw, extension=extension)
        state.publish(state.write([Commit(extension=extension, schema=1, sequence=sequence, actions=actions)]))
    assert state.compact().batches_after == 2  # the one with sequence 9 went
    state.close()
    state = SessionState(stores.open_session("s"))
    assert state.last_sequence == 9
    state.close()


def test_directories_are_made_when_something_is_stored_and_for_their_user_alone(tmp_path):
    stores = SqliteStores(tmp_path / "agent" / "state")
    shared = stores.open_extension("todo")
    assert shared.read().state() == {}
    assert list(tmp_path.iterdir()) == []
    shared.commit(put(1).actions, schema=1)
    stores.open_session("s").close()
    made = [each for each in tmp_path.rglob("*") if each.is_dir()]
    assert {each.name for each in made} == {"agent", "state", "extensions", "sessions"}
    assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {0o700}


def test_a_directory_that_is_made_is_on_the_disk_before_anything_is_in_it(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(sqlite_file, "_sync_directory", synced.append)
    SqliteStores(tmp_path / "a" / "b").open_session("s").close()
    folder = tmp_path / "a" / "b" / "sessions"
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b", folder]


def test_a_directory_may_be_made_where_one_must_not_look():
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o733)  # as a drop box

        def work():
            stores = SqliteStores(directory / "state")
            stores.open_session("s").close()
            return " ".join(each.name for each in stores.sessions())

        assert without_rights(work) == "s"
