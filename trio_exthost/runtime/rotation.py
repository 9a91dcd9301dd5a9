"""A file that several hosts append to, rotated to `.1`, `.2`, ... before it grows too large.

Whoever writes holds a lock on the file meanwhile, and whoever finds it rotated by another goes on with the new one: so its
size is that of what all have written, and no file is rotated twice. The lock is the kernel's; it ends with its process. A
process that was stopped while it held it holds nobody up: after a moment, others add without it, and only rotate with it.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WAIT_S = 0.05
"""For another host's write; once that was too short, nothing until the lock is free at once."""
_RETRY_S = 0.0005
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class RotatingFile:
    """Appends. Opened with the first line; every method may raise OSError, and can be called again after that."""

    def __init__(self, path: Path, *, max_bytes: int, files: int) -> None:
        """Open nothing yet.

        Args:
          path: The current file; its directory is made where it is missing.
          max_bytes: Its size at most.
          files: Files kept, the current one included.
        """
        self.path = path
        self._max_bytes = max_bytes
        self._files = files
        self._fd = -1
        self._is_locked = False
        self._is_patient = True
        self._our_end = -1

    def append(self, line: bytes) -> None:
        """Write a line, which ends with a line feed, in one piece; after a torn one it begins a new line.

        One that is larger than a whole file has a file of its own, which is larger then.

        Raises:
          OSError: It was not written, or not all of it.
        """
        with self._turn():
            while (size := self._size()) and size + len(self._lead(size)) + len(line) > self._max_bytes:
                self._rotate()
            line = self._lead(size) + line
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes were taken")

    def pour(self, data: bytes, *, anew: bool = False) -> None:
        """Write a piece of a stream, all of it: it goes on where the piece before ended, unless others wrote meanwhile.

        Files end with a line, where one ends in them; a line that is larger than a whole file is cut.

        Args:
          data: The piece.
          anew: Whether it begins a line in any case.

        Raises:
          OSError: It was not written, or not all of it.
        """
        with self._turn():
            if anew:
                self._our_end = -1
            while data:
                size = self._size()
                lead = b"" if size == self._our_end else self._lead(size)
                room = self._max_bytes - size - len(lead)
                piece = data if len(data) <= room else data[: data.rfind(b"\n", 0, max(room, 0)) + 1]
                if not piece and size:
                    self._rotate()
                    continue
                written = os.write(self._fd, lead + (piece or data[:room])) - len(lead)
                self._our_end = self._size()
                data = data[written:]

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _lead(self, size: int) -> bytes:
        """What ends the line of who wrote last, if that was cut off, or is not at its end yet."""
        return b"\n" if size and os.pread(self._fd, 1, size - 1) != b"\n" else b""

    # --- taking turns ---

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Have the current file open, and locked where nobody holds it for too long."""
        self._enter()
        try:
            yield
        finally:
            if self._is_locked and self._fd >= 0:
                _flock(self._fd, fcntl.LOCK_UN)
            self._is_locked = False

    def _enter(self) -> None:
        while True:
            if self._fd < 0:
                self._open()
            self._is_locked = self._lock()
            if self._is_current():
                return
            self.close()  # and with it the lock

    def _lock(self) -> bool:
        deadline = time.monotonic() + WAIT_S
        while not _flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            self._is_patient = self._is_patient and time.monotonic() < deadline
            if not self._is_patient:
                return False
            time.sleep(_RETRY_S)
        self._is_patient = True
        return True

    def _rotate(self) -> None:
        if not self._is_locked:
            raise OSError(errno.EAGAIN, "it is full, and another process holds its lock")
        shift(self.path, self._files)
        self.close()
        self._enter()

    def _is_current(self) -> bool:
        """Whether the file we have open is still the one of that name."""
        try:
            current = self.path.stat()
        except FileNotFoundError:
            return False
        ours = os.fstat(self._fd)
        return (current.st_dev, current.st_ino) == (ours.st_dev, ours.st_ino)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Close it; a later line opens it again."""
        self._our_end = -1
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _flock(fd: int, how: int) -> bool:
    """Whether it is locked or unlocked as asked; where the file system has no locks, everybody has them."""
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        return False
    except OSError as exc:
        if exc.errno not in _NO_LOCKS:
            raise
    return True


def rotated(path: Path, number: int) -> Path:
    """The file that was the current one so many rotations ago."""
    return path.with_name(f"{path.name}.{number}")


def shift(path: Path, files: int) -> None:
    """Make room for a new current file: each becomes the next older one, and the oldest of `files` goes."""
    if files == 1:
        path.unlink(missing_ok=True)
        return
    # As far as there are files, not as many as there may be: a limit of 10**16 is one, too.
    end = next(number for number in itertools.count(1) if number == files - 1 or not rotated(path, number).exists())
    for number in range(end, 0, -1):
        with suppress(FileNotFoundError):
            (rotated(path, number - 1) if number > 1 else path).replace(rotated(path, number))
