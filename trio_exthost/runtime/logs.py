"""An extension's log: its stderr and the host's own lines, in files of bounded size, and the end of it in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trio_exthost.runtime.rotation import RotatingFile


class ExtensionLog:
    """Appends to `<name>.log`, rotated to `.1`, `.2`, ...; a failing disk is told once and never stops the host."""

    def __init__(
        self, path: Path, *, max_bytes: int, files: int, tail_bytes: int, on_failure: Callable[[str], None]
    ) -> None:
        """Open nothing yet: the file is made with the first line.

        Args:
          path: The current log.
          max_bytes: Its size at most, whoever else writes to it.
          files: Files kept, the current one included.
          tail_bytes: End of stderr kept in memory.
          on_failure: Told once when it cannot be written.
        """
        self.path = path
        self._file = RotatingFile(path, max_bytes=max_bytes, files=files)
        self._tail_bytes = tail_bytes
        self._on_failure = on_failure
        self._tail = bytearray()
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
        line = b"[exthost] " + text.encode("utf-8", "backslashreplace").replace(b"\n", b"\n  ") + b"\n"
        self._append(line, anew=True)

    def tail(self, lines: int = 20) -> str:
        """The last lines of stderr, as text; bytes that are no UTF-8 are shown as escapes."""
        text = bytes(self._tail).decode("utf-8", "backslashreplace")
        return "\n".join(text.rstrip("\n").split("\n")[-lines:]) if text.strip() else ""

    def _append(self, data: bytes, *, anew: bool = False) -> None:
        try:
            self._file.pour(data, anew=anew)
        except OSError as exc:
            self._close()
            if not self._has_failed:
                self._has_failed = True
                self._on_failure(f"{self.path} cannot be written: {exc.strerror or exc}")
        if self._is_over:
            self._close()

    def close(self) -> None:
        """Close the file; the tail stays readable. What is still noted later is written, and leaves nothing open."""
        self._is_over = True
        self._close()

    def _close(self) -> None:
        with suppress(OSError):  # what could not be written has been told
            self._file.close()
