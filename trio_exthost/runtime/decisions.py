"""Decisions that are kept: the newest in memory, and a log of them in lines of JSON."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import attrs

from trio_exthost.policy.decision import LINE_BYTES, Decision, DecisionError, kept_id
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.rotation import RotatingFile, rotated

if TYPE_CHECKING:
    from trio_exthost.policy import Verdict

PROBLEMS = 100
"""Lines that cannot be read of which the error is kept; all are counted."""


class Decisions:
    """The newest decisions of a host, all sessions together. Not for use from other threads."""

    def __init__(self, keep: int) -> None:
        """Keep at most `keep` of them."""
        self._recent: deque[Decision] = deque(maxlen=keep)

    def add(self, decision: Decision) -> None:
        """Keep it; the oldest goes where there are too many."""
        self._recent.append(decision)

    def of_tool(self, tool_id: str, *, session_id: str | None = None) -> tuple[Decision, ...]:
        """Those about the tool call of this id, newest first; ids may repeat in other sessions, so one can be named."""
        wanted = kept_id(tool_id)
        return tuple(
            each
            for each in reversed(self._recent)
            if each.tool_id == wanted and (session_id is None or each.session_id == kept_id(session_id))
        )

    def __iter__(self) -> Iterator[Decision]:
        """The kept ones, oldest first, as they were when iteration began."""
        return iter(tuple(self._recent))

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._recent)


class DecisionLog:
    """A log of decisions, one line of JSON each. What cannot be written is told once and never raised."""

    def __init__(self, path: Path, *, max_bytes: int, files: int, on_failure: Callable[[str], None]) -> None:
        """Open nothing yet: the file is made with the first decision.

        Args:
          path: The current file; older ones are `<path>.1`, `<path>.2`, ...
          max_bytes: Its size before it is rotated.
          files: Files kept, the current one included.
          on_failure: Told once when it cannot be written.
        """
        self._file = RotatingFile(path, max_bytes=max_bytes, files=files)
        self._on_failure = on_failure
        self.lost: int = 0
        """Decisions that could not be written."""

    @property
    def path(self) -> Path:
        """The current file."""
        return self._file.path

    def append(self, decision: Decision) -> None:
        """Write it, with one write."""
        try:
            self._file.append(decision.to_line())
        except OSError as exc:
            self.lost += 1
            if self.lost == 1:
                self._on_failure(f"{self.path} cannot be written: {exc.strerror or exc}")

    def close(self) -> None:
        """Close the file. A later decision opens it again."""
        try:
            self._file.close()
        except OSError as exc:
            self._on_failure(f"{self.path} cannot be closed: {exc.strerror or exc}")


class DecisionRecorder(HostInstrument):
    """Makes a decision of every verdict, once, and gives it to memory and log."""

    def __init__(
        self,
        decisions: Decisions,
        *,
        log: DecisionLog | None = None,
        mask: Sequence[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Record from now on.

        Args:
          decisions: Where they are kept.
          log: Where they are written, if anywhere.
          mask: Regular expressions of secrets (`HostConfig.mask`).
          clock: Seconds since the epoch.
        """
        self.decisions = decisions
        self.log = log
        self._mask = mask
        self._clock = clock

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:
        """Record this verdict."""
        decision = Decision.of(verdict, time=self._clock(), session_id=session_id, seconds=seconds, mask=self._mask)
        self.decisions.add(decision)
        if self.log is not None:
            self.log.append(decision)


# --- reading a log -------------------------------------------------------------------------------------------------


@attrs.frozen
class DecisionReading:
    """What stands in a log."""

    decisions: tuple[Decision, ...]
    """All that can be read, oldest first."""
    problems: tuple[DecisionError, ...] = ()
    """The first `PROBLEMS` lines that cannot be read, each with file and line."""
    unreadable: int = 0
    """How many lines cannot be read."""
    is_cut: bool = False
    """Whether the last line was cut off in writing; it is no problem, and not among the decisions."""


def read_decisions(path: Path) -> DecisionReading:
    """Read a log and its rotated files (`<path>.1`, ...), the oldest first.

    Raises:
      OSError: A file cannot be read, or `path` is not there.
    """
    decisions: list[Decision] = []
    problems: list[DecisionError] = []
    unreadable, is_cut = 0, False
    for each in _files(path):
        with each.open("rb") as stream:
            for number, data in enumerate(_lines(stream), 1):
                try:
                    decisions.append(Decision.from_line(data, path=str(each), line=number))
                except DecisionError as exc:
                    is_cut = each == path and len(data) <= LINE_BYTES and not data.endswith(b"\n")
                    unreadable += not is_cut
                    if not is_cut and len(problems) < PROBLEMS:
                        problems.append(exc)
    return DecisionReading(tuple(decisions), tuple(problems), unreadable, is_cut)


def _files(path: Path) -> list[Path]:
    older: list[Path] = []
    while (each := rotated(path, len(older) + 1)).is_file():
        older.append(each)
    return [*reversed(older), path]


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines with their line feed, nothing else counting as a line's end; of long ones the beginning."""
    while data := stream.readline(LINE_BYTES + 1):
        rest = data
        while len(rest) > LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(LINE_BYTES + 1)
        yield data
