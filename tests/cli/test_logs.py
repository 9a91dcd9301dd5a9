"""`exthost logs`: the files in order, nothing that moves the cursor, and a rotation that is not noticed."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from cli.running import TIMEOUT_S, argv, environment, extension, run, started
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.logs import Escaped, LogFiles
from trio_exthost.runtime.logs import ExtensionLog
from trio_exthost.runtime.rotation import shift


def written(home: Path, name: str, *files: bytes) -> Path:
    """A log, oldest file first."""
    path = home / "logs" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(reversed(files)):
        (path.with_name(f"{path.name}.{number}") if number else path).write_bytes(data)
    return path


def log_of(path: Path) -> ExtensionLog:
    """What a host writes to it with; rotated after 100 bytes."""
    return ExtensionLog(path, max_bytes=100, files=3, tail_bytes=10, on_failure=pytest.fail)


def test_older_files_come_first_and_a_character_that_a_rotation_cut_is_whole(home: Path) -> None:
    oldest, middle = "first\nä".encode()[:-1], "ä\n".encode()[1:] + b"second\r\n"
    written(home, "a", oldest, middle, b"third")
    (home / "logs" / "ab.log").write_text("another's")
    done = run(home, "logs", "a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "first\nä\nsecond\nthird\n", "")


def test_control_characters_are_escapes_unless_raw(home: Path) -> None:
    data = b"\x1b[31mred\ttab \xff \xe2\x80\xae\n\rover\n"
    written(home, "a", data)
    assert run(home, "logs", "a").stdout == "\\x1b[31mred\ttab \\xff \\u202e\n\\rover\n"
    done = subprocess.run(
        argv("logs", "a", "--raw"), env=environment(home), capture_output=True, timeout=TIMEOUT_S, check=True
    )
    assert done.stdout == data


@pytest.mark.parametrize("name", ["gard", "../trust", "guard.log", ""])
def test_unknown_name_lists_the_logs_there_are(home: Path, name: str) -> None:
    written(home, "guard", b"")
    written(home, "a\x1b[1mb.log.1", b"")
    (home / "trust.log").write_text("not a log")
    done = run(home, "logs", name)
    assert (done.returncode, done.stdout) == (1, "")
    shown = " ".join(done.stderr.split())
    assert f"there is no log of {name!r}" in shown
    assert r"logs there are: a\x1b[1mb.log.1, guard in" in shown
    assert ("did you mean guard?" in shown) == (name in ("gard", "guard.log"))
    assert "\x1b" not in done.stderr


def test_where_there_are_no_logs_the_place_is_named(home: Path) -> None:
    done = run(home, "logs", "guard")
    assert done.returncode == 1
    assert str(home / "logs") in " ".join(done.stderr.split())


def test_log_of_an_extension_that_was_checked(home: Path, tmp_path: Path) -> None:
    run(home, "check", str(extension(tmp_path / "bad", "print('no API_KEY', file=sys.stderr); sys.exit(3)")))
    shown = run(home, "logs", "bad").stdout
    assert "\nno API_KEY\n" in shown
    assert "[exthost] started" in shown
    assert "(exit 3)" in shown


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_follow_goes_on_over_rotations(home: Path, raw: tuple[str, ...]) -> None:
    path = written(home, "a", b"", b"0\n")
    log = log_of(path)
    with started(home, ["logs", "a", "-f", *raw]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        for first in range(1, 200, 40):  # more than one file takes, less than three
            for number in range(first, first + 40):
                log.write_stderr(b"%d\n" % number)
            for number in range(first, first + 40):
                assert process.stdout.readline() == b"%d\n" % number
        process.stdout.close()  # nothing more is written, and it ends all the same
        assert process.wait(TIMEOUT_S) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    log.close()
    assert path.with_name("a.log.2").exists()


def test_follow_says_where_lines_may_be_missing_and_ends_with_ctrl_c(home: Path) -> None:
    path = written(home, "a", b"old\n")
    with started(home, ["logs", "a", "-f"]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"old\n"
        (home / "new").write_bytes(b"new\n")
        (home / "new").replace(path)
        assert process.stdout.readline() == b"new\n"
        process.send_signal(2)
        assert process.wait(TIMEOUT_S) == 130
        told = process.stderr.read().decode()
    assert "lines may be missing" in " ".join(told.split())
    assert told.endswith("interrupted\n")


def test_log_that_cannot_be_read_is_an_error_in_a_line(home: Path) -> None:
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "a.log").symlink_to("a.log")
    done = run(home, "logs", "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{home}/logs/a.log" in done.stderr
    assert "Traceback" not in done.stderr


PLANS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.binary(min_size=1, max_size=5)),
        st.tuples(st.just("write behind"), st.binary(min_size=1, max_size=5)),
        st.just(("rotate", b"")),
        st.just(("read", b"")),
    ),
    max_size=30,
)


@given(PLANS)
def test_each_byte_is_read_once_whatever_is_rotated(tmp_path_factory, plan) -> None:
    """Model: per file what was written to it. Two writers, the second of which goes on with the file before a rotation."""
    directory = tmp_path_factory.mktemp("logs")
    current = directory / "a.log"
    contents: list[bytearray] = [bytearray()]
    handles = [current.open("ab", buffering=0)]
    files, got = LogFiles(directory, "a"), b""
    for what, data in plan:
        if what == "rotate":
            shift(current, 100)
            handles.append(current.open("ab", buffering=0))
            contents.append(bytearray())
        elif what == "read":
            got += b"".join(files.added())
        else:
            which = -2 if what == "write behind" and len(handles) > 1 else -1
            handles[which].write(data)
            contents[which] += data
    got += b"".join(files.added())
    assert sorted(got) == sorted(b"".join(contents))
    if not any(what in ("write behind", "read") for what, _ in plan):
        assert got == b"".join(contents)
    assert b"".join(files.added()) == b""
    files.close()
    for handle in handles:
        handle.close()


def test_file_that_is_emptied_is_read_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one two")
    files = LogFiles(tmp_path, "a")
    assert list(files.added()) == [b"one two"]
    (tmp_path / "a.log").write_bytes(b"three")
    assert list(files.added()) == [b"three"]
    (tmp_path / "a.log").unlink()
    assert list(files.added()) == []
    files.close()


@given(st.binary(max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_escapes_do_not_depend_on_where_pieces_are_cut(data: bytes, cuts: list[int]) -> None:
    whole = Escaped()(data, is_last=True)
    escaped, pieces, places = Escaped(), [], [0, *sorted(cuts), len(data)]
    for begin, end in pairwise(places):
        pieces.append(escaped(data[min(begin, len(data)) : end]))
    assert "".join(pieces) + escaped(b"", is_last=True) == whole
    assert whole.replace("\n", "").replace("\t", "").isprintable() or not whole
