"""Several writers of one file that is rotated: its bound, nothing lost, nothing twice, and a writer that was stopped."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.runtime import rotation
from trio_exthost.runtime.rotation import RotatingFile, rotated, shift

MAX = 60
FILES = 1000
STEP = st.tuples(
    st.integers(0, 2), st.sampled_from(["pour", "anew", "append", "close"]), st.integers(0, 4), st.booleans()
)
"""Which writer, what it does, how many words of it, and whether the last of them ends its line."""


def all_of(path: Path) -> list[bytes]:
    """The files, oldest first."""
    numbers = range(len(list(path.parent.iterdir())) - 1, 0, -1)
    return [*(rotated(path, number).read_bytes() for number in numbers), path.read_bytes()]


@given(st.lists(STEP, min_size=1, max_size=60))
def test_files_keep_their_bound_and_every_word_once_in_the_order_of_writing(
    steps: list[tuple[int, str, int, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "logs" / "a.log"
        writers = [RotatingFile(path, max_bytes=MAX, files=FILES) for _ in range(3)]
        words: list[bytes] = []
        for who, what, count, is_whole in steps:
            writer = writers[who]
            new = [b"<%d>" % number for number in range(len(words), len(words) + count)]
            if what == "close":
                writer.close()
            elif what == "append":
                writer.append(b" ".join(new) + b"\n")
                words += new
            else:
                writer.pour(b"\n".join(new) + b"\n" * is_whole, anew=what == "anew")
                words += new
        for writer in writers:
            writer.close()
        if path.exists():
            files = all_of(path)
            assert max(map(len, files)) <= MAX
            assert b"".join(files).replace(b">", b"> ").split() == words


def test_a_piece_goes_on_where_its_line_was_left_unless_another_wrote(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    one, two = (RotatingFile(path, max_bytes=1000, files=2) for _ in range(2))
    one.pour(b"half a")
    one.pour(b" line\nand")
    two.pour(b"another's\n")
    one.pour(b" more")
    one.pour(b"!")
    one.pour(b"a note\n", anew=True)
    assert path.read_bytes() == b"half a line\nand\nanother's\n more!\na note\n"
    one.close()
    two.close()


def test_what_ends_the_line_of_another_counts_too(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file = RotatingFile(path, max_bytes=10, files=2)
    file.pour(b"12345")
    file.append(b"6789\n")
    file.close()
    assert all_of(path) == [b"12345", b"6789\n"]


def test_a_line_is_cut_only_where_it_is_larger_than_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file = RotatingFile(path, max_bytes=10, files=FILES)
    file.pour(b"1234567\n123\n")
    file.pour(b"x" * 25 + b"\ny\n")
    file.close()
    assert all_of(path) == [b"1234567\n", b"123\n", b"x" * 10, b"x" * 10, b"xxxxx\ny\n"]


def test_one_that_was_stopped_with_the_lock_holds_nobody_up_and_rotates_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "WAIT_S", 0.0)
    path = tmp_path / "a.log"
    file = RotatingFile(path, max_bytes=10, files=2)
    file.pour(b"12345\n")
    holder = os.open(path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    file.pour(b"123\n")
    with pytest.raises(OSError, match="another process holds its lock"):
        file.pour(b"456\n")
    assert all_of(path) == [b"12345\n123\n"]
    os.close(holder)
    file.pour(b"789\n")
    assert all_of(path) == [b"12345\n123\n", b"789\n"]
    file.close()


def test_where_there_are_no_locks_it_writes_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "a.log"
    file = RotatingFile(path, max_bytes=10, files=2)
    file.pour(b"12345\n67\n89\n")
    file.close()
    assert all_of(path) == [b"12345\n67\n", b"89\n"]


def test_a_lock_that_fails_is_an_error_and_the_next_write_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_fd: int, _how: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "a.log"
    file = RotatingFile(path, max_bytes=10, files=2)
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", fail)
        with pytest.raises(OSError, match="Input/output error"):
            file.append(b"lost\n")
    file.append(b"kept\n")
    assert path.read_bytes() == b"kept\n"
    file.close()


def test_files_are_moved_as_far_as_there_are_any_and_not_beyond_their_limit(tmp_path: Path) -> None:
    """A limit of 10**16 was counted down, one by one, at each rotation."""
    path = tmp_path / "a.log"
    for files, left in (
        (10**16, {"a.log.1": "4", "a.log.2": "3", "a.log.3": "2"}),
        (3, {"a.log.1": "4", "a.log.2": "3"}),
    ):
        for each in tmp_path.iterdir():
            each.unlink()
        for number in (2, 3, 4):
            path.write_text(str(number))
            shift(path, files)
        assert {each.name: each.read_text() for each in tmp_path.iterdir()} == left
