"""An extension's process: spawned in the trio thread, ended by its exit, never outlived by its group.

`subprocess.Popen` directly (vfork: 100 spawns take 62 ms and hold the loop up for 1.8 ms; through worker threads they
waited 2 s behind 40 busy threads of the agent). Its own session and process group; the exit is learnt from a pidfd. At the
end the group gets SIGKILL *while the leader is a zombie*, which pins the number: a killpg after the reap can hit a stranger.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import attrs
import trio

from trio_exthost.runtime.watchdog import Watchdog

_waiters = trio.CapacityLimiter(1024)
"""For the threads that wait where there is no pidfd: the agent's own threads stay free."""


@attrs.frozen
class ExitStatus:
    """How a process ended: an exit code, or minus a signal's number."""

    code: int

    def __str__(self) -> str:
        """`exit 3`, or `killed by SIGSEGV`."""
        if self.code >= 0:
            return f"exit {self.code}"
        with suppress(ValueError):
            return f"killed by {signal.Signals(-self.code).name}"
        return f"killed by signal {-self.code}"


class Process(Protocol):
    """What an instance needs of its process; the tests' in-process one has the same shape."""

    pid: int
    stdin_fd: int
    """Writing end; the outbox takes it over."""
    stdout_fd: int
    """Reading end; the pump takes it over."""
    stderr_fd: int
    """Reading end; the pump takes it over."""

    async def wait_exited(self) -> None:
        """Return once the leader has ended; it is not reaped yet."""

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; nothing if it is gone."""

    def reap(self) -> ExitStatus:
        """Kill what is left of the group, then reap the leader. Only after `wait_exited`; idempotent."""

    def close(self) -> None:
        """Give back what the process object itself holds (not the three pipes); idempotent."""


class Spawner(Protocol):
    """How an instance gets its process. Raises OSError as `subprocess.Popen` does."""

    def __call__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Process:
        """Start `argv` in `cwd` with exactly this environment."""


def _open_pidfd(pid: int) -> int:
    """A descriptor that is readable once the process has ended, or -1 where the system has none."""
    if sys.platform != "linux":
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:
        # An old kernel, or a sandbox that forbids the call: a thread waits instead.
        return -1


class SpawnedProcess:
    """A real process."""

    stdin_fd: int
    stdout_fd: int
    stderr_fd: int

    def __init__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], watchdog: Watchdog) -> None:
        """Spawn it. Nothing is left open when this raises OSError."""
        ours: list[int] = []
        theirs: list[int] = []
        try:
            child_in, self.stdin_fd = os.pipe()
            theirs.append(child_in)
            ours.append(self.stdin_fd)
            for name in ("stdout_fd", "stderr_fd"):
                reading, writing = os.pipe()
                setattr(self, name, reading)
                ours.append(reading)
                theirs.append(writing)
            self._popen = subprocess.Popen(
                list(argv),
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
            )
        except BaseException:  # also Ctrl-C: no descriptor stays open
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self.pid: int = self._popen.pid
        self._watchdog = watchdog
        watchdog.watch(self.pid)
        self._pidfd = _open_pidfd(self.pid)
        self._status: ExitStatus | None = None

    async def wait_exited(self) -> None:
        """Return once the leader has ended; it is not reaped yet."""
        if self._pidfd >= 0:
            await trio.lowlevel.wait_readable(self._pidfd)
        else:
            await trio.to_thread.run_sync(
                lambda: os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT),
                abandon_on_cancel=True,
                limiter=_waiters,
            )

    def signal(self, number: int) -> None:
        """Send a signal to the whole group; nothing if it is gone."""
        if self._status is None:
            # macOS answers EPERM for a group of zombies; neither says anything to act on.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def reap(self) -> ExitStatus:
        """Kill what is left of the group, then reap the leader. Only after `wait_exited`; idempotent."""
        if self._status is None:
            self.signal(signal.SIGKILL)
            self._watchdog.forget(self.pid)
            _, status = os.waitpid(self.pid, 0)
            self._status = ExitStatus(os.waitstatus_to_exitcode(status))
            # Popen would otherwise warn, and try to reap a number that is free again.
            self._popen.returncode = self._status.code
            self.close()
        return self._status

    def close(self) -> None:
        """Give the pidfd back; idempotent."""
        if self._pidfd >= 0:
            fd, self._pidfd = self._pidfd, -1
            trio.lowlevel.notify_closing(fd)
            os.close(fd)
