"""One SQLite file of ours: made whole or not at all, checked when it is opened, never replaced when it is damaged."""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from trio_exthost.errors import StoreDamaged, StoreFailed
from trio_exthost.packages.files import printable, reason_of

_BUSY_S = 5.0
_JOURNALS = ("-wal", "-shm", "-journal")
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_WHY = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room; what was stored before is as it was"),
    sqlite3.SQLITE_READONLY: ("it is read-only", "give this user the right to write it and its directory"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "give this user the right to write it and its directory"),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "close the program that has it open"),
    sqlite3.SQLITE_IOERR: ("the disk refused", "see that the disk is well and has room"),
}


class Damage(Exception):
    """The file is not what was written; the message says in what respect."""


@attrs.frozen(kw_only=True)
class Layout:
    """What a kind of file holds."""

    application_id: int
    """Stands in the file's header."""
    steps: tuple[str, ...]
    """SQL that leads from each version of the tables to the next; the first makes version 1 of nothing."""
    wal: bool
    """Journal: a write-ahead log, else one that is rolled back."""

    @property
    def version(self) -> int:
        """Of the tables, as this program knows them."""
        return len(self.steps)


def sum_holds(found: object, text: object, *context: object) -> bool:
    """Whether a stored sum is that of a stored text; what was altered may be of any type, or null."""
    return isinstance(text, bytes) and found == check_sum(text, *context)


def check_sum(text: bytes, *context: object) -> int:
    """A sum over a text and what it belongs to. SQLite itself does not notice a byte that was altered in a text."""
    return zlib.crc32(text, zlib.crc32(repr(context).encode("utf-8", "surrogatepass")))


@contextlib.contextmanager
def failures(path: Path, doing: str) -> Iterator[None]:
    """Turn what SQLite and the system say into our errors.

    Raises:
      Damage: The file is damaged.
      StoreFailed: Anything else that is not a mistake of ours; says what was being done, to which file, and why not.
    """
    try:
        yield
    except sqlite3.DatabaseError as exc:
        code = getattr(exc, "sqlite_errorcode", None)
        if code is None and isinstance(exc, sqlite3.OperationalError):
            raise Damage(str(exc)) from exc  # a text that is no UTF-8: no failure of SQLite's, so it has no number
        if code is None:
            raise
        altered_tables = code == sqlite3.SQLITE_ERROR and str(exc).startswith(("no such ", "table ", "malformed "))
        if altered_tables or code & 0xFF in _DAMAGE:
            raise Damage(str(exc)) from exc
        why, hint = _WHY.get(code & 0xFF, ("SQLite refused", ""))
        name = exc.sqlite_errorname
        raise StoreFailed(f"{doing}: {why} ({exc}, {name})", path=printable(path), hint=hint) from exc
    except UnicodeDecodeError as exc:
        raise Damage(f"it holds a text that is no UTF-8: {exc.reason}") from exc
    except OSError as exc:
        hint = "give this user the right to write the directory, and see that its disk has room"
        raise StoreFailed(f"{doing}: {reason_of(exc)}", path=printable(path), hint=hint) from exc


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to a file that is there. Transactions are begun and ended by whoever uses it."""
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"file:{urllib.parse.quote(os.fsencode(path))}?mode={mode}", uri=True,
        timeout=_BUSY_S, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    try:
        # `fullfsync` is for macOS, whose fsync does not reach the disk.
        for setting in ("synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1", "temp_store=MEMORY",
                        "cell_size_check=ON", "journal_size_limit=16777216"):  # fmt: skip
            connection.execute(f"PRAGMA {setting}")
    except BaseException:  # a damaged file: the error may be kept for long, and would keep it open
        connection.close()
        raise
    return connection


def create(path: Path, layout: Layout, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make the file with its tables: under another name first, so that what has this name is never half made.

    Whoever calls it holds the lease of the file.

    Args:
      path: Where; nothing is there.
      layout: What it holds.
      fill: Puts the first rows in.
    """
    new = path.with_name(path.name + ".new")
    for each in _family(new):
        each.unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with contextlib.closing(connect(new)) as connection:
        connection.execute(f"PRAGMA application_id={layout.application_id}")
        connection.execute(f"PRAGMA journal_mode={'WAL' if layout.wal else 'TRUNCATE'}")
        _take_steps(connection, layout, 0)
        fill(connection)
    for each in _family(new)[1:]:
        each.unlink(missing_ok=True)
    new.rename(path)
    _sync_directory(path.parent)


