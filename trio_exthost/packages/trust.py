"""Which project-local extensions the user has said yes or no to.

One JSON file in the user's own data directory, never in a project: what a repository says about itself counts for
nothing. A decision is bound to the real path of an extension's directory and to the digest of its content, so a moved,
replaced or changed extension is asked about again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from trio_exthost.errors import TrustError
from trio_exthost.packages.files import printable, read_regular, reason_of
from trio_exthost.packages.json_text import JsonTextError, parse_json

_VERSION = 1
_LIMIT_BYTES = 16 * 1024 * 1024
_KEPT_PER_PATH = 16
_KEPT = 4096
_RETRY_S = 0.01
_WORDS = {"trusted": True, "denied": False}


@attrs.frozen(kw_only=True)
class TrustDecision:
    """One answer of the user."""

    path: str
    """Real path of the extension's directory."""
    digest: str
    """Its `package_digest` when the user answered."""
    trusted: bool
    """Yes or no."""
    name: str = ""
    """The extension's name then; shown only."""
    decided_at: str = ""
    """RFC 3339, UTC; shown only."""


class TrustStore:
    """The file of decisions. Each look-up reads it, so that one process sees at once what another one decided.

    Its methods read and write files; writing waits for other processes that write. In a trio program call them in a
    worker thread. Threads and processes may share a file: no decision is lost.
    """

    def __init__(self, path: Path, *, lock_timeout_s: float = 5.0) -> None:
        """Name the file; it is not touched before it is needed, and need not exist.

        Args:
          path: Absolute. A link is followed.
          lock_timeout_s: How long writing waits for others, in seconds.

        Raises:
          TrustError: `path` is relative, so that it would be looked for in whatever project the agent runs in.
        """
        if not path.is_absolute():
            raise TrustError(f"the trust store {printable(path)} must be an absolute path", hint="give data_dir as one")
        self.path: Path = Path(os.path.realpath(path))
        self._lock_timeout_s = lock_timeout_s

    @property
    def problem(self) -> str | None:
        """Why nothing counts as trusted although the file is there; None if all is well. Reads the file."""
        try:
            self._read()
        except TrustError as exc:
            return str(exc)
        return None

    def entries(self) -> tuple[TrustDecision, ...]:
        """All decisions, oldest first; none if the file is damaged (see `problem`)."""
        try:
            return self._read()
        except TrustError:
            return ()

    def decision(self, directory: Path, digest: str) -> bool | None:
        """True if the user trusts this directory with this content, False if denied, None if there is no answer."""
        path = os.path.realpath(directory)
        return next((each.trusted for each in self.entries() if (each.path, each.digest) == (path, digest)), None)

    def trust(
        self, directory: Path, digest: str, *, name: str = "", decided_at: dt.datetime | None = None
    ) -> TrustDecision:
        """Remember a yes. When this returns, it is on the disk.

        Args:
          directory: The extension's directory.
          digest: What `package_digest` gave for it, of the content that the user was asked about.
          name: The extension's name, for lists.
          decided_at: Aware; now if not given.

        Raises:
          TrustError: The file is damaged, of another version, locked or not writable; it is left as it was.
        """
        return self._decide(directory, digest, name, decided_at, trusted=True)

    def deny(
        self, directory: Path, digest: str, *, name: str = "", decided_at: dt.datetime | None = None
    ) -> TrustDecision:
        """Remember a no: nobody is asked again about this content. Arguments and errors as for `trust`."""
        return self._decide(directory, digest, name, decided_at, trusted=False)

    def forget(self, directory: Path) -> int:
        """Drop all decisions about a directory, whatever its content, and say how many there were.

        Raises:
          TrustError: As for `trust`.
        """
        path = os.path.realpath(directory)
        before, after = self._change(lambda entries: [each for each in entries if each.path != path])
        return before - after

    def _decide(
        self, directory: Path, digest: str, name: str, decided_at: dt.datetime | None, *, trusted: bool
    ) -> TrustDecision:
        moment = (decided_at or dt.datetime.now(dt.UTC)).astimezone(dt.UTC)
        new = TrustDecision(
            path=os.path.realpath(directory), digest=digest, trusted=trusted, name=name,
            decided_at=moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )  # fmt: skip
        self._change(lambda entries: _with(entries, new))
        return new

    def _change(self, change: Callable[[list[TrustDecision]], list[TrustDecision]]) -> tuple[int, int]:
        """Read, change and write under the lock; how many decisions there were before and are now."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                old = list(self._read())
                new = change(old)
                if new != old:
                    self._write(new)
        except OSError as exc:
            raise self._error(f"cannot be written: {reason_of(exc)}", "check the directory and its disk") from exc
        return len(old), len(new)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock file, which stays: removing it would let two writers each hold one of their own."""
        lock = self.path.with_name(self.path.name + ".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            deadline = time.monotonic() + self._lock_timeout_s
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise self._error("is locked by another process", f"try again; see {lock}") from None
                    time.sleep(_RETRY_S)
            yield
        finally:
            os.close(descriptor)

    def _write(self, entries: list[TrustDecision]) -> None:
        """Replace the file: a reader sees the old or the new content, after a power failure too."""
        folder = self.path.parent
        document = {"version": _VERSION, "decisions": [_unstructure(each) for each in entries]}
        descriptor, temporary = tempfile.mkstemp(prefix=self.path.name + ".", suffix=".tmp", dir=folder)
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor has no path
                json.dump(document, stream, indent=1)
                stream.write("\n")
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).replace(self.path)
        except BaseException:  # also Ctrl-C: no temporary file stays
            Path(temporary).unlink(missing_ok=True)
            raise
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _read(self) -> tuple[TrustDecision, ...]:
        try:
            data = read_regular(self.path, _LIMIT_BYTES)
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return ()
        except OSError as exc:
            raise self._error(f"cannot be read: {reason_of(exc)}", "nothing is trusted until it can") from exc
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise self._error("can be written by others", f"look through it, then run: chmod 600 {self.path}")
        try:
            return _structure(parse_json(data))
        except JsonTextError as exc:
            where = f" at {exc.where}" if exc.where else ""
            hint = "correct it, or move it away and trust again"
            raise self._error(f"is damaged{where}: {exc.message}", hint) from None

    def _error(self, message: str, hint: str) -> TrustError:
        return TrustError(f"the trust store {printable(self.path)} {message}", hint=hint)


