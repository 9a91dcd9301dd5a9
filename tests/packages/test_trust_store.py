"""The user's decisions: bound to place and content, never lost, never overwritten when damaged."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import stat
import subprocess
import sys
import threading

import pytest

from trio_exthost.errors import TrustError
from trio_exthost.packages import TrustDecision, TrustStore, trust

A, B = "a" * 64, "b" * 64
NOON = dt.datetime(2025, 1, 2, 12, tzinfo=dt.UTC)
ENTRY = {"path": "/p", "digest": A, "decision": "trusted", "name": "x", "decided_at": ""}


@pytest.fixture
def store(tmp_path):
    return TrustStore(tmp_path / "data" / "trust.json", lock_timeout_s=0.02)


def test_new_store_knows_nothing_and_touches_nothing(store, tmp_path):
    assert store.decision(tmp_path, A) is None
    assert store.entries() == ()
    assert store.problem is None
    assert not store.path.parent.exists()


def test_decision_is_bound_to_directory_and_digest(store, tmp_path):
    store.trust(tmp_path / "x", A)
    store.deny(tmp_path / "y", A)
    assert store.decision(tmp_path / "x", A) is True
    assert store.decision(tmp_path / "y", A) is False
    assert store.decision(tmp_path / "x", B) is None
    assert store.decision(tmp_path / "z", A) is None


def test_decision_is_about_the_real_path(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store.trust(tmp_path / "link", A)
    assert store.decision(tmp_path / "real", A) is True
    (tmp_path / "link").unlink()
    (tmp_path / "link").mkdir()
    assert store.decision(tmp_path / "link", A) is None


def test_entries_say_what_was_decided_and_when(store):
    given = store.trust("/p", A, name="guard", decided_at=NOON.astimezone(dt.timezone(dt.timedelta(hours=2))))
    assert store.entries() == (given,)
    assert given == TrustDecision(path="/p", digest=A, trusted=True, name="guard", decided_at="2025-01-02T12:00:00Z")
    assert store.deny("/q", A).decided_at.endswith("Z")


def test_last_word_counts_and_stands_once(store):
    store.trust("/p", A, decided_at=NOON)
    store.trust("/q", A, decided_at=NOON)
    store.deny("/p", A, decided_at=NOON)
    assert store.decision("/p", A) is False
    assert [each.path for each in store.entries()] == ["/q", "/p"]


def test_several_contents_of_one_directory_may_be_decided(store):
    store.trust("/p", A)
    store.deny("/p", B)
    assert (store.decision("/p", A), store.decision("/p", B)) == (True, False)


def test_forgetting_drops_all_of_a_directory_and_only_that(store):
    for digest in (A, B):
        store.trust("/p", digest)
    store.trust("/q", A)
    assert store.forget("/p") == 2
    assert store.forget("/p") == 0
    assert [each.path for each in store.entries()] == ["/q"]


def test_another_store_on_the_same_file_sees_it_at_once(store):
    other = TrustStore(store.path)
    assert other.decision("/p", A) is None
    store.trust("/p", A)
    assert other.decision("/p", A) is True


def files_beside(store):
    return sorted(path.name for path in store.path.parent.iterdir())


def test_files_are_the_users_alone(store):
    store.trust("/p", A)
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    for name in ("trust.json", "trust.json.lock"):
        assert stat.S_IMODE((store.path.parent / name).stat().st_mode) == 0o600
    assert files_beside(store) == ["trust.json", "trust.json.lock"]


def test_file_is_documented_json(store):
    store.trust("/p", A, name="x", decided_at=NOON)
    assert json.loads(store.path.read_text()) == {
        "version": 1, "decisions": [{**ENTRY, "decided_at": "2025-01-02T12:00:00Z"}],
    }  # fmt: skip


def test_path_that_is_not_utf8_comes_back(store, tmp_path):
    directory = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    store.trust(directory, A)
    assert store.decision(directory, A) is True


def test_old_decisions_give_way_above_the_limits(store, monkeypatch):
    monkeypatch.setattr(trust, "_KEPT_PER_PATH", 2)
    monkeypatch.setattr(trust, "_KEPT", 3)
    for digest in "abc":
        store.trust("/p", digest)
    assert [each.digest for each in store.entries()] == ["b", "c"]
    for path in ("/q", "/r"):
        store.trust(path, A)
    assert [each.path for each in store.entries()] == ["/p", "/q", "/r"]


def test_relative_path_is_refused():
    with pytest.raises(TrustError, match="must be an absolute path"):
        TrustStore(trust.Path("trust.json"))


def test_linked_file_is_written_through_the_link(store, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "data/trust.json")
    TrustStore(tmp_path / "link.json").trust("/p", A)
    assert (tmp_path / "link.json").is_symlink()
    assert store.decision("/p", A) is True


def damage(store, content):
    store.path.parent.mkdir(exist_ok=True)
    store.path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    store.path.chmod(0o600)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is damaged: the file is empty"),
        (b'{"version": 1, "decisions": [', "is damaged at line 1, column "),
        (b"\xff", "not UTF-8"),
        ([], "no trust store"),
        ({"trusted": True}, "no trust store"),
        ({"version": 2, "decisions": []}, "another version"),
        ({"version": True, "decisions": []}, "another version"),
        ({"version": 1}, "must hold version and decisions"),
        ({"version": 1, "decisions": {}}, "must hold version and decisions"),
        ({"version": 1, "decisions": [], "more": 1}, "must hold version and decisions"),
        ({"version": 1, "decisions": [ENTRY, "x"]}, "at $.decisions[1]: must have exactly"),
        ({"version": 1, "decisions": [{"path": "/p"}]}, "must have exactly"),
        ({"version": 1, "decisions": [{**ENTRY, "more": "x"}]}, "must have exactly"),
        ({"version": 1, "decisions": [{**ENTRY, "digest": 7}]}, "must hold texts"),
        ({"version": 1, "decisions": [{**ENTRY, "decision": "yes"}]}, "must hold texts"),
        ({"version": 1, "decisions": [{**ENTRY, "decision": True}]}, "must hold texts"),
    ],
)
def test_damaged_file_trusts_nothing_and_is_never_overwritten(store, content, words):
    damage(store, content)
    before = store.path.read_bytes()
    assert store.decision("/p", A) is None
    assert store.entries() == ()
    assert words in (store.problem or "")
    for write in (lambda: store.trust("/p", A), lambda: store.deny("/p", A), lambda: store.forget("/p")):
        with pytest.raises(TrustError) as caught:
            write()
        assert str(store.path) in str(caught.value)
        assert caught.value.hint
    assert store.path.read_bytes() == before


def test_intact_file_from_outside_is_read(store):
    damage(store, {"version": 1, "decisions": [ENTRY]})
    assert store.decision("/p", A) is True


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_file_that_others_can_write_counts_for_nothing(store, mode):
    damage(store, {"version": 1, "decisions": [ENTRY]})
    store.path.chmod(mode)
    assert store.decision("/p", A) is None
    assert f"chmod 600 {store.path}" in (store.problem or "")


def test_store_that_is_a_directory_is_a_problem(store):
    store.path.mkdir(parents=True)
    assert "cannot be read" in (store.problem or "")
    with pytest.raises(TrustError, match="cannot be read"):
        store.trust("/p", A)


def test_parent_that_is_a_file_is_a_problem_on_write(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(TrustError, match="cannot be written"):
        TrustStore(tmp_path / "data/trust.json").trust("/p", A)


def test_lock_held_by_another_is_an_error_after_the_wait(store):
    store.trust("/p", A)
    with store.path.with_name("trust.json.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(TrustError, match="is locked by another process"):
            store.trust("/q", A)
        assert store.decision("/p", A) is True  # reading needs no lock
    store.trust("/q", A)


@pytest.mark.parametrize("step", ["dump", "fsync", "replace"])
def test_failed_write_leaves_the_old_content_and_no_litter(store, monkeypatch, step):
    store.trust("/p", A)
    before = store.path.read_bytes()

    def full(*_args: object, **_keys: object) -> None:
        raise OSError(28, "No space left on device")

    owner = {"dump": trust.json, "fsync": trust.os, "replace": trust.Path}[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, full)
        with pytest.raises(TrustError, match="cannot be written: No space left on device"):
            store.trust("/q", A)
    assert store.path.read_bytes() == before
    assert files_beside(store) == ["trust.json", "trust.json.lock"]
    store.trust("/q", A)


def test_threads_lose_no_decision(tmp_path):
    path = tmp_path / "trust.json"
    start = threading.Barrier(4)

    def write(number: int) -> None:
        mine = TrustStore(path)
        start.wait()
        for index in range(5):
            mine.trust(f"/{number}/{index}", A)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(TrustStore(path).entries()) == 20


def test_processes_lose_no_decision(tmp_path):
    program = """
import sys
from pathlib import Path
from trio_exthost.packages.trust import TrustStore
store = TrustStore(Path(sys.argv[1]), lock_timeout_s=60)
for index in range(10):
    store.trust(f"/{sys.argv[2]}/{index}", "a" * 64)
"""
    path = tmp_path / "trust.json"
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(number)]) for number in range(3)]
    while any(writer.poll() is None for writer in writers):
        assert TrustStore(path).problem is None  # a reader never sees half of a file
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert len(TrustStore(path).entries()) == 30