def check(connection: sqlite3.Connection, path: Path, layout: Layout, *, read_only: bool = False) -> None:
    """See that an opened file is one of ours, and bring its tables to the newest version.

    Raises:
      Damage: It is not, or parts of it are missing.
      StoreFailed: It is of a newer version of this program; or of an older one, and is only to be looked at.
    """
    if path.stat().st_size == 0:
        raise Damage("it is empty")
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    if found != layout.application_id:
        raise Damage("it is no file of this kind")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > layout.version:
        raise StoreFailed(
            f"it was written by a newer version of this program (tables of version {version}; this one knows "
            f"{layout.version})", path=printable(path), hint="use the newer version; the file was left as it is",
        )  # fmt: skip
    if version < 1:
        raise Damage("it has no tables")
    if version < layout.version and read_only:
        raise StoreFailed(
            f"it was written by an older version of this program (tables of version {version}; this one knows "
            f"{layout.version})", path=printable(path), hint="a host that opens it brings it up to date",
        )  # fmt: skip
    if version < layout.version:
        _take_steps(connection, layout, version)


def check_size(connection: sqlite3.Connection, path: Path) -> None:
    """See that a file without a write-ahead log is as long as it says.

    Raises:
      Damage: It is shorter.
    """
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if path.stat().st_size < pages * page_bytes:
        raise Damage(f"it is cut off: {path.stat().st_size} bytes of {pages * page_bytes}")


def check_pages(connection: sqlite3.Connection) -> None:
    """Read all of a file, and see that its pages fit together.

    Raises:
      Damage: They do not.
    """
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise Damage(str(found))


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; begun as a writer, so that what is read in it is still so when it is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # whatever it is, nothing of it may count
        # After some failures SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def make_directory(directory: Path) -> None:
    """Make a directory and those above it, each for this user alone and on the disk; one that is there stays as it is."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(PermissionError):  # one may be allowed to write in there, and not to read
            _sync_directory(directory.parent)


def kept_aside(path: Path) -> tuple[Path, ...]:
    """The damaged files that once had this name, oldest first; of one that was gone itself, its journal."""
    found: dict[str, Path] = {}
    for each in sorted(path.parent.glob(f"{path.stem}.damaged-*{path.suffix}*"), key=lambda each: len(each.name)):
        found.setdefault(each.name.rpartition(path.suffix)[0], each)
    return tuple(found[name] for name in sorted(found, key=lambda name: (len(name), name)))


def set_aside(path: Path, reason: str) -> StoreDamaged:
    """Give a damaged file, or what is left of it, another name, with its journal. The error that says so.

    Whoever calls it holds the lease of the file; who has it open still has it, under its new name.
    """
    number = 1
    while any(each.exists() for each in _family(_aside(path, number))):
        number += 1
    kept = _aside(path, number)
    try:
        # The file first: a crash in between must not leave it without its journal under its own name.
        for old, new in zip(_family(path), _family(kept), strict=True):
            if old.exists():
                old.rename(new)
        _sync_directory(path.parent)
    except OSError as exc:
        return StoreDamaged(
            f"the file is damaged ({reason}) and cannot be moved aside: {reason_of(exc)}",
            path=printable(path), kept=printable(path), hint="it was left as it is; move it away, or restore a copy of it",
        )  # fmt: skip
    return was_damaged(path, kept, reason)


def left_damaged(path: Path, reason: str) -> StoreDamaged:
    """The error about a damaged file that was only looked at."""
    return StoreDamaged(
        f"the file is damaged ({reason})", path=printable(path), kept=printable(path),
        hint=f"it was left as it is; restore a copy, or try `{recovery(path)}`",
    )  # fmt: skip


def recovery(path: Path) -> str:
    """The command that saves what can be read of a damaged file."""
    return f"sqlite3 {shlex.quote(printable(path))} .recover"


def was_damaged(path: Path, kept: Path, reason: str = "found earlier") -> StoreDamaged:
    """The error about a damaged file that is kept aside."""
    return StoreDamaged(
        f"the file was damaged ({reason}) and is kept as {printable(kept)}; nothing was put in its place",
        path=printable(path), kept=printable(kept),
        hint=f"restore a copy, or try `{recovery(kept)}`; to begin with nothing, remove or rename the kept file, or open "
        "with begin_anew",
    )  # fmt: skip


def leftovers(path: Path) -> bool:
    """Whether a journal lies there without its file."""
    return any(each.exists() for each in _family(path)[1:])


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")


def _family(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + suffix) for suffix in _JOURNALS)]


def _take_steps(connection: sqlite3.Connection, layout: Layout, version: int) -> None:
    with transaction(connection):
        for step in layout.steps[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={layout.version}")


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
