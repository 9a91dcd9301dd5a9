"""Output that nobody reads, that is closed, or that has no room: said in a status, without a traceback."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli.running import TIMEOUT_S, argv, environment, extension, good, run, started

COMMANDS = [
    ["--help"],
    ["--version"],
    ["list"],
    ["list", "--json"],
    ["trust"],
    ["check", "DIR"],
    ["check", "--help"],
    ["demo", "--json"],
]


def unread() -> int:
    """The writing end of a pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def run_into(home: Path, words: list[str], stdout: int, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    done = subprocess.run(
        argv(*words), env=environment(home), stdout=stdout, stderr=stderr, text=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_reader_that_is_gone_ends_each_command_quietly_with_141(home: Path, tmp_path: Path, words: list[str]) -> None:
    folder = str(good(tmp_path / "good"))
    assert run_into(home, [folder if word == "DIR" else word for word in words], unread()) == (141, "")


def test_reader_of_errors_that_is_gone_is_141_too(home: Path, tmp_path: Path) -> None:
    bad = str(extension(tmp_path / "bad", "sys.exit(1)"))
    for words in (["check", bad], ["chek"], ["trust", str(tmp_path)]):
        assert run_into(home, words, subprocess.DEVNULL, unread())[0] == 141


def test_demo_ends_quietly_with_141_after_three_lines_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    with started(home, ["demo"], TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        text = b""
        while text.count(b"\n") < 3:
            text += process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(TIMEOUT_S) == 141
    assert list(tmp_path.glob("exthost-demo*")) == []


def test_demo_that_nobody_ever_reads_starts_nothing(home: Path) -> None:
    assert run_into(home, ["demo"], unread()) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["list", "--json"], ["demo"]], ids=" ".join)
def test_output_without_room_is_an_error_in_a_line(home: Path, words: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    assert run_into(home, words, full) == (1, "Error: No space left on device\n")
    assert run_into(home, words, full, full) == (1, "")
    os.close(full)


def test_closed_streams_are_as_good_as_null(home: Path, tmp_path: Path) -> None:
    """The descriptors of pipes to extensions must not become 0, 1 or 2, where prints would reach them."""
    folder = str(good(tmp_path / "good"))
    bad = str(extension(tmp_path / "bad", "sys.exit(1)"))
    for target, status in ((folder, 0), (bad, 1)):
        script = 'exec "$@" <&- >&- 2>&-'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *argv("check", target)], env=environment(home), timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == status


def test_missing_room_for_temporary_files_is_an_error_in_a_line(home: Path) -> None:
    home.mkdir()
    (home / "logs").write_text("in the way")
    done = run(home, "check", "--json", str(good(home.parent / "good")))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    if done.returncode == 0:
        assert json.loads(done.stdout)["ok"] is True
