"""Real processes on the same files: killed at any moment, two at a time, without room, without rights.

EXTHOST_CRASHES says how often the committing process is killed (20 if not set).
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import trio_exthost
from trio_exthost.errors import SessionBusy
from trio_exthost.state import SessionState
from trio_exthost.state.sqlite import SqliteStores

PROGRAMS = Path(__file__).with_name("state_programs.py")
EXTENSIONS = ("todo", "audit", "clock")
CRASHES = int(os.environ.get("EXTHOST_CRASHES", "20"))


@contextlib.contextmanager
def running(*words, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(trio_exthost.__file__).parent.parent)}
    process = subprocess.Popen(
        [sys.executable, PROGRAMS, *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **options,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def lines(process):
    """What it said, a line each; one that was cut off by its death was not said."""
    for line in process.stdout:
        if line.endswith(b"\n"):
            yield json.loads(line)


def killed_after(process, acknowledgements, chance):
    """Read so many lines, kill at some moment after that, and give the last thing it said."""
    said = lines(process)
    last = None
    for _ in range(acknowledgements):
        last = next(said)
    for _ in range(chance.randrange(20_000)):  # some part of a transaction's time
        pass
    process.send_signal(signal.SIGKILL)
    return [last, *said][-1]


def check_whole(stores):
    """Every batch is there whole, and none twice; the number of the last."""
    state = SessionState(stores.open_session("s"))
    ends = set()
    for extension in EXTENSIONS:
        projection = state.projection(extension)
        numbers = [int(each) for each in projection.events]
        assert numbers == list(range(len(numbers)))
        assert [each.payload for each in projection.replay_events()] == numbers
        assert {value[0] for value in projection.state().values()} <= {len(numbers) - 1}
        assert len(projection.values) == (3 if numbers else 0)
        assert projection.revision == len(numbers)
        ends.add(len(numbers) - 1)
    assert len(ends) == 1  # a group is one transaction
    (last,) = ends
    assert set(state.tree.positions) >= {f"entry {number}" for number in range(0, last + 1, 5)}
    assert not state._store._path.with_name("s.db.new").exists()
    state.close()
    return last


def test_whatever_was_acknowledged_survives_kill_9_whole(tmp_path):
    stores = SqliteStores(tmp_path)
    chance = random.Random(9)
    last = -1
    for _ in range(CRASHES):
        with running("commit", tmp_path, last + 1) as process:
            (acknowledged,) = killed_after(process, chance.randint(1, 60), chance)
        last, before = check_whole(stores), last
        assert before < acknowledged <= last <= acknowledged + 1


def test_a_shared_counter_survives_kill_9_whole(tmp_path):
    store = SqliteStores(tmp_path).open_extension("todo")
    chance = random.Random(10)
    for _ in range(max(2, CRASHES // 4)):
        before = store.read().get("n", 0)
        with running("count", tmp_path, 0) as process:
            acknowledged, total = killed_after(process, chance.randint(1, 20), chance)
            pid = process.pid
        after = store.read()
        assert total == before + acknowledged
        assert total <= after.get("n") <= total + 1
        assert sum(key.startswith(f"{pid}.") for key in after.values) == after.get("n") - before
    assert store.read().usage.values == store.read().get("n") + 1


def test_processes_that_share_a_counter_lose_no_increment(tmp_path):
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(running("count", tmp_path, 50)) for _ in range(4)]
        totals = [[total for _, total in lines(each)] for each in processes]
        assert [each.wait() for each in processes] == [0] * 4
    assert sorted(total for each in totals for total in each) == list(range(1, 201))
    projection = SqliteStores(tmp_path).open_extension("todo").read()
    assert (projection.get("n"), projection.revision) == (200, 200)
    keys = {f"{each.pid}.{number}" for each in processes for number in range(1, 51)}
    assert set(projection.values) == keys | {"n"}


def test_a_second_host_is_refused_until_the_first_is_gone(tmp_path):
    stores = SqliteStores(tmp_path)
    with running("hold", tmp_path) as process:
        assert next(lines(process)) == ["open"]
        with pytest.raises(SessionBusy, match=f"session 's' is open in process {process.pid} ") as caught:
            stores.open_session("s")
        assert (caught.value.code, caught.value.pid) == ("session_busy", process.pid)
        stores.open_session("another").close()
        process.kill()
        process.wait()
        stores.open_session("s").close()


def test_a_second_session_of_the_same_host_is_refused_too(tmp_path):
    stores = SqliteStores(tmp_path)
    store = stores.open_session("s")
    with pytest.raises(SessionBusy, match=rf"is open in process {os.getpid()} \(this one\)"):
        SqliteStores(tmp_path).open_session("s")
    store.close()
    stores.open_session("s").close()


def test_programs_that_the_host_starts_do_not_keep_the_session(tmp_path):
    stores = SqliteStores(tmp_path)
    store = stores.open_session("s")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as process:
        store.close()
        stores.open_session("s").close()
        process.stdin.close()


def test_a_full_disk_is_said_and_nothing_that_was_stored_is_lost(tmp_path):
    with running("starve", tmp_path, 100_000) as process:
        session, shared, again = lines(process)
        assert process.wait() == 0
    assert again == ["again", True, True]
    for word, number, kind, text, *_ in (session, shared):
        assert number > 1
        assert kind == "StoreFailed"
        assert str(tmp_path) in text
        assert "disk" in text
        assert "make room" in text or "has room" in text
        assert word in ("session", "shared")
    assert session[4] == "StoreFailed"  # the advance of the same transaction
    stores = SqliteStores(tmp_path)
    state = SessionState(stores.open_session("s"))
    assert list(state.projection("todo").events) == [str(number) for number in range(session[1] + 1)]
    assert set(state.tree.positions) == {"", *(f"entry {number}" for number in range(session[1]))}
    state.close()
    assert list(stores.open_extension("todo").read().events) == [str(number) for number in range(shared[1] + 1)]


def test_a_directory_that_cannot_be_written_is_said(tmp_path):
    with tempfile.TemporaryDirectory() as name:  # where another user can come to
        directory = Path(name)
        SqliteStores(directory).open_session("s").close()
        kept = (directory / "sessions" / "s.db").read_bytes()
        for each in (directory, directory / "sessions"):
            each.chmod(0o555)
        try:
            with running("unprivileged", directory) as process:
                said = list(lines(process))
                assert process.wait() == 0
        finally:
            for each in (directory, directory / "sessions"):
                each.chmod(0o755)
        assert [each[0] for each in said] == ["open", "new", "shared", "elsewhere"]
        for _, kind, code, text in said:
            assert (kind, code) == ("StoreFailed", "persistence_failed")
            assert "Permission denied" in text
            assert name in text
            assert "the right to write" in text
        assert (directory / "sessions" / "s.db").read_bytes() == kept
