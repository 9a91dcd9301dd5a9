"""Bytes to lines: what arrives in pieces of any size leaves as whole lines, in order.

A line ends at 0x0A and nowhere else: U+2028, U+0085, VT, FF and a bare CR are legal inside a JSON string or harmless
between tokens. The buffer is searched once: `_scanned` remembers how far, so a line of 4 MiB costs the same in one
piece or in 64 KiB ones.

Ordinary bytes (no CR, nothing near the bound) are split in one go as they come in, which costs a fifth of going through
them line by line; what is not ordinary takes that way.
"""

from __future__ import annotations

import re

import attrs

HEAD = 64
"""Bytes of a line over its bound that are kept to name it by."""


_MOST_REPEATED = 2**31
"""A regular expression takes no larger bound; a longer run of CRs than that is passed over in two steps, not in one."""


@attrs.frozen
class LineTooLong:
    """A line passed a bound; its bytes are thrown away up to the next line feed.

    How the bytes were cut into pieces shows in no field: `length_so_far` is the length at which the bound was passed.
    """

    length_so_far: int
    """Bytes: one more than the bound."""
    head: bytes
    """The first bytes of the line, at most 64."""
    stop: bool
    """Whether the second bound was passed: a program that does this is not worth reading on."""


class LineSplitter:
    """Splits a byte stream on line feeds; pull style, so a caller may stop between any two lines.

    One CR before the line feed belongs to the line end; lines of nothing but CR are skipped. Memory: at most
    `max_line` bytes plus what was fed since `next_line` last gave None, and an object for each line of that. Time:
    linear in what was fed, however it was cut.
    """

    def __init__(self, max_line: int, stop_line: int) -> None:
        """Set the bounds.

        Args:
          max_line: Bytes of a line without its line end; a longer one is reported and thrown away.
          stop_line: Bytes of a line that is being thrown away; a longer one is reported once more, with `stop`.
        """
        self._max = max_line
        self._stop = max(stop_line, max_line)
        # As many CRs as a line may have: a longer run of them is too long a line, blank or not.
        self._blank_lines = re.compile(rb"(?:\r{0,%d}\n)+" % min(max_line + 1, _MOST_REPEATED))
        self._buffer = bytearray()
        self._start = 0
        self._scanned = 0
        self._skipping: _Skipped | None = None
        self._whole: list[bytes] = []  # lines that are ready, the last first; they come before what is in the buffer
        self._is_drained = True  # `next_line` gave None, and nothing has come since
        self._is_split = True  # no line end is in the buffer, and its content is no longer than the bound

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        if self._is_drained and len(data) <= self._max and b"\r" not in data:
            lines = data.split(b"\n")
            rest = lines.pop()
            if lines and (not self._buffer or self._complete(lines)):
                if len(lines) > 1:
                    lines = list(filter(None, lines))
                    lines.reverse()
                if rest:
                    self._buffer += rest
                    self._scanned = len(rest)
                self._whole = lines
                self._is_drained = False
                return
        self._buffer += data
        self._is_drained = self._is_split = False

    def is_line(self, data: bytes) -> bool:
        """Whether these bytes, were they fed, would be one ordinary line and nothing more: then they need not be."""
        return (
            self._is_drained
            and self._is_split
            and not self._buffer
            and len(data) <= self._max
            and data.find(b"\n") == len(data) - 1
        )

    def _complete(self, lines: list[bytes]) -> bool:
        """Put what is in the buffer before the first line; False, and nothing done, where that is not ordinary."""
        buffer = self._buffer
        if len(buffer) + len(lines[0]) > self._max or b"\r" in buffer:
            return False
        lines[0] = bytes(buffer) + lines[0]
        buffer.clear()
        self._scanned = 0
        return True

    def next_line(self) -> bytes | LineTooLong | None:
        """The next line without its line end, a report, or None if more bytes are needed."""
        if self._whole and (whole := self._whole.pop()):
            return whole
        if self._is_split:
            self._is_drained = True
            return None
        while True:
            if self._skipping is not None:
                report = self._skip(self._skipping)
                if report is not None or self._skipping is not None:
                    return report
            end = self._buffer.find(b"\n", self._scanned)
            if end < 0:
                return self._unfinished()
            content = end - 1 if end > self._start and self._buffer[end - 1] == 0x0D else end
            if content - self._start > self._max:
                return self._begin_skipping()
            line = bytes(self._buffer[self._start : content])
            self._start = self._scanned = end + 1
            if line.strip(b"\r"):
                return line
            # A flood of line feeds must not hold the caller up, so a run of blank lines is one step.
            if blank := self._blank_lines.match(self._buffer, self._start):
                self._start = self._scanned = blank.end()

    def end(self) -> bytes | None:
        """The stream has ended: what stands there without a line end, or None.

        Whole lines that were not taken yet can still be taken. A line that is being thrown away was reported and is
        not given again.
        """
        cut = max(self._start, self._buffer.rfind(b"\n") + 1)
        rest = bytes(self._buffer[cut:])
        del self._buffer[cut:]
        self._scanned = min(self._scanned, cut)
        if self._skipping is not None and cut == self._start:
            return None
        return rest.rstrip(b"\r") or None

    def _unfinished(self) -> LineTooLong | None:
        """No line feed in sight: report the line if no line end can save it, else wait for more."""
        del self._buffer[: self._start]
        self._start = 0
        self._scanned = length = len(self._buffer)
        # One byte over may yet turn out to be the CR of the line end.
        if length > self._max and not (length == self._max + 1 and self._buffer[-1] == 0x0D):
            return self._begin_skipping()
        self._is_split = self._is_drained = True
        return None

    def _begin_skipping(self) -> LineTooLong:
        head = bytes(self._buffer[self._start : self._start + min(HEAD, self._max + 1)])
        self._skipping = _Skipped(head)
        return LineTooLong(self._max + 1, head, stop=False)

    def _skip(self, line: _Skipped) -> LineTooLong | None:
        """Throw away what is there of the line, and report it if it passes the second bound with that."""
        end = self._buffer.find(b"\n", self._start)
        stop = len(self._buffer) if end < 0 else end
        before, line.length = line.length, line.length + stop - self._start
        if end < 0:
            self._buffer.clear()
            self._start = self._scanned = 0
        else:
            self._start = self._scanned = end + 1
            self._skipping = None
        if before <= self._stop < line.length:
            return LineTooLong(self._stop + 1, line.head, stop=True)
        return None


@attrs.define
class _Skipped:
    """The line that is being thrown away."""

    head: bytes
    length: int = 0
