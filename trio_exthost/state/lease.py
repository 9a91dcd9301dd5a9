"""A lock file: who holds it is the only one who writes what lies beside it.

The kernel lets go of the lock when the holder's process ends, however it ends. The file itself stays: removing it would
let two processes each hold one of their own. It says who holds it, and how much that one has stored.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_RETRY_S = 0.001
_FIELD_BYTES = 32
"""The process, then the mark: decimal digits, filled up with blanks."""


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
            holder = None if taken else _read(descriptor, 0)
            mark = _read(descriptor, _FIELD_BYTES)
        except BaseException:  # whatever it is, nobody else would close it
            os.close(descriptor)
            raise
        if not taken:
            os.close(descriptor)
            raise LeaseTaken(holder)
        self._descriptor: int | None = descriptor
        self.mark: int = mark or 0
        """What the last holder noted last, if it ended without a release; else 0."""
        _write(descriptor, 0, os.getpid())

    def note(self, mark: int) -> None:
        """Let the next holder know how much was stored, should this one end without a release. Does nothing after it."""
        if self._descriptor is not None:
            _write(self._descriptor, _FIELD_BYTES, mark)

    def forget(self) -> None:
        """The mark does not hold for what lies there now."""
        self.mark = 0
        if self._descriptor is not None:
            _write(self._descriptor, _FIELD_BYTES, None)

    def release(self, *, keep_mark: bool = False) -> None:
        """Let others have it, and forget the mark unless it is to be kept. Releasing twice is releasing once."""
        if not keep_mark:
            self.forget()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _write(descriptor, 0, None)
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


def _write(descriptor: int, offset: int, number: int | None) -> None:
    """Note a number, or that there is none; on a full disk what was there stays."""
    text = "" if number is None else str(number)
    try:
        os.pwrite(descriptor, text.ljust(_FIELD_BYTES - 1).encode() + b"\n", offset)
    except OSError:
        return


def _read(descriptor: int, offset: int) -> int | None:
    text = os.pread(descriptor, _FIELD_BYTES, offset).strip()
    return int(text) if text.isdigit() else None
