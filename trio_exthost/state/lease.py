"""A lock file: who holds it is the only one who writes what lies beside it.

The kernel lets go of the lock when the holder's process ends, however it ends. The file itself stays: removing it would
let two processes each hold one of their own.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_RETRY_S = 0.001


class LeaseTaken(Exception):
    """Somebody else holds the lock; `pid` is the process, None if it has not said."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"held by process {pid}")
        self.pid = pid

    @property
    def holder(self) -> str:
        """The process in words."""
        if self.pid is None:
            return "another process"
        return f"process {self.pid}" + (" (this one)" if self.pid == os.getpid() else "")


class Lease:
    """A lock that is held until `release`, or until the process ends. Programs that it starts do not inherit it."""

    def __init__(self, path: Path, *, wait_s: float = 0.0) -> None:
        """Take the lock. Blocks while it waits.

        Args:
          path: The lock file; made if it is not there, with mode 0600.
          wait_s: How long to wait for who holds it, in seconds.

        Raises:
          LeaseTaken: Somebody holds it, in this process or another.
          OSError: The file cannot be opened.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            taken = _lock(descriptor, wait_s)
            holder = None if taken else _read_pid(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if not taken:
            os.close(descriptor)
            raise LeaseTaken(holder)
        self._descriptor: int | None = descriptor
        _write_pid(descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Let others have it. Releasing twice is releasing once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _write_pid(descriptor, b"")
            os.close(descriptor)


def _lock(descriptor: int, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_RETRY_S)
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_pid(descriptor: int, text: bytes) -> None:
    """Who holds it, for the message of whoever comes; on a full disk it stays unsaid."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text, 0)
    except OSError:
        return


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0)
    return int(text) if text.isdigit() else None
