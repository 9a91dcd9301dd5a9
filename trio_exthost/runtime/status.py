"""What the embedder sees of its extensions: a row each, always, and the report of a load."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from trio_exthost.errors import LoadError
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.next_steps import way_to_start

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.instance import Instance


@attrs.frozen
class ExtensionRow:
    """One extension, whatever became of it."""

    name: str
    """Its name."""
    state: str
    """A state of its life (`ready`, `failed`, ...), or of the catalogue (`shadowed`, `blocked`, `rejected`, ...)."""
    reason: str = ""
    """Why it is in this state, with the way out; empty where nothing is wrong."""
    origin: str = ""
    """explicit, project or user."""
    directory: Path = Path()
    """Where it is."""
    version: str = ""
    """As its manifest says."""
    pid: int | None = None
    """Its process, while there is one."""
    auto_ready: bool = False
    """Whether its silence was taken for `ready`."""
    log_path: Path | None = None
    """Where its stderr goes."""
    warnings: tuple[str, ...] = ()
    """What should be looked at although it counts: of its manifest, and what it wanted to register and could not."""
    overdue_calls: int = 0
    """Calls of this process that got no answer in time. While its last ones did not, `reason` says since when."""
    last_overdue: str = ""
    """The last of them, and how long it was waited for."""
    error: LoadError | None = None
    """Why it does not run: stage, exit, uptime, calls in flight, end of stderr, log, next step; None where it does."""


def row_of(candidate: Candidate, instance: Instance | None) -> ExtensionRow:
    """The row of a candidate and, where there is or was one, its instance.

    What runs counts, also where the catalogue says something else since; what has ended and is not to run is told as the
    catalogue has it.
    """
    if instance is not None and instance.ended.is_set() and candidate.status.value != "effective":
        instance = None
    manifest = candidate.manifest if instance is None or instance.ended.is_set() else instance.manifest
    notices = instance.notices if instance is not None else None
    return ExtensionRow(
        name=candidate.name,
        state=str(instance.state) if instance is not None else candidate.status.value,
        reason=_reason_of(instance) if instance is not None else _reason_of_candidate(candidate),
        origin=candidate.origin.value,
        directory=candidate.directory,
        version=manifest.version if manifest is not None else "",
        pid=instance.pid if instance is not None else None,
        auto_ready=instance.registering.is_auto if instance is not None else False,
        log_path=instance.log.path if instance is not None else None,
        warnings=candidate.warnings + (notices.warnings if notices is not None else ()),
        overdue_calls=notices.overdue_calls if notices is not None else 0,
        last_overdue=notices.last_overdue if notices is not None else "",
        error=instance.error if instance is not None else _error_of(candidate),
    )


def _reason_of(instance: Instance) -> str:
    is_silent = instance.state is State.READY and instance.health.failures_in_a_row
    return instance.reason or (instance.notices.silence() if is_silent else "")


def not_started(candidate: Candidate, why: str) -> LoadError:
    """The error about a candidate that is not started, for this reason."""
    code, hint = candidate.code or None, way_to_start(candidate)
    return LoadError(why, extension=candidate.name, stage="discovery", code=code, hint=hint)


def _error_of(candidate: Candidate) -> LoadError | None:
    return not_started(candidate, candidate.reason) if candidate.reason else None


def _reason_of_candidate(candidate: Candidate) -> str:
    return f"{candidate.reason} ({hint})" if (hint := way_to_start(candidate)) else candidate.reason


@attrs.frozen
class LoadReport:
    """What `Session.load_all` found."""

    ready: tuple[str, ...]
    """Names of the extensions that are ready, in catalogue order."""
    late: tuple[str, ...]
    """Names of those that were still starting at the cap; they join when they are ready."""
    failed: tuple[LoadError, ...]
    """Why each of the others did not become ready, and why candidates were rejected, in catalogue order."""
    rows: tuple[ExtensionRow, ...]
    """Every extension there is, also those that were not to be started."""

    @classmethod
    def of(
        cls, rows: tuple[ExtensionRow, ...], instances: Iterable[Instance], candidates: Iterable[Candidate]
    ) -> LoadReport:
        """The report as things stand now."""
        started = list(instances)
        errors = {each.name: each.error for each in started if each.error is not None}
        for candidate in candidates:
            if candidate.status.value == "rejected" and (error := _error_of(candidate)) is not None:
                errors.setdefault(candidate.name, error)
        order = {row.name: place for place, row in enumerate(rows)}
        return cls(
            ready=tuple(row.name for row in rows if row.state == State.READY),
            late=tuple(each.name for each in started if not each.settled.is_set()),
            failed=tuple(errors[name] for name in sorted(errors, key=lambda name: order.get(name, len(order)))),
            rows=rows,
        )
