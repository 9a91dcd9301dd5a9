"""`exthost dev`: an extension that is saved is reloaded; one that is broken is not; what is no save is none."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli.running import TIMEOUT_S, extension, started
from click.testing import CliRunner

from trio_exthost.cli import dev_watch
from trio_exthost.cli.group import exthost

PROGRAM = """
import helper
open("../pids", "a").write(f"{os.getpid()}\\n")
send(type="hello", name="mine")
send(type="register_command", name="say")
send(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "command_invoked":
        send(type="command_response", id=frame["id"], action="display", display=f"one {helper.WORD}")
"""


class Running:
    """`exthost dev --json` at work: what it tells, one object after the other."""

    def __init__(self, process: Any) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    def next(self, what: str) -> dict[str, Any]:
        """The next object of this kind; those before it stay in `seen`."""
        while True:
            line = self.process.stdout.readline()
            assert line, (self.process.wait(TIMEOUT_S), self.process.stderr.read().decode(), self.seen)
            told = json.loads(line)
            self.seen.append(told)
            if told["what"] == what:
                return told

    def says(self) -> str:
        """What the command answered after the last round."""
        return self.next("played")["commands"][0]["text"]

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert (self.process.returncode, errors.decode().strip()) == (130, "interrupted")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = extension(tmp_path / "mine", PROGRAM)
    (made / "helper.py").write_text("WORD = 'first'\n")
    return made


@contextmanager
def killed_when_stuck(process: Any) -> Iterator[None]:
    """Then whoever reads its output sees the end of it."""
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def developing(home: Path, folder: Path, *words: str, ends: bool = True) -> Iterator[Running]:
    """It runs the command `say` after each reload; in the end Ctrl-C, and nothing may be left."""
    temporary = folder.parent / "temporary"
    temporary.mkdir()
    call = ["dev", "--json", "--no-task", "-c", "/say", *words, str(folder)]
    with started(home, call, TMPDIR=str(temporary)) as process, killed_when_stuck(process):
        running = Running(process)
        yield running
        if ends:
            running.interrupt()
    assert list(temporary.iterdir()) == []
    for pid in (folder.parent / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_a_save_is_another_process_with_the_new_text(home: Path, folder: Path) -> None:
    with developing(home, folder) as running:
        assert running.next("loaded") == {"what": "loaded", "ready": ["mine"], "failed": []}
        assert running.says() == "one first"
        edit(folder / "main.py", "one", "two")
        assert running.next("changed")["paths"] == ["main.py"]
        (restarted,) = running.next("reloaded")["restarted"]
        assert restarted["name"] == "mine"
        assert restarted["old_pid"] != restarted["new_pid"]
        assert [restarted["old_pid"], restarted["new_pid"]] == [
            int(line) for line in (folder.parent / "pids").read_text().split()
        ]
        assert running.says() == "two first"
        # Only a file that it imports.
        edit(folder / "helper.py", "first", "second")
        assert running.next("reloaded")["restarted"][0]["old_pid"] == restarted["new_pid"]
        assert running.says() == "two second"


def test_while_it_is_broken_the_old_one_goes_on(home: Path, folder: Path) -> None:
    with developing(home, folder) as running:
        assert running.says() == "one first"
        edit(folder / "main.py", "one", "two")
        edit(folder / "helper.py", "WORD", "WORD = (")
        told = running.next("reloaded")
        assert told["restarted"] == []
        (failure,) = told["failed"]
        assert (failure["name"], failure["stage"]) == ("mine", "hello")
        assert "SyntaxError" in failure["reason"]
        assert "mine.log" in failure["log_path"]
        edit(folder / "helper.py", "WORD = (", "WORD")
        assert running.next("reloaded")["failed"] == []
        assert running.says() == "two first"


def test_a_manifest_that_cannot_be_read_is_named_and_mended(home: Path, folder: Path) -> None:
    with developing(home, folder) as running:
        assert running.says() == "one first"
        manifest = (folder / "extension.json").read_text()
        (folder / "extension.json").write_text(manifest[:-9])
        (failure,) = running.next("reloaded")["failed"]
        assert failure["stage"] == "discovery"
        assert "extension.json" in failure["reason"]
        (folder / "extension.json").write_text(manifest)
        edit(folder / "main.py", "one", "two")
        assert running.next("reloaded")["failed"] == []
        assert running.says() == "two first"


def test_one_that_never_started_is_started_by_a_save(home: Path, folder: Path) -> None:
    edit(folder / "helper.py", "WORD", "WORD = (")
    with developing(home, folder) as running:
        told = running.next("loaded")
        assert told["ready"] == []
        assert "SyntaxError" in told["failed"][0]["reason"]
        edit(folder / "helper.py", "WORD = (", "WORD")
        assert running.next("reloaded")["failed"] == []
        assert running.says() == "one first"


def save_by_truncating(path: Path, text: str) -> None:
    with path.open("w") as file:
        for piece in text.splitlines(keepends=True):
            file.write(piece)
            file.flush()


def save_by_renaming(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_text(text)
    beside.rename(path)


def save_by_making_anew(path: Path, text: str) -> None:
    path.rename(path.with_name(f"{path.name}~"))
    path.write_text(text)


@pytest.mark.parametrize("save", [save_by_truncating, save_by_renaming, save_by_making_anew])
def test_each_editors_way_of_saving_ends_with_its_last_text(home: Path, folder: Path, save: Any) -> None:
    with developing(home, folder) as running:
        assert running.says() == "one first"
        for word in ("two", "three", "four"):
            save(folder / "main.py", (folder / "main.py").read_text().replace("one", word))
            edit(folder / "main.py", word, "one")  # a burst: only how it ends counts
        save(folder / "main.py", (folder / "main.py").read_text().replace("one", "five"))
        assert running.next("reloaded")["failed"] == []
        assert running.says() == "five first"
        assert {path for told in running.seen if told["what"] == "changed" for path in told["paths"]} == {"main.py"}


def test_what_it_writes_itself_is_no_save(home: Path, folder: Path) -> None:
    edit(folder / "extension.json", '"args"', '"exthost": {"watch_ignore": ["state.json"]}, "args"')
    edit(
        folder / "main.py",
        'send(type="ready")',
        """
for each in ("__pycache__/x", ".venv/y", "state.json", "out.log"):
    os.makedirs(os.path.dirname(each) or ".", exist_ok=True)
    for _ in range(10):
        open(each, "a").write("more")
send(type="ready")
""",
    )
    with developing(home, folder) as running:
        assert running.says() == "one first"
        edit(folder / "helper.py", "first", "second")
        assert running.says() == "one second"
        edit(folder / "helper.py", "second", "third")
        assert running.says() == "one third"
        assert [told["paths"] for told in running.seen if told["what"] == "changed"] == [["helper.py"], ["helper.py"]]


def test_one_that_rewrites_itself_is_paused(home: Path, folder: Path) -> None:
    edit(folder / "main.py", "import helper", 'import helper; open("helper.py", "a").write("# more\\n")')
    with developing(home, folder, "--limit", "2") as running:
        paused = running.next("paused")
        assert (paused["most"], paused["window_s"]) == (2, 60)
        assert 0 < paused["seconds"] <= 60
        assert sum(told["what"] == "reloaded" for told in running.seen) == 2


def test_with_its_task_it_reloads_when_the_agent_is_through(home: Path, folder: Path) -> None:
    with developing(home, folder, "--task") as running:
        running.next("loaded")
        edit(folder / "main.py", "one", "two")  # in the middle of the work
        assert running.next("reloaded")["failed"] == []
        first = next(told for told in running.seen if told["what"] == "played")
        assert first["commands"][0]["text"] in ("one first", "two first")
        assert {event["event"] for event in first["events"]} >= {"tool_call", "tool_result", "turn_end"}
        assert running.says() == "two first"


def test_the_text_is_readable_at_80_columns_and_comes_at_once(home: Path, folder: Path) -> None:
    with started(home, ["dev", "--no-task", "-c", "say", str(folder)]) as process, killed_when_stuck(process):
        assert process.stdout is not None

        def until(word: str) -> list[str]:
            lines: list[str] = []
            while not any(word in line for line in lines):
                lines.append(process.stdout.readline().decode())  # type: ignore[union-attr]
                assert lines[-1], process.stderr.read()  # type: ignore[union-attr]
                assert len(lines[-1].rstrip("\n")) <= 80 or len(lines[-1].split()) == 1  # a path stays whole
            return lines

        assert any("one first" in line for line in until("Ctrl-C ends it"))
        edit(folder / "main.py", "one", "two")
        until("changed  main.py")
        until("reloaded mine: process")
        until("two first")
        until("Ctrl-C ends it")
        (folder / "helper.py").write_text("WORD = (\n")
        assert any("SyntaxError" in line for line in until("waiting for the next save"))
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130


def test_reader_that_goes_away_ends_it(home: Path, folder: Path) -> None:
    with developing(home, folder, ends=False) as running:
        running.says()
        running.process.stdout.close()
        edit(folder / "main.py", "one", "two")
        assert running.process.wait(TIMEOUT_S) == 141
        assert running.process.stderr.read() == b""


def test_a_command_that_gives_nothing_is_told(home: Path, folder: Path) -> None:
    with developing(home, folder, "-c", "nosuch") as running:
        said, failed = running.next("played")["commands"]
        assert said == {"command": "say", "action": "display", "text": "one first"}
        assert (failed["command"], failed["action"]) == ("nosuch", "failed")
        assert "nosuch" in failed["text"]


def test_without_watchfiles_it_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    result = CliRunner().invoke(exthost, ["dev", str(folder)])
    assert result.exit_code == 1
    assert "pip install 'trio-exthost[demo]'" in result.output


def test_a_folder_that_cannot_be_watched_is_an_error_in_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "OS file watch limit reached")

    import watchfiles._rust_notify

    monkeypatch.setattr(watchfiles._rust_notify, "RustNotify", refuse)
    assert dev_watch.check_installed() is None
    result = CliRunner().invoke(exthost, ["dev", str(folder)])
    assert result.exit_code == 1
    assert "cannot be watched" in result.output
    assert "OS file watch limit reached" in result.output
