"""An extension's log: its stderr and the host's own lines, in files of bounded size, and the end of it in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trio_exthost.runtime.rotation import shift


class ExtensionLog:
    """Appends to `<name>.log`, rotated to `.1`, `.2`, ...; a failing disk is told once and never stops the host."""

    def __init__(
        self, path: Path, *, max_bytes: int, files: int, tail_bytes: int, on_failure: Callable[[str], None]
    ) -> None:
        """Open nothing yet: the file is made with the first line.

        Args:
          path: The current log.
          max_bytes: Its size before it is rotated.
          files: Files kept, the current one included.
          tail_bytes: End of stderr kept in memory.
          on_failure: Told once when it cannot be written.
        """
        self.path = path
        self._max_bytes = max_bytes
        self._files = files
        self._tail_bytes = tail_bytes
        self._on_failure = on_failure
        self._tail = bytearray()
        self._fd = -1
        self._size = 0
        self._has_failed = False
        self._is_over = False

    def write_stderr(self, data: bytes) -> None:
        """Bytes the extension wrote to its stderr, kept as they are."""
        self._tail += data[-self._tail_bytes :]
        if len(self._tail) > self._tail_bytes:
            del self._tail[: -self._tail_bytes]
        self._append(data)

    def note(self, text: str) -> None:
        """A line of the host's own."""
        self._append(b"[exthost] " + text.encode("utf-8", "backslashreplace").replace(b"\n", b"\n  ") + b"\n")

    def tail(self, lines: int = 20) -> str:
        """The last lines of stderr, as text; bytes that are no UTF-8 are shown as escapes."""
        text = bytes(self._tail).decode("utf-8", "backslashreplace")
        return "\n".join(text.rstrip("\n").split("\n")[-lines:]) if text.strip() else ""

    def _append(self, data: bytes) -> None:
        try:
            while data:
                if self._fd < 0:
                    self._open()
                if self._size >= self._max_bytes:
                    self._rotate()
                room = self._max_bytes - self._size
                written = os.write(self._fd, data[:room])
                self._size += written
                data = data[written:]
        except OSError as exc:
            self._close()
            if not self._has_failed:
                self._has_failed = True
                self._on_failure(f"{self.path} cannot be written: {exc.strerror}")
        if self._is_over:
            self._close()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size

    def _rotate(self) -> None:
        """Shift the files by one, unless another host has done it: then only its new file is opened."""
        ours = os.fstat(self._fd)
        os.close(self._fd)
        self._fd = -1
        with suppress(FileNotFoundError):
            current = self.path.stat()
            if (current.st_dev, current.st_ino) == (ours.st_dev, ours.st_ino):
                shift(self.path, self._files)
        self._open()

    def close(self) -> None:
        """Close the file; the tail stays readable. What is still noted later is written, and leaves nothing open."""
        self._is_over = True
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
