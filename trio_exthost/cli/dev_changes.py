"""Which changed files of an extension's folder mean that the extension is another now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

CACHES = frozenset({"__pycache__", "node_modules", "venv"})
"""Folders of files that tools make; those whose name begins with a dot (`.git`, `.venv`, `.idea`) are passed over anyway."""
TEMPORARY = ("*~", "#*#", "*.tmp", "*.swp", "*.swx", "*.pyc", "*.pyo", "*.log", "4913", "*___jb_*___", "flycheck_*")
"""What editors and compilers put beside a file for a moment: Emacs, Vim (4913), Kate, JetBrains, Flycheck, CPython."""


class Relevance:
    """Whether a changed path matters."""

    def __init__(self, directory: Path, *, own: Iterable[Path] = (), patterns: Collection[str] = ()) -> None:
        """Judge paths in this folder.

        Args:
          directory: The extension's folder, links resolved; what is outside never matters.
          own: Folders that the host itself writes to, wherever they are.
          patterns: As `exthost.watch_ignore` of a manifest has them: a pattern with a slash is about the path below the
            folder, one without about any part of it; what is below an ignored folder is ignored, too.
        """
        self._directory = directory
        self._own = tuple(own)
        self._patterns = tuple(each.strip("/") for each in patterns)

    def __call__(self, path: str | Path) -> bool:
        """Whether a change of this path matters."""
        path = Path(path)
        if not path.is_relative_to(self._directory) or any(path.is_relative_to(each) for each in self._own):
            return False
        inside = PurePosixPath(path.relative_to(self._directory))
        return not (
            any(part.startswith(".") or part in CACHES for part in inside.parts)
            or any(fnmatchcase(inside.name, pattern) for pattern in TEMPORARY)
            or any(self._is_ignored(inside, pattern) for pattern in self._patterns)
        )

    @staticmethod
    def _is_ignored(inside: PurePosixPath, pattern: str) -> bool:
        if "/" not in pattern:
            return any(fnmatchcase(part, pattern) for part in inside.parts)
        return any(fnmatchcase(str(each), pattern) for each in (inside, *inside.parents))
