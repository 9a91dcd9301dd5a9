"""The watchdog: no extension outlives a host that was killed with SIGKILL.

One small process per host, in its own session, fed the process groups over a pipe; at the end of that pipe it sends TERM,
then KILL, to what is left. (Not PR_SET_PDEATHSIG: that fires when the *thread* that forked ends, and does not reach
grandchildren.) A descendant that called setsid escapes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import trio

PROGRAM = """
import os, signal, sys, time
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
groups, rest = set(), b""
while True:
    data = os.read(0, 65536)
    if not data:
        break
    *lines, rest = (rest + data).split(b"\\n")
    for line in lines:
        (groups.add if line[:1] == b"+" else groups.discard)(int(line[2:]))
def send(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            groups.discard(group)
        except PermissionError:
            pass
send(signal.SIGTERM)
until = time.monotonic() + 0.5
while groups and time.monotonic() < until:
    time.sleep(0.02)
    send(0)
send(signal.SIGKILL)
"""
"""Run by `python -c`: it must need nothing of the host's environment, and starts in 20 ms."""


class Watchdog:
    """Tells the watchdog process which groups live. Started with the first of them."""

    def __init__(self, on_lost: Callable[[str], None]) -> None:
        """`on_lost` is told, once, when the watchdog cannot be started or has gone."""
        self._on_lost = on_lost
        self._popen: subprocess.Popen[bytes] | None = None
        self._fd = -1
        self._is_lost = False

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._popen.pid if self._popen is not None else None

    def watch(self, pgid: int) -> None:
        """This group lives."""
        if self._popen is None and not self._is_lost:
            self._start()
        self._tell(f"+ {pgid}\n")

    def forget(self, pgid: int) -> None:
        """This group is gone; called while its leader is a zombie, so the number is nobody else's yet."""
        self._tell(f"- {pgid}\n")

    def _start(self) -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError as exc:
            os.close(writing)
            self._lose(f"it cannot be started: {exc}")
        else:
            self._fd = writing
        finally:
            os.close(reading)

    def _tell(self, line: str) -> None:
        if self._fd < 0:
            return
        try:
            # A line is far below PIPE_BUF: it is written whole or not at all.
            os.write(self._fd, line.encode())
        except OSError as exc:
            self._lose(f"it no longer listens: {exc.strerror}")

    def _lose(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._on_lost(f"the watchdog is lost, extensions can outlive a killed host: {why}")

    async def stop(self) -> None:
        """Close its pipe and reap it. Shielded and bounded: it has nothing to kill any more, and is killed after 2 s."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._popen is None:
            return
        popen, self._popen = self._popen, None
        with trio.move_on_after(2, shield=True):
            # abandon_on_cancel: a watchdog that hangs (it cannot) must not hold the host.
            await trio.to_thread.run_sync(
                lambda: os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT), abandon_on_cancel=True
            )
        popen.kill()
        popen.wait()
