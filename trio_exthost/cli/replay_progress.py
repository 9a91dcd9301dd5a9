"""How far the reading of a file is: a bar on stderr, where that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from trio_exthost.cli.text import printable, short

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

CHUNK = 64 * 1024
"""Bytes that are read at once."""
_EVERY_S = 0.1
_NAME = 30


class ProgressBar:
    """Drawn when bytes have been read, at most ten times a second; by nobody else, so that no thread is needed."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        """Draw with this; nothing if it is None."""
        self._progress = progress
        self._task = task
        self._drawn = 0.0

    def advance(self, count: int) -> None:
        """So many bytes more."""
        if self._progress is None or self._task is None:
            return
        self._progress.advance(self._task, count)
        now = time.monotonic()
        if now - self._drawn >= _EVERY_S:
            self._drawn = now
            self._progress.refresh()


@contextmanager
def progress_bar(name: str, total: int | None) -> Iterator[ProgressBar]:
    """A bar for a file of this size in bytes, None where nobody knows it; gone from the screen in the end."""
    if not sys.stderr.isatty():
        yield ProgressBar(None, None)
        return
    from rich.console import Console  # noqa: PLC0415 - 50 ms that are needed on a terminal only
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    with Progress(
        *columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        yield ProgressBar(progress, progress.add_task(short(printable(name), _NAME), total=total))


def read_chunks(stream: BinaryIO, bar: ProgressBar) -> Iterator[bytes]:
    """The rest of a file, piece by piece, each told to the bar."""
    while data := stream.read(CHUNK):
        bar.advance(len(data))
        yield data
