"""Several processes on the same files: a session has one host, what an extension shares loses nothing."""

import os
import stat

import pytest
from running import program

from trio_exthost.errors import SessionBusy
from trio_exthost.state import SessionState
from trio_exthost.state.sqlite import SqliteStores


def test_a_session_has_one_host_and_the_second_is_told_which(tmp_path):
    stores = SqliteStores(tmp_path)
    with program("holding.py", tmp_path) as process:
        assert process.stdout.readline() == "open\n"
        for _ in range(2):
            with pytest.raises(SessionBusy, match=f"session 'session' is open in process {process.pid} ") as caught:
                stores.open_session("session")
            assert (caught.value.pid, caught.value.code) == (process.pid, "session_busy")
            assert caught.value.path == str(tmp_path / "sessions" / "session.db")
        stores.open_session("another").close()
        process.kill()
        process.wait()
        state = SessionState(stores.open_session("session"))  # the kernel let go of it
    assert state.projection("todo").get("held") == 1
    state.close()


def test_a_session_has_one_host_within_a_process_too(tmp_path):
    store = SqliteStores(tmp_path).open_session("session")
    with pytest.raises(SessionBusy, match=rf"open in process {os.getpid()} \(this one\)"):
        SqliteStores(tmp_path).open_session("session")
    store.close()
    store.close()
    SqliteStores(tmp_path).open_session("session").close()


def test_one_may_look_into_a_session_that_is_open_elsewhere(tmp_path):
    with program("holding.py", tmp_path) as process:
        process.stdout.readline()
        looking = SqliteStores(tmp_path).look_into_session("session")
        assert SessionState(looking).projection("todo").get("held") == 1
        looking.close()
        with pytest.raises(SessionBusy):
            SqliteStores(tmp_path).open_session("session")


def test_no_increment_and_no_key_of_several_processes_is_lost_and_a_reader_sees_whole_batches(tmp_path):
    names, times = ["one", "two", "three", "four"], 40
    store = SqliteStores(tmp_path).open_extension("counter")
    with (
        program("counting.py", tmp_path, names[0], times) as first,
        program("counting.py", tmp_path, names[1], times) as second,
        program("counting.py", tmp_path, names[2], times) as third,
        program("counting.py", tmp_path, names[3], times) as fourth,
    ):
        seen = [0]
        while seen[-1] < len(names) * times and any(each.poll() is None for each in (first, second, third, fourth)):
            projection = store.read()
            seen.append(projection.get("n", 0))
            assert len(projection.values) == (seen[-1] + 1 if seen[-1] else 0)
        assert seen == sorted(seen)
        assert [each.stdout.read() for each in (first, second, third, fourth)] == ["done\n"] * 4
    projection = store.read()
    assert projection.get("n") == projection.revision == len(names) * times
    assert projection.values.keys() == {"n", *(f"{name} {number}" for name in names for number in range(times))}


def test_only_their_user_can_read_the_files(tmp_path):
    before = os.umask(0)
    try:
        stores = SqliteStores(tmp_path / "state")
        with program("holding.py", tmp_path / "state") as process:
            process.stdout.readline()
            stores.open_extension("todo").read()
            with program("counting.py", tmp_path / "state", "one", 1) as counting:
                assert counting.stdout.read() == "done\n"
            found = {each.name: each for each in (tmp_path / "state").rglob("*")}
            assert {"session.db", "session.db-wal", "session.lock", "counter.db", "counter.lock"} <= found.keys()
            for path in found.values():
                if path.is_file():
                    assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    finally:
        os.umask(before)
