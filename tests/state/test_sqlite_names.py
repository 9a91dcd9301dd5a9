"""Any name has a file of its own, and what lies in a directory can be listed, damaged or not, open or not."""

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import program, without_rights

from trio_exthost.errors import StoreFailed
from trio_exthost.state import SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores, file_stem

ODD = [
    "",
    ".",
    "..",
    "a/b",
    "/etc/passwd",
    "A",
    "a",
    "ä",
    "a.b",
    "x" * 300,
    "a\nb",
    "\ud800",
    "con",
    "-wal",
    "a b",
    "a_b",
]


@given(st.text(max_size=80))
def test_a_file_name_is_one_that_every_file_system_takes(name):
    stem = file_stem(name)
    assert stem == stem.lower()
    assert 0 < len(stem.encode()) < 120
    assert not set(stem) - set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
    assert ".." not in stem


@given(st.text(max_size=6), st.text(max_size=6))
def test_two_names_never_share_a_file(one, other):
    assert (file_stem(one) == file_stem(other)) == (one == other)


def test_odd_names_have_states_of_their_own(tmp_path):
    stores = SqliteStores(tmp_path)
    odd = [name for name in ODD if "\ud800" not in name]
    for number, name in enumerate(odd):
        stores.open_session(name).close()
        actions = read_actions([{"kind": "set_state", "key": "k", "value": number}], extension=name)
        stores.open_extension(name).commit(actions, schema=1)
    assert [stores.open_extension(name).read().get("k") for name in odd] == list(range(len(odd)))
    for names in (stores.sessions(), stores.extensions()):
        assert [each.name for each in names] == sorted(odd)
        assert all(each.size_bytes and not each.problem and Path(each.path).is_file() for each in names)
    assert {each.parent.name for each in tmp_path.rglob("*.db")} == {"sessions", "extensions"}


def test_where_nothing_was_stored_nothing_is_listed(tmp_path):
    stores = SqliteStores(tmp_path / "not" / "there")
    assert stores.sessions() == stores.extensions() == ()
    with pytest.raises(StoreFailed, match="session 's' has no state"):
        stores.look_into_session("s")
    assert not (tmp_path / "not").exists()


def test_a_session_that_is_open_elsewhere_is_listed(tmp_path):
    stores = SqliteStores(tmp_path)
    with program("holding.py", tmp_path) as process:
        process.stdout.readline()
        (found,) = stores.sessions()
    assert (found.name, found.problem) == ("session", "")
    assert found.size_bytes > (tmp_path / "sessions" / "session.db").stat().st_size


def test_what_cannot_be_read_is_listed_with_its_problem(tmp_path):
    stores = SqliteStores(tmp_path)
    for name in ("bare", "cut", "empty", "good", "later", "other"):
        stores.open_session(name).close()
    folder = tmp_path / "sessions"
    (folder / "empty.db").write_bytes(b"")
    (folder / "cut.db").write_bytes((folder / "cut.db").read_bytes()[:700])
    (folder / "other.db").write_bytes(b"no database at all, but a text of some length" * 100)
    for name, statement in [("later", "PRAGMA user_version=99"), ("bare", "DELETE FROM head")]:
        connection = sqlite3.connect(folder / f"{name}.db")
        connection.execute(statement)
        connection.commit()
        connection.close()
    with pytest.raises(StoreFailed):
        stores.open_session("empty")
    found = {each.name: each.problem for each in stores.sessions()}
    assert found.pop("good") == ""
    assert found.pop("empty.damaged-1") == "damaged, and kept aside"
    assert found.keys() == {"bare", "cut", "later", "other"}
    assert "newer version of this program" in found["later"]
    assert "head" in found["bare"]
    assert "damaged" in found["other"]
    assert found["cut"]


def test_a_directory_that_may_not_be_read_is_no_empty_one():
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        stores = SqliteStores(directory)
        stores.open_session("s").close()  # its folder is its user's alone

        def work():
            said = []
            for call in (stores.sessions, lambda: stores.look_into_session("s"), lambda: stores.open_session("s")):
                with pytest.raises(StoreFailed, match="Permission denied") as caught:
                    call()
                said.append(caught.value.path)
            return " ".join(said)

        (directory / "sessions").chmod(0)
        try:
            said = without_rights(work).split(" ")
        finally:
            (directory / "sessions").chmod(0o700)
        assert [Path(each).name for each in said] == ["sessions", "s.db", "s.db"]


def test_one_looks_at_what_was_stored_and_cannot_store(tmp_path):
    stores = SqliteStores(tmp_path)
    with program("holding.py", tmp_path) as process:
        process.stdout.readline()
        state = SessionState(stores.look_into_session("session"))
        with pytest.raises(StoreFailed):
            state.compact()
        state.close()
    stores.open_session("session").close()
