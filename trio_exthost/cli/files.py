"""The files of an extension, as a person is shown them before they decide."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

LIMIT = 1000
"""Files that are listed; beyond, they are only counted."""
_NOT_COVERED = frozenset({"__pycache__", ".git", ".DS_Store"})
"""What the digest leaves out, so that it does not count as content."""


@attrs.frozen
class Files:
    """What is in a directory."""

    names: tuple[str, ...]
    """Relative, sorted; a link with what it points to; at most `LIMIT`."""
    count: int
    """How many there are."""


def files_of(directory: Path) -> Files:
    """List a directory's files and links, all levels; links are shown, not followed.

    Raises:
      OSError: A directory in it cannot be read.
    """
    found: list[str] = []

    def refuse(exc: OSError) -> None:
        raise exc

    for folder, subfolders, names in os.walk(directory, onerror=refuse):
        links = [name for name in subfolders if Path(folder, name).is_symlink()]
        subfolders[:] = [name for name in subfolders if name not in _NOT_COVERED and name not in links]
        for name in [*names, *links]:
            path = Path(folder, name)
            if path.is_symlink():
                found.append(f"{path.relative_to(directory)} -> {os.fsdecode(os.readlink(path))}")  # noqa: PTH115 - as it stands
            elif name not in _NOT_COVERED:
                found.append(str(path.relative_to(directory)))
    found.sort()
    return Files(tuple(found[:LIMIT]), len(found))
