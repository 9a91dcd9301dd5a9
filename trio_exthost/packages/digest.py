"""The digest that trust is bound to: SHA-256 over everything in an extension's directory that can run.

Covered are relative path, execute bit and content of each file. Left out are `__pycache__`, `.git` and `.DS_Store`,
which change without anybody changing the extension. (A `.pyc` elsewhere is imported like a source file, so it is
covered; `node_modules` holds code that runs, so it is covered.) An extension that writes into its own directory changes
its digest.

A link is covered by its target's text. What it points to is covered as well where nothing else covers it, that is
outside the directory or in what is left out: otherwise a trusted link would let in whatever comes to stand behind it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import attrs

from trio_exthost.errors import TrustError
from trio_exthost.packages.files import chunks, printable, reason_of

_LEFT_OUT_DIRECTORIES = frozenset({"__pycache__", ".git"})
_LEFT_OUT_FILES = frozenset({".DS_Store"})


@attrs.frozen
class _Entry:
    """One thing to cover: under which name, where it is, and what it is."""

    name: str
    path: str
    kind: bytes


def package_digest(directory: Path, *, max_files: int = 200_000, max_bytes: int = 4 * 1024**3) -> str:
    """SHA-256 of an extension's directory, 64 lowercase hex digits. Reads every file: call it in a worker thread.

    Args:
      directory: Links above and to it are followed.
      max_files: More files, links and directories than this are refused.
      max_bytes: More content than this is refused.

    Raises:
      TrustError: Something in it cannot be read, or it is too large; code `digest_failed`.
    """
    walk = _Walk(os.path.realpath(directory), max_files)
    total = hashlib.sha256()
    left = max_bytes
    try:
        for entry in sorted(walk.entries(), key=lambda entry: os.fsencode(entry.name)):
            content = b""
            if entry.kind in (b"x", b"-"):
                left, content = _content(entry.path, left)
            elif entry.kind == b"l":
                content = os.fsencode(os.readlink(entry.path))  # noqa: PTH115 - Path would normalise the text
            name = os.fsencode(entry.name)
            total.update(b"%c%d:%b%d:%b" % (entry.kind, len(name), name, len(content), content))
    except OSError as exc:
        where = printable(exc.filename) if exc.filename else printable(directory)
        raise _refusal(f"{where} cannot be read: {reason_of(exc)}") from exc
    return total.hexdigest()


def _content(path: str, left: int) -> tuple[int, bytes]:
    """The digest of one file, and how many bytes may still follow."""
    digest = hashlib.sha256()
    for piece in chunks(path):
        left -= len(piece)
        if left < 0:
            raise _refusal("there is too much in it")
        digest.update(piece)
    return left, digest.digest()


def _refusal(why: str) -> TrustError:
    return TrustError(
        f"the extension cannot be bound to a digest: {why}",
        code="digest_failed",
        hint="only what can be read completely can be trusted",
    )


class _Walk:
    """Everything below a directory, each directory once however many links lead to it."""

    def __init__(self, root: str, max_files: int) -> None:
        self._root = root
        self._left = max_files
        self._seen: set[tuple[int, int]] = set()

    def entries(self) -> Iterator[_Entry]:
        """What is to be covered, in no order."""
        waiting = [("", self._root)]
        while waiting:
            prefix, folder = waiting.pop()
            if not self._first_time(folder):
                continue
            with os.scandir(folder) as children:
                # Sorted, so that which of two ways into a linked directory comes first depends on names alone.
                found = sorted(children, key=lambda child: os.fsencode(child.name))
            for child in found:
                self._count()
                name, link = prefix + child.name, child.is_symlink()
                if link:
                    yield _Entry(name, child.path, b"l")
                    if self._covered_elsewhere(child.path):
                        continue
                    # What stands behind a link cannot have the name of a real file: no file name holds "//".
                    name += "//"
                mode = _mode(child)
                folder_here = mode is not None and stat.S_ISDIR(mode)
                if not link and child.name in (_LEFT_OUT_DIRECTORIES if folder_here else _LEFT_OUT_FILES):
                    continue
                if folder_here:
                    waiting.append((name if link else name + "/", child.path))
                elif mode is not None:
                    yield _Entry(name, child.path, _kind(mode))

    def _first_time(self, folder: str) -> bool:
        found = os.stat(folder)  # noqa: PTH116 - as scandir gives it
        identity = (found.st_dev, found.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _refusal("there are too many files in it")

    def _covered_elsewhere(self, link: str) -> bool:
        """Whether the target is one of the files and directories that are covered under their own names."""
        target = os.path.realpath(link)
        if target == self._root:
            return True
        if not Path(target).is_relative_to(self._root):
            return False
        parts = Path(target).relative_to(self._root).parts
        return parts[-1] not in _LEFT_OUT_FILES and not _LEFT_OUT_DIRECTORIES.intersection(parts)


def _mode(child: os.DirEntry[str]) -> int | None:
    """The mode of what this is, links followed; None where a link leads nowhere."""
    try:
        return child.stat().st_mode
    except OSError as exc:
        if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def _kind(mode: int) -> bytes:
    """Executable, plain, or something that is no file and never opened."""
    if not stat.S_ISREG(mode):
        return b"?"
    return b"x" if mode & 0o111 else b"-"
