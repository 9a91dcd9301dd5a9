"""What is installed where, which of it runs, and for each that does not: why.

Nothing is left out silently. An extension that is broken, switched off, in the shadow of another or not trusted is a
row like any other. Only what counts takes a name: a project that nobody trusts cannot push aside the user's extension
of that name.
"""

from __future__ import annotations

import enum
import errno
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs

from trio_exthost.config import HostConfig
from trio_exthost.errors import ManifestError, TrustError
from trio_exthost.packages.digest import package_digest
from trio_exthost.packages.files import is_directory, is_link, printable, reason_of
from trio_exthost.packages.manifest import MANIFEST_NAME, Manifest, load_manifest
from trio_exthost.packages.trust import TrustStore


class Origin(enum.Enum):
    """How an extension came into the catalogue; in catalogue order."""

    EXPLICIT = "explicit"
    """Named by the operator; trusted."""
    PROJECT = "project"
    """Found below a session's working directory; must be trusted."""
    USER = "user"
    """Installed in the user's own directory; trusted."""


class Status(enum.Enum):
    """What becomes of a candidate."""

    EFFECTIVE = "effective"
    """It is to be started."""
    STATIC = "static"
    """It counts, and there is nothing to start: skills or themes only."""
    SHADOWED = "shadowed"
    """Another one of its name, or the same directory, came first."""
    REJECTED = "rejected"
    """It cannot be used: bad manifest, broken link, unreadable."""
    BLOCKED = "blocked"
    """It is project-local and not trusted."""
    DISABLED = "disabled"
    """Its manifest says `enabled: false`."""


@attrs.frozen(kw_only=True)
class Candidate:
    """One row of the catalogue."""

    name: str
    """As its manifest says; the name of its directory where there is no usable manifest."""
    directory: Path
    """Real path of its directory; where there is none, the path it was looked for at."""
    shown: str
    """The path as it was found, links unresolved, fit to be shown."""
    origin: Origin
    """Where it was found."""
    status: Status
    """What becomes of it."""
    manifest: Manifest | None = None
    """None if there is no usable one."""
    code: str = ""
    """A stable word for the reason: shadowed, disabled, manifest_invalid, broken_link, unreadable, not_a_directory,
    trust_required, trust_denied, digest_failed; empty if it counts."""
    reason: str = ""
    """The reason in a sentence, with the way out; empty if it counts."""
    warnings: tuple[str, ...] = ()
    """What should be looked at although it can be used."""
    digest: str | None = None
    """`package_digest` of its directory, where trust had to be asked for."""

    @property
    def active(self) -> bool:
        """It counts: effective or static."""
        return self.status in (Status.EFFECTIVE, Status.STATIC)


def discover(config: HostConfig, cwd: Path, *, trust: TrustStore | None = None) -> tuple[Candidate, ...]:
    """Look into all places and list what is there, in catalogue order.

    First `config.extensions` in their order, then the project roots, then the user roots, each sorted by name. The
    first that counts takes the name. Between roots the name of the directory counts, then everywhere the manifest's
    name, and a directory found twice runs once. In a root, what holds no `extension.json` is no extension.

    `config.trust` is asked, last, about each project-local extension that could run and that `trust` knows nothing
    about; only `True` means yes, and it is not stored. If it raises, that means no.

    Reads manifests, and every file of project-local extensions: call it in a worker thread. `config.trust` is called
    in the thread that calls this.

    Args:
      config: Roots and the trust callback. Relative `extensions` are relative to this process's directory.
      cwd: The session's working directory; relative project roots are below it.
      trust: The user's decisions; None if there are none.
    """
    catalogue = _Catalogue(config, trust)
    for path in config.extensions:
        catalogue.add(path.absolute(), Origin.EXPLICIT)
    roots = [(cwd.absolute() / root, Origin.PROJECT) for root in config.project_roots]
    user_roots = (config.data_dir / "extensions",) if config.user_roots is None else config.user_roots
    roots.extend((root.absolute(), Origin.USER) for root in user_roots)
    for root, origin in roots:
        catalogue.add_root(root, origin)
    return tuple(catalogue.rows)


