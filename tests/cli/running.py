"""The command as a user runs it: in a process of its own; and extensions to run it on."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PREAMBLE = """
import json, os, signal, sys, time
def send(**frame): print(json.dumps(frame), flush=True)
"""
TIMEOUT_S = 90


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "trio_exthost", *words]


def environment(home: Path, **more: str) -> dict[str, str]:
    """This one's without what would change the command's ways; this checkout's package also in another directory."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    for key in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        env.pop(key, None)
    package = str(Path(__file__).parents[2])
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return {**env, "EXTHOST_HOME": str(home), "TERM": "xterm-256color", **more}


def run(
    home: Path, *words: str, cwd: Path | None = None, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run it with pipes."""
    return subprocess.run(
        argv(*words),
        cwd=cwd,
        env=environment(home, **env),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )


def run_on_terminal(home: Path, *words: str, typed: str = "", after: str = "", **env: str) -> tuple[int, str]:
    """Run it on a terminal of its own; exit status and what stands there, typed text included.

    Args:
      home: The user's data directory.
      words: The command's arguments.
      typed: What is typed.
      after: Not before this stands there.
      env: Added to the environment.
    """
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        argv(*words),
        env=environment(home, **env),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # else Ctrl-C is no signal to it
    ) as process:
        os.close(theirs)
        try:
            shown = b""
            is_typed = not typed
            for piece in _pieces(ours):
                shown += piece
                if not is_typed and after.encode() in shown:
                    os.write(ours, typed.encode())
                    is_typed = True
            return process.wait(TIMEOUT_S), shown.decode().replace("\r\n", "\n")
        finally:
            process.kill()
            os.close(ours)


def _pieces(descriptor: int) -> Iterator[bytes]:
    while True:
        assert select.select([descriptor], [], [], TIMEOUT_S)[0], "nothing more is printed, and it does not end"
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # how Linux says that nobody has the other end any more
            return
        if not piece:
            return
        yield piece


@contextmanager
def started(home: Path, words: Sequence[str], **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running command with unread pipes; killed in the end if it still runs."""
    with subprocess.Popen(
        argv(*words), env=environment(home, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def extension(folder: Path, program: str, **manifest: object) -> Path:
    """An extension in Python; `send` sends a frame."""
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(PREAMBLE + textwrap.dedent(program))
    (folder / "extension.json").write_text(
        json.dumps({"name": folder.name, "exec": sys.executable, "args": ["main.py"], **manifest})
    )
    return folder


def good(folder: Path) -> Path:
    """One that registers a bit of everything, with a description that would colour and reorder the terminal."""
    return extension(
        folder,
        """
        send(type="hello", name="good")
        send(type="register_command", name="hi", description="says \\x1b[31mhi\\u202e [bold red]loud[/]")
        send(type="register_tool", name="look", schema={"type": "object"}, description="looks")
        send(type="subscribe", events=["turn_start"], intercept=["tool_call"])
        send(type="ready")
        for line in sys.stdin: pass
        """,
        version="1.2",
    )
