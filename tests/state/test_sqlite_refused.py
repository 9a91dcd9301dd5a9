"""A disk that is full and a directory that may not be written: clear errors, and what was stored is as it was."""

import shutil
import tempfile
from pathlib import Path

import pytest
from running import program, without_rights

from trio_exthost.errors import StateError, StoreFailed
from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores


def actions(value):
    return read_actions([{"kind": "set_state", "key": "k", "value": value}], extension="one")


def store_in_session(stores, value):
    state = SessionState(stores.open_session("session"))
    try:
        (outcome,) = state.write([Commit(extension="one", schema=1, actions=actions(value))]).outcomes
    finally:
        state.close()
    if isinstance(outcome, StateError):
        raise outcome


def store_in_extension(stores, value):
    stores.open_extension("one").commit(actions(value), schema=1)


def read(stores, space):
    if space == "extension":
        return stores.open_extension("one").read()
    state = SessionState(stores.open_session("session"))
    state.close()
    return state.projection("one")


@pytest.mark.parametrize("kilobytes", [100, 137, 1000])
@pytest.mark.parametrize("space", ["session", "extension"])
def test_on_a_full_disk_a_batch_is_refused_and_what_was_acknowledged_stays(space, kilobytes, tmp_path):
    with program("filling.py", tmp_path, space, kilobytes * 1024) as process:
        *acknowledged, refused, again = process.stdout.read().splitlines()
    numbers = [int(line) for line in acknowledged]
    assert len(numbers) > 5
    _, code, path, text = refused.split("\t")
    assert code == "persistence_failed"
    assert Path(path).suffix == ".db"
    assert "the disk refused" in text or "the disk is full" in text
    assert again == f"again\t{numbers[-1] + 1}"
    found = read(SqliteStores(tmp_path), space)
    assert set(found.values) == {f"key {number}" for number in range(1, numbers[-1] + 2)}


def test_no_room_for_the_first_page_is_refused_and_leaves_no_file_that_counts(tmp_path):
    with program("filling.py", tmp_path, "extension", 4096) as process:
        refused, again = process.stdout.read().splitlines()
    assert refused.split("\t")[1] == "persistence_failed"
    assert again == "again\t1"
    assert list(read(SqliteStores(tmp_path), "extension").values) == ["key 1"]


@pytest.fixture
def open_directory():
    """A directory that another user can get to."""
    directory = Path(tempfile.mkdtemp(prefix="exthost-state-"))
    directory.chmod(0o755)
    yield directory
    for each in (directory, *directory.rglob("*")):
        each.chmod(0o700)
    shutil.rmtree(directory)


def lock(directory):
    """Take the right to write away, all over the directory."""
    for each in directory.rglob("*"):
        each.chmod(0o555 if each.is_dir() else 0o444)
    directory.chmod(0o555)


@pytest.mark.parametrize("store", [store_in_session, store_in_extension])
def test_a_directory_that_may_not_be_written_is_named_with_the_way_out(store, open_directory):
    def work():
        with pytest.raises(StoreFailed) as caught:
            store(SqliteStores(open_directory / "state"), 1)
        return f"{caught.value.code}\n{caught.value.path}\n{caught.value}"

    lock(open_directory)
    code, path, text = without_rights(work).split("\n", 2)
    assert code == "persistence_failed", text
    assert path.startswith(str(open_directory / "state"))
    assert "Permission denied" in text
    assert "give this user the right to write" in text


@pytest.mark.parametrize("store", [store_in_session, store_in_extension])
def test_files_that_may_not_be_written_are_left_as_they_are(store, open_directory):
    stores = SqliteStores(open_directory)
    store(stores, 1)
    lock(open_directory)
    before = {path: path.read_bytes() for path in open_directory.rglob("*.db")}

    def work():
        with pytest.raises(StoreFailed) as caught:
            store(stores, 2)
        return f"{caught.value.code}\n{caught.value}"

    code, text = without_rights(work).split("\n", 1)
    assert code == "persistence_failed", text
    assert "the right to write" in text
    assert {path: path.read_bytes() for path in open_directory.rglob("*.db")} == before


def test_a_directory_must_be_the_same_wherever_the_program_stands():
    with pytest.raises(StoreFailed, match="state: the directory of states must be an absolute path"):
        SqliteStores(Path("state"))