class _Catalogue:
    """The rows so far, and which names and directories are taken by whom."""

    def __init__(self, config: HostConfig, trust: TrustStore | None) -> None:
        self.rows: list[Candidate] = []
        self._config = config
        self._trust = trust
        self._trust_problem = trust.problem if trust is not None else None
        self._taken: dict[tuple[str, str], str] = {}

    def add_root(self, root: Path, origin: Origin) -> None:
        """List the extensions in a root; a root that is missing is empty."""
        try:
            paths = sorted(root.iterdir(), key=os.fsencode)
        except FileNotFoundError:
            if is_link(root):
                self._reject(root, origin, "broken_link", f"the root {printable(root)} is a broken link")
            return
        except OSError as exc:
            self._reject(root, origin, "unreadable", f"the root {printable(root)} cannot be read: {reason_of(exc)}")
            return
        for path in paths:
            if is_link(path) or _may_hold_manifest(path):
                self.add(path, origin)

    def add(self, path: Path, origin: Origin) -> None:
        """List one extension."""
        try:
            directory = path.resolve(strict=True)
        except (OSError, RuntimeError) as exc:  # RuntimeError: what Python before 3.13 makes of a link loop
            self._reject(path, origin, *_unreachable(path, exc))
            return
        if not is_directory(directory):
            if is_link(path):
                self._reject(
                    path, origin, "broken_link", f"{printable(path)} is a broken link: it leads to no directory"
                )
            else:
                hint = f"name the directory that holds {MANIFEST_NAME}"
                self._reject(path, origin, "not_a_directory", f"{printable(path)} is no directory; {hint}")
            return
        if origin is not Origin.EXPLICIT and not _may_hold_manifest(directory):
            return
        try:
            manifest, warnings = load_manifest(directory)
        except ManifestError as exc:
            self._reject(path, origin, exc.code, str(exc))
            return
        candidate = Candidate(
            name=manifest.name, directory=directory, shown=printable(path), origin=origin, manifest=manifest,
            warnings=warnings, status=Status.STATIC if manifest.static else Status.EFFECTIVE,
        )  # fmt: skip
        self.rows.append(self._judge(candidate, manifest, path))

    def _reject(self, path: Path, origin: Origin, code: str, reason: str) -> None:
        where = Path(os.path.realpath(path))
        row = Candidate(
            name=printable(path.name), directory=where, shown=printable(path), origin=origin, status=Status.REJECTED,
            code=code, reason=reason,
        )  # fmt: skip
        self.rows.append(row)

    def _judge(self, candidate: Candidate, manifest: Manifest, path: Path) -> Candidate:
        """Settle what becomes of a usable one, and let it take its names if it counts."""
        if not manifest.enabled:
            return _not(candidate, Status.DISABLED, "disabled", "its manifest says enabled: false")
        identities = list(_identities(candidate, path))
        for what, value in identities:
            if (winner := self._taken.get((what, value))) is not None:
                return _not(candidate, Status.SHADOWED, "shadowed", f"shadowed by {winner} ({what})")
        if candidate.origin is Origin.PROJECT:
            candidate = self._ask(candidate)
        if candidate.active:
            self._taken.update(dict.fromkeys(identities, candidate.shown))
        return candidate

    def _ask(self, candidate: Candidate) -> Candidate:
        """Block a project-local one unless somebody trusts exactly this content in this place."""
        try:
            candidate = attrs.evolve(candidate, digest=package_digest(candidate.directory))
        except TrustError as exc:
            return _not(candidate, Status.BLOCKED, exc.code, str(exc))
        assert candidate.digest is not None
        if self._trust is not None:
            known = self._trust.decision(candidate.directory, candidate.digest)
            if known:
                return candidate
            if known is False:
                return _not(candidate, Status.BLOCKED, "trust_denied", f"denied; to allow it: {_command(candidate)}")
        why = self._refusal(candidate)
        if why is None:
            return candidate
        reason = f"project-local and not trusted; after reading it: {_command(candidate)}"
        reasons = [reason, why, self._trust_problem or ""]
        return _not(candidate, Status.BLOCKED, "trust_required", "; ".join(filter(None, reasons)))

    def _refusal(self, candidate: Candidate) -> str | None:
        """Ask the embedder: None is a yes, else what to say beside the no."""
        if self._config.trust is None:
            return ""
        try:
            answer: object = self._config.trust(candidate)
        except Exception as exc:  # noqa: BLE001 - the embedder's bug must not start what nobody has trusted
            return f"the trust callback raised {type(exc).__name__}"
        if answer is True:
            return None
        # Any other true value is a mistake, such as the coroutine of an async callback.
        return "" if answer is False else f"the trust callback returned {type(answer).__name__}, not a bool"


def _identities(candidate: Candidate, path: Path) -> Iterator[tuple[str, str]]:
    """What two candidates must not have in common."""
    yield "the same directory", os.fspath(candidate.directory)
    if candidate.origin is not Origin.EXPLICIT:
        yield "the same directory name", path.name
    yield "the same name", candidate.name


def _not(candidate: Candidate, status: Status, code: str, reason: str) -> Candidate:
    return attrs.evolve(candidate, status=status, code=code, reason=reason)


def _command(candidate: Candidate) -> str:
    return f"exthost trust {shlex.quote(candidate.shown)}"


def _may_hold_manifest(directory: Path) -> bool:
    """Whether a directory is meant as an extension, so that it is a row even where it cannot be read."""
    try:
        (directory / MANIFEST_NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _unreachable(path: Path, exc: Exception) -> tuple[str, str]:
    shown = printable(path)
    if is_link(path):
        loop = isinstance(exc, RuntimeError) or (isinstance(exc, OSError) and exc.errno == errno.ELOOP)
        return "broken_link", f"{shown} is a broken link: {'it leads back to itself' if loop else 'nothing is there'}"
    if isinstance(exc, FileNotFoundError):
        return "not_a_directory", f"{shown} does not exist"
    return "unreadable", f"{shown} cannot be read: {reason_of(exc) if isinstance(exc, OSError) else exc}"
