"""Ctrl-C: status 130 and one word, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import trio
from cli.running import TIMEOUT_S, argv, environment, extension, good, run, run_on_terminal, started

from trio_exthost.cli import entry
from trio_exthost.cli.group import exthost

INTERRUPTING = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"


@pytest.mark.parametrize("module", ["click", "trio", "attrs"])
def test_during_imports(home: Path, tmp_path: Path, module: str) -> None:
    """A module of that name interrupts the process while it is being imported."""
    (tmp_path / "fakes").mkdir()
    (tmp_path / "fakes" / f"{module}.py").write_text(INTERRUPTING)
    package = Path(entry.__file__).parents[2]
    done = run(home, "check", str(tmp_path), PYTHONPATH=f"{tmp_path / 'fakes'}{os.pathsep}{package}")
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


def test_while_an_extension_is_being_checked_leaves_no_process(home: Path, tmp_path: Path) -> None:
    program = f"""
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(600)
    """
    done = run(home, "check", str(extension(tmp_path / "x", program)))
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_in_the_middle_of_the_demo_leaves_no_folder(home: Path, tmp_path: Path) -> None:
    with started(home, ["demo"], TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None
        text = b""
        while b"ready: " not in text:
            text += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert errors.decode().strip() == "interrupted"
    assert list(tmp_path.glob("exthost-demo*")) == []


def test_before_a_question_is_answered_records_nothing(home: Path, tmp_path: Path) -> None:
    code, shown = run_on_terminal(home, "trust", str(good(tmp_path / "good")), typed="\x03", after="[y/N] ")
    assert code == 130
    assert "Traceback" not in shown
    assert not (home / "trust.json").exists()


async def interrupted_in_nurseries() -> None:
    async with trio.open_nursery(), trio.open_nursery():
        raise KeyboardInterrupt


async def interrupted_and_broken() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broken)
        try:
            await trio.sleep_forever()
        finally:
            raise KeyboardInterrupt


async def broken() -> None:
    raise ZeroDivisionError


def test_within_nurseries_is_one_interrupt(monkeypatch) -> None:
    monkeypatch.setattr(type(exthost), "main", lambda *_, **__: trio.run(interrupted_in_nurseries))
    with pytest.raises(KeyboardInterrupt):
        entry.run([])


def test_failure_beside_an_interrupt_is_not_swallowed(monkeypatch) -> None:
    monkeypatch.setattr(type(exthost), "main", lambda *_, **__: trio.run(interrupted_and_broken))
    with pytest.raises(BaseExceptionGroup) as caught:
        entry.run([])
    assert caught.value.split(ZeroDivisionError)[0] is not None


def test_interrupt_status_is_what_a_shell_sees(home: Path, tmp_path: Path) -> None:
    program = "os.kill(os.getppid(), signal.SIGINT); time.sleep(600)"
    done = subprocess.run(
        ["sh", "-c", '"$@"; echo $?', "sh", *argv("check", "--json", str(extension(tmp_path / "x", program)))],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout == "130\n"
