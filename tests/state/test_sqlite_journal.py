"""The journal of a killed host: SQLite takes a damaged one for a shorter one, which would lose what was acknowledged."""

import os
import shutil
from pathlib import Path

import pytest
from running import program

from trio_exthost.errors import StoreDamaged
from trio_exthost.state import SessionState
from trio_exthost.state.sqlite import SqliteStores

BATCHES = 40


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory):
    """The files of a host that was killed after so many batches."""
    directory = tmp_path_factory.mktemp("killed")
    with program("holding.py", directory, BATCHES) as process:
        process.stdout.readline()
        process.kill()
    return directory


@pytest.fixture
def stores(left_behind, tmp_path):
    shutil.copytree(left_behind, tmp_path / "state")
    return SqliteStores(tmp_path / "state")


def journal_of(stores) -> Path:
    return stores.directory / "sessions" / "session.db-wal"


def damaged(stores):
    with pytest.raises(StoreDamaged) as caught:
        stores.open_session("session")
    return caught.value


def test_whole_it_is_taken(stores):
    state = SessionState(stores.open_session("session"))
    assert state.projection("todo").get("held") == BATCHES
    state.close()
    assert not journal_of(stores).exists()


def halved(journal):
    os.truncate(journal, journal.stat().st_size // 2)


def altered(journal):
    content = bytearray(journal.read_bytes())
    content[len(content) // 3] ^= 0x10
    journal.write_bytes(content)


def headless(journal):
    journal.write_bytes(bytes(32) + journal.read_bytes()[32:])


@pytest.mark.parametrize("damage", [halved, altered, headless, os.unlink])
def test_damaged_it_is_told_and_kept_and_nothing_takes_its_place(stores, damage):
    damage(journal_of(stores))
    left = journal_of(stores).read_bytes() if damage is not os.unlink else None
    error = damaged(stores)
    assert "its journal is cut off, altered or gone" in str(error)
    kept = Path(error.kept)
    assert kept.exists()
    assert not (stores.directory / "sessions" / "session.db").exists()
    if left is not None:
        assert kept.with_name(kept.name + "-wal").read_bytes() == left
    assert Path(damaged(stores).kept) == kept  # not empty the second time either
    store = stores.open_session("session", begin_anew=True)
    assert SessionState(store).projections == {}
    store.close()
    stores.open_session("session").close()
    assert kept.exists()


def test_alone_it_is_told_and_kept(stores):
    (stores.directory / "sessions" / "session.db").unlink()
    left = journal_of(stores).read_bytes()
    for _ in range(2):
        error = damaged(stores)
        assert "session.damaged-1.db" in str(error)
    assert (stores.directory / "sessions" / "session.damaged-1.db-wal").read_bytes() == left
    stores.open_session("session", begin_anew=True).close()


def test_a_copy_from_before_can_be_put_in_its_place(stores):
    copy = stores.directory / "copy.db"
    shutil.copy(stores.directory / "sessions" / "session.db", copy)  # a state of long ago: all else is in the journal
    halved(journal_of(stores))
    damaged(stores)
    shutil.copy(copy, stores.directory / "sessions" / "session.db")
    stores.open_session("session").close()


def test_an_orderly_end_leaves_nothing_that_an_older_copy_could_miss(tmp_path, stores):
    copy = tmp_path / "copy.db"
    shutil.copy(stores.directory / "sessions" / "session.db", copy)
    stores.open_session("session").close()
    shutil.copy(copy, stores.directory / "sessions" / "session.db")
    stores.open_session("session").close()
