"""The default store: a directory with one SQLite file for each session and each extension, readable by its user alone.

Files are named after sessions and extensions as far as a file system can tell names apart; the true name is inside.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path

from trio_exthost.errors import StoreFailed
from trio_exthost.packages.files import printable
from trio_exthost.state.sqlite_extension import LAYOUT as EXTENSION_LAYOUT
from trio_exthost.state.sqlite_extension import SqliteExtensionStore
from trio_exthost.state.sqlite_file import Damage, Layout, check, connect, failures, make_directory
from trio_exthost.state.sqlite_rows import LAYOUT as SESSION_LAYOUT
from trio_exthost.state.sqlite_session import SqliteSessionStore
from trio_exthost.state.store import StoredName

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")


class SqliteStores:
    """A `StateStores` in a directory. Hosts and processes may share it. Its methods block."""

    def __init__(self, directory: Path) -> None:
        """Name the directory; it is made when something is stored.

        Args:
          directory: Absolute. Nothing else should be in it.

        Raises:
          StoreFailed: It is relative, so that it would be another one in each project.
        """
        if not directory.is_absolute():
            raise StoreFailed("the directory of states must be an absolute path", path=printable(directory))
        self.directory = directory

    def open_session(self, session_id: str, *, begin_anew: bool = False) -> SqliteSessionStore:
        """As `StateStores.open_session`."""
        path = self._path("sessions", session_id)
        with failures(path.parent, "cannot be made"):
            make_directory(path.parent)
        return SqliteSessionStore(path, session_id, begin_anew=begin_anew)

    def look_into_session(self, session_id: str) -> SqliteSessionStore:
        """A session's store to read only, also while a host has it open; it shows what was stored when it is asked.

        Raises:
          StoreFailed: There is none, or it cannot be read; what is damaged is left where it is.
        """
        path = self._path("sessions", session_id)
        with failures(path, "cannot be opened"):
            there = path.exists()
        if not there:
            raise StoreFailed(f"session {session_id!r} has no state", path=printable(path))
        return SqliteSessionStore(path, session_id, read_only=True)

    def open_extension(self, extension: str, *, begin_anew: bool = False) -> SqliteExtensionStore:
        """As `StateStores.open_extension`."""
        path = self._path("extensions", extension)
        return SqliteExtensionStore(path, extension, begin_anew=begin_anew)

    def sessions(self) -> tuple[StoredName, ...]:
        """As `StateStores.sessions`; damaged files that are kept aside are among them."""
        return _names(self.directory / "sessions", SESSION_LAYOUT, "session")

    def extensions(self) -> tuple[StoredName, ...]:
        """As `StateStores.extensions`; damaged files that are kept aside are among them."""
        return _names(self.directory / "extensions", EXTENSION_LAYOUT, "extension")

    def _path(self, folder: str, name: str) -> Path:
        return self.directory / folder / f"{file_stem(name)}.db"


def file_stem(name: str) -> str:
    """A file name for any text: the text itself if it is plain, else what is plain of it and a digest.

    Two texts never share one, not even where the file system takes upper and lower case for the same.
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_-]", "_", name.lower())[:60]
    # A dot is in no plain name, so nothing plain can look like this.
    return f"{plain}.{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _names(folder: Path, layout: Layout, column: str) -> tuple[StoredName, ...]:
    found = []
    for path in _databases(folder):
        size = _size(path) + _size(path.with_name(path.name + "-wal"))
        name, problem = path.stem, ""
        if ".damaged-" in path.name:
            problem = "damaged, and kept aside"
        else:
            try:
                name = _name_in(path, layout, column)
            except StoreFailed as exc:
                problem = _in_words(exc)
            except Damage as exc:
                problem = f"damaged: {exc}"
        found.append(StoredName(name=name, path=printable(path), size_bytes=size, problem=problem))
    return tuple(sorted(found, key=lambda each: each.name))


def _in_words(error: StoreFailed) -> str:
    """What is wrong and the way out; the path stands beside it."""
    words = error.message.removeprefix(f"{error.path}: ")
    return f"{words}; {error.hint}" if error.hint else words


def _databases(folder: Path) -> list[Path]:
    with failures(folder, "cannot be listed"):
        try:
            return sorted(each for each in folder.iterdir() if each.suffix == ".db")
        except FileNotFoundError:  # nothing has been stored yet
            return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # its host has just closed it, or moved it aside
        return 0


def _name_in(path: Path, layout: Layout, column: str) -> str:
    with failures(path, "cannot be read"), contextlib.closing(connect(path, read_only=True)) as connection:
        check(connection, path, layout, read_only=True)
        row = connection.execute(f"SELECT {column} FROM head").fetchone()  # noqa: S608 - a word of ours
        if row is None:
            raise Damage("its head is missing")
        return str(row[0])
