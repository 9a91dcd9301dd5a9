"""`exthost logs NAME`: what an extension wrote to its stderr, and what the host noted beside it."""

from __future__ import annotations

import codecs
import difflib
import os
import re
import select
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.streams import ReaderGone
from trio_exthost.cli.text import Output, printable
from trio_exthost.config import default_data_dir
from trio_exthost.runtime.rotation import rotated

PAUSE_S = 0.2
"""Between two looks at a log that is followed."""
_CHUNK = 256 * 1024
_FileId = tuple[int, int]
"""Device and number of a file: what it is, whatever it is called by now."""
_FILE = re.compile(r"(.+)\.log(?:\.([1-9][0-9]*))?", re.DOTALL)


class LogFiles:
    """The log of one extension and its rotated older files, read as one stream: each byte once, also where they are renamed.

    Several hosts may write to it, and one that has not noticed a rotation goes on with the old file: all are looked at.
    """

    def __init__(self, directory: Path, name: str) -> None:
        """Open nothing yet.

        Args:
          directory: Where the logs are.
          name: The extension's name.
        """
        self._directory = directory
        self._name = name
        self._open: dict[_FileId, int] = {}
        self._known: list[_FileId] = []

    def added(self) -> Iterator[bytes]:
        """What has been added since the last time, oldest first; the first time, all there is.

        An empty piece stands where something may never have been read: all files that were known are gone.

        Raises:
          OSError: A file cannot be read.
        """
        before, self._known = self._known, self._look()
        gone = [each for each in before if each not in self._known]
        for each in gone:
            yield from self._rest(each)
            os.close(self._open.pop(each))
        if gone == before and gone and self._known:
            yield b""
        for each in self._known:
            yield from self._rest(each)

    def _rest(self, file: _FileId) -> Iterator[bytes]:
        fd = self._open[file]
        if os.fstat(fd).st_size < os.lseek(fd, 0, os.SEEK_CUR):
            os.lseek(fd, 0, os.SEEK_SET)  # it was emptied
        while data := os.read(fd, _CHUNK):
            yield data

    def _look(self) -> list[_FileId]:
        """The files as they are now, oldest first, opened.

        The current one is opened first, and one number more than there seem to be: what is renamed in between is met twice
        then, and never missed.
        """
        found: dict[_FileId, None] = {}
        self._open_file(self._directory / f"{self._name}.log", found)
        numbers = logs_in(self._directory).get(self._name, ())
        for number in range(1, max(numbers, default=0) + 2):
            self._open_file(rotated(self._directory / f"{self._name}.log", number), found)
        return list(reversed(found))

    def _open_file(self, path: Path, found: dict[_FileId, None]) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        about = os.fstat(fd)
        file = (about.st_dev, about.st_ino)
        is_log = stat.S_ISREG(about.st_mode)
        if is_log:
            found[file] = None
        if is_log and file not in self._open:
            self._open[file] = fd
        else:
            os.close(fd)

    def close(self) -> None:
        """Close all; what is added later is never read."""
        while self._open:
            os.close(self._open.popitem()[1])


class Escaped:
    """Bytes to text that can be shown: control characters and what is no UTF-8 as escapes, wherever pieces are cut."""

    def __init__(self) -> None:
        """Nothing is held back."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = ""

    def __call__(self, data: bytes, *, is_last: bool = False) -> str:
        """The text of this piece. A character that is cut, or half a Windows line end, comes with the next one."""
        text = self._held + self._decoder.decode(data, is_last)
        self._held = "\r" if text.endswith("\r") and not is_last else ""
        whole = text.removesuffix(self._held).replace("\r\n", "\n")
        return "\n".join(map(_shown, whole.split("\n")))


def _shown(line: str) -> str:
    return line if line.isprintable() else "\t".join(map(printable, line.split("\t")))


def logs_in(directory: Path) -> dict[str, Sequence[int]]:
    """The names of which there is a log, sorted, each with the numbers of its files; 0 is the current one.

    Raises:
      OSError: The directory cannot be read; one that is missing has none.
    """
    found: dict[str, list[int]] = {}
    try:
        files = sorted(os.listdir(directory))  # noqa: PTH208 - names are all that is wanted
    except FileNotFoundError:
        return {}
    for match in filter(None, map(_FILE.fullmatch, files)):
        found.setdefault(match[1], []).append(int(match[2] or 0))
    return dict(sorted(found.items()))


EPILOG = """
Examples:
  exthost logs guard
  exthost logs guard -f

Lines that begin with [exthost] are the host's own. Control characters and
bytes that are no text are shown as escapes (\\x1b), so that no program can
play tricks on your terminal; --raw prints what is in the files.

Logs are in the directory logs of $EXTHOST_HOME, or where your system keeps
such files; an agent may have set another one.

Exit status: 0 printed, 1 there is no such log, 2 wrong call, 130 Ctrl-C.
"""


@click.command(
    "logs", cls=Command, short_help=COMMANDS["logs"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl-C.")
@click.option("--raw", is_flag=True, help="Bytes as they are, control characters included.")
def logs_command(name: str, follow: bool, raw: bool) -> None:
    """Print the log of the extension NAME, the rotated older files first."""
    directory = default_data_dir().absolute() / "logs"
    names = logs_in(directory)
    if name not in names:
        _unknown(name, directory, tuple(names))
    files = LogFiles(directory, name)
    try:
        _print_raw(files, follow=follow) if raw else _print_escaped(files, follow=follow)
    finally:
        files.close()


def _print_escaped(files: LogFiles, *, follow: bool) -> None:
    escaped, last = Escaped(), "\n"
    for data in _pieces(files, follow=follow):
        if text := escaped(data):
            sys.stdout.write(text)
            last = text[-1]
    if rest := escaped(b"", is_last=True):
        sys.stdout.write(rest)
        last = rest[-1]
    if last != "\n":
        sys.stdout.write("\n")


def _print_raw(files: LogFiles, *, follow: bool) -> None:
    try:
        for data in _pieces(files, follow=follow):
            sys.stdout.buffer.write(data)
    except BrokenPipeError as exc:
        raise ReaderGone from exc


def _pieces(files: LogFiles, *, follow: bool) -> Iterator[bytes]:
    """What is there, and where it is followed, what is added; all before a pause has been written."""
    is_first = True
    while is_first or follow:
        if not is_first:
            sys.stdout.flush()
            _pause()
        is_first = False
        for data in files.added():
            if data:
                yield data
            else:
                _tell_gap()


def _tell_gap() -> None:
    sys.stdout.flush()
    lost = "the log was removed, or rotated faster than it was read: lines may be missing here"
    Output(stderr=True).line(lost, first="warning: ", style="yellow")


def _pause() -> None:
    """Wait for a moment; the end of a pipe's reader is noticed in it, though nothing is written."""
    number = sys.stdout.fileno()
    mode = os.fstat(number).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        time.sleep(PAUSE_S)
        return
    poll = select.poll()
    poll.register(number, 0)
    if poll.poll(PAUSE_S * 1000):
        raise ReaderGone


def _unknown(name: str, directory: Path, names: Sequence[str]) -> NoReturn:
    if not names:
        raise click.ClickException(f"there is no log of {name!r}, nor of anything else, in {directory}")
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise click.ClickException(
        f"there is no log of {name!r}{meant}\nlogs there are: {', '.join(names)}\nin {directory}"
    )
