"""A file that whole lines are appended to, each with one write, rotated to `.1`, `.2`, ... before it grows too large.

Several hosts may write to the same file: each line goes to its end in one piece, and one that finds the file rotated by
another goes on with the new one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class RotatingFile:
    """Appends lines. Opened with the first one; every method may raise OSError, and can be called again after that."""

    def __init__(self, path: Path, *, max_bytes: int, files: int) -> None:
        """Open nothing yet.

        Args:
          path: The current file; its directory is made where it is missing.
          max_bytes: Its size at most, unless a single line is larger.
          files: Files kept, the current one included.
        """
        self.path = path
        self._max_bytes = max_bytes
        self._files = files
        self._fd = -1

    def append(self, line: bytes) -> None:
        """Write a line, which ends with a line feed; after a torn one it begins a new line.

        Raises:
          OSError: It was not written, or not all of it.
        """
        if self._fd < 0 or not self._is_current():
            self._reopen()
        size = os.fstat(self._fd).st_size
        if size and size + len(line) > self._max_bytes:
            shift(self.path, self._files)
            self._reopen()
            size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            line = b"\n" + line  # whoever wrote the last one was cut off
        written = os.write(self._fd, line)
        if written < len(line):
            raise OSError(f"only {written} of {len(line)} bytes were taken")

    def _is_current(self) -> bool:
        """Whether the file we have open is still the one of that name."""
        try:
            current = self.path.stat()
        except FileNotFoundError:
            return False
        ours = os.fstat(self._fd)
        return (current.st_dev, current.st_ino) == (ours.st_dev, ours.st_ino)

    def _reopen(self) -> None:
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Close it; a later line opens it again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def rotated(path: Path, number: int) -> Path:
    """The file that was the current one so many rotations ago."""
    return path.with_name(f"{path.name}.{number}")


def shift(path: Path, files: int) -> None:
    """Make room for a new current file: each becomes the next older one, and the oldest of `files` goes."""
    if files == 1:
        path.unlink(missing_ok=True)
    for number in range(files - 1, 0, -1):
        with suppress(FileNotFoundError):
            (rotated(path, number - 1) if number > 1 else path).replace(rotated(path, number))