def _with(entries: list[TrustDecision], new: TrustDecision) -> list[TrustDecision]:
    """Put the new one last; drop what it replaces and the oldest above the limits."""
    others = [each for each in entries if (each.path, each.digest) != (new.path, new.digest)]
    same_path = [each for each in others if each.path == new.path]
    surplus = {id(each) for each in same_path[: max(0, len(same_path) - _KEPT_PER_PATH + 1)]}
    kept = [each for each in others if id(each) not in surplus]
    return [*kept[max(0, len(kept) - _KEPT + 1) :], new]


def _unstructure(entry: TrustDecision) -> dict[str, str]:
    word = "trusted" if entry.trusted else "denied"
    texts = attrs.asdict(entry, filter=attrs.filters.exclude(bool))
    return {**texts, "decision": word}


def _structure(document: object) -> tuple[TrustDecision, ...]:
    """Strict: what is not understood must neither be trusted nor be lost by the next write."""
    if not isinstance(document, dict) or "version" not in document:
        raise JsonTextError("it is no trust store", "$")
    if document["version"] != _VERSION or isinstance(document["version"], bool):
        raise JsonTextError("it is of another version; use the program that wrote it", "$.version")
    decisions = document.get("decisions")
    if document.keys() != {"version", "decisions"} or not isinstance(decisions, list):
        raise JsonTextError("it must hold version and decisions, an array", "$")
    return tuple(_entry(value, f"$.decisions[{index}]") for index, value in enumerate(decisions))


_ENTRY_KEYS = {"path", "digest", "decision", "name", "decided_at"}


def _entry(value: object, where: str) -> TrustDecision:
    if not isinstance(value, dict) or value.keys() != _ENTRY_KEYS:
        raise JsonTextError(f"must have exactly the keys {', '.join(sorted(_ENTRY_KEYS))}", where)
    if not all(isinstance(each, str) for each in value.values()) or value["decision"] not in _WORDS:
        raise JsonTextError("must hold texts, and the decision is trusted or denied", where)
    return TrustDecision(
        path=value["path"], digest=value["digest"], trusted=_WORDS[value["decision"]],
        name=value["name"], decided_at=value["decided_at"],
    )  # fmt: skip
