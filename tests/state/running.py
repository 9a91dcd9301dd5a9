"""Real processes for tests of the stores."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
NOBODY = 65534


@contextlib.contextmanager
def program(name: str, *arguments: object):
    """A program of `programs/`, with pipes of text; it is not there any more afterwards."""
    process = subprocess.Popen(
        [sys.executable, PROGRAMS / name, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def without_rights(work: Callable[[], str]) -> str:
    """What `work` returns as a user whom the rights of files bind, which root is not. It runs in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            text = work()
        except BaseException as exc:  # noqa: BLE001 - a fork of the tests must not go on as a second one
            text = f"{type(exc).__name__} got out: {exc}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor has no path
        text = stream.read()
    os.waitpid(child, 0)
    return text
