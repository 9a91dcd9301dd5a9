"""Lock files: one holder, who says its process and how much it stored, until it lets go or dies."""

import os
import stat

import pytest

from trio_exthost.state.lease import Lease, LeaseTaken


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.lock"


def taken(path, **options):
    with pytest.raises(LeaseTaken) as caught:
        Lease(path, **options)
    return caught.value


def test_one_holds_it_and_the_others_are_told_who(path):
    lease = Lease(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for error in (taken(path), taken(path, wait_s=0.01)):
        assert (error.pid, error.holder) == (os.getpid(), f"process {os.getpid()} (this one)")
    lease.release()
    lease.release()
    Lease(path).release()
    assert path.exists()


@pytest.mark.parametrize(("text", "pid", "words"), [(b"", None, "another process"), (b"1", 1, "process 1")])
def test_a_holder_that_has_not_said_who_it_is_is_somebody(path, text, pid, words):
    lease = Lease(path)
    path.write_bytes(text)
    error = taken(path)
    assert (error.pid, error.holder) == (pid, words)
    lease.release()


def left_behind(path, *, mark):
    """As the kernel leaves it when the holder dies."""
    lease = Lease(path)
    lease.note(mark)
    os.close(lease._descriptor)
    lease._descriptor = None


def test_a_mark_is_for_whoever_comes_after_a_death(path):
    left_behind(path, mark=41)
    lease = Lease(path)
    assert lease.mark == 41
    lease.note(42)
    lease.release()
    assert Lease(path).mark == 0


def test_a_mark_stays_if_who_came_could_not_look(path):
    left_behind(path, mark=41)
    Lease(path).release(keep_mark=True)
    lease = Lease(path)
    assert lease.mark == 41
    lease.forget()
    assert lease.mark == 0
    lease.release(keep_mark=True)
    assert Lease(path).mark == 0


def test_after_a_release_nothing_is_noted(path):
    lease = Lease(path)
    lease.release()
    other = Lease(path)
    lease.note(7)
    lease.forget()
    other.release(keep_mark=True)
    assert Lease(path).mark == 0


def test_a_lock_file_that_is_a_link_is_not_followed(path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Lease(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_that_cannot_be_read_is_let_go(path, monkeypatch):
    lease = Lease(path)

    def refuse(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", refuse)
        lease.release()
        with pytest.raises(OSError, match="Input/output"):
            Lease(path)
    Lease(path).release()


def test_a_full_disk_leaves_it_unsaid_who_holds_it(path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        lease = Lease(path)
        lease.note(3)
    assert taken(path).holder == "another process"
    lease.release()
