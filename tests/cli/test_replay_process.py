"""`exthost replay` as a process: on a terminal, interrupted, and as wide as a pipe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cli.running import TIMEOUT_S, argv, environment, extension, run, run_on_terminal
from cli.transcript_texts import CLAUDE, RECORDINGS, lines, recording

from trio_exthost.cli.examples import examples_directory

GUARD = str(examples_directory() / "extensions/guard")


def test_report_through_pipes_has_no_bar(home: Path, tmp_path: Path) -> None:
    done = run(home, "replay", str(recording(tmp_path, lines(CLAUDE))), "--ext", GUARD)
    assert (done.returncode, done.stderr) == (0, "")
    assert "guard 0.1.0: asked 2 times" in done.stdout
    assert "\x1b" not in done.stdout


def test_terminal_shows_how_far_it_is(home: Path, tmp_path: Path) -> None:
    path = recording(tmp_path, RECORDINGS["list in several lines"][1], "a\x1b[2Jb.json")
    code, shown = run_on_terminal(home, "replay", str(path), "--ext", GUARD, "--json")
    assert code == 0
    assert "kB" in shown or "bytes" in shown
    assert r"a\x1b[2Jb.json" in shown
    assert "a\x1b[2Jb" not in shown


def test_recording_may_come_through_a_pipe(home: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'cat "$1" | "$0" -m trio_exthost replay /dev/stdin --ext "$2" --format claude', argv()[0], str(recording(tmp_path, lines(CLAUDE))), GUARD],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 tool calls" in done.stdout


def test_interrupt_in_the_middle_leaves_no_process(home: Path, tmp_path: Path) -> None:
    program = f"""
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    send(type="hello", name="x"); send(type="subscribe", intercept=["tool_call"]); send(type="ready")
    for line in sys.stdin:
        if "event_intercept" in line:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(600)
    """
    path = recording(tmp_path, lines(CLAUDE))
    done = run(home, "replay", str(path), "--ext", str(extension(tmp_path / "x", program)))
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file whose reading fails")
def test_file_that_may_not_be_read_is_an_error_in_a_line(home: Path, tmp_path: Path) -> None:
    done = run(home, "replay", "/proc/self/mem", "--ext", GUARD)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
