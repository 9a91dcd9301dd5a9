"""What a second look at the catalogue means: which extensions are started, replaced, stopped, left alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.reload_report import ReloadFailure

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session

_GONE = ("not_a_directory", "broken_link")
"""Codes of candidates whose directory is not there; any other that is rejected is there and broken."""


@attrs.frozen
class Scope:
    """Which extensions are meant."""

    names: frozenset[str] = frozenset()
    """Named: started anew also where nothing has changed."""
    everything: bool = True
    """Whether the others are looked at as well."""

    def holds(self, name: str) -> bool:
        """Whether this one is looked at."""
        return self.everything or name in self.names


@attrs.define
class Found:
    """What is to be done."""

    candidates: tuple[Candidate, ...] = ()
    """The catalogue from now on. What runs keeps its old row where its manifest cannot be read, and until it is stopped."""
    added: list[Candidate] = attrs.Factory(list)
    """To be started for the first time."""
    restarted: list[Candidate] = attrs.Factory(list)
    """To be started in the place of one that runs, or has come to its end."""
    removed: list[str] = attrs.Factory(list)
    """Not there any more, or not to run: switched off, in the shadow of another, its trust taken back."""
    unchanged: list[str] = attrs.Factory(list)
    """To be left alone."""
    failed: list[ReloadFailure] = attrs.Factory(list)
    """What cannot be started."""
    rows_after: dict[str, Candidate] = attrs.Factory(dict)
    """By name, the rows of those that are removed, once they are: of what is still there, and is not to run."""


async def look(session: Session) -> tuple[Candidate, ...]:
    """The catalogue as it is now, with what was loaded by hand behind it.

    Raises:
      ClosedError: The session has ended meanwhile.
      Exception: Whatever the embedder's catalogue raises.
    """
    host, by_hand = session.host, session.loader.by_hand
    found = list(await host.catalogue(host.config, session.cwd))
    taken = {each.directory for each in found} | {each.name for each in found if each.active}
    by_hand = tuple(each for each in by_hand if each not in taken)
    if by_hand:
        config = attrs.evolve(host.config, extensions=by_hand, project_roots=(), user_roots=())
        rows = await host.catalogue(config, session.cwd)
        found += [each for each in rows if each.directory in by_hand and each.name not in taken]
    session.check_open()
    return tuple(found)


def compare(
    known: Sequence[Candidate],
    scanned: Sequence[Candidate],
    latest: Callable[[str], Instance | None],
    scope: Scope,
) -> Found:
    """Work out what a scan means; changes nothing.

    Args:
      known: The catalogue before.
      scanned: The catalogue now.
      latest: The instance of a name that runs, or the last that did.
      scope: Which extensions are meant.
    """
    found = Found()
    rows: list[Candidate] = []
    effective = {each.name for each in scanned if each.status.value == "effective"}
    kept: set[str] = set()
    for candidate in scanned:
        old = _that_runs_there(candidate, known, latest)
        if candidate.status.value == "effective":
            rows.append(candidate)
            _look_at(candidate, latest(candidate.name), scope, found)
        elif _is_broken(candidate) or (old is not None and _is_to_be_trusted_anew(old, candidate)):
            name = old.name if old is not None else candidate.name
            before = old.candidate if old is not None else _row_there(candidate, known)
            stays = before is not None and name not in effective and (old is not None or not scope.holds(name))
            rows.append(before if before is not None and stays else candidate)
            kept.add(name)
            if scope.holds(name):
                found.failed.append(ReloadFailure(name, candidate.reason, "discovery", _log_of(old)))
        else:
            rows.append(candidate)
    gone = [each for each in known if each.status.value == "effective" and each.name not in effective | kept]
    unseen = {each.name: why for each in gone if (why := _why_out_of_sight(each, scanned))}
    found.removed += [each.name for each in gone if scope.holds(each.name) and each.name not in unseen]
    found.failed += [
        ReloadFailure(name, why, "discovery", _log_of(latest(name)))
        for name, why in unseen.items()
        if scope.holds(name)
    ]
    found.candidates = tuple(_standing_in(gone, rows, scope, found))
    for name in sorted(scope.names - effective - kept - {each.name for each in gone}):
        found.failed.append(ReloadFailure(name, _why_not(name, scanned), "discovery"))
    return found


def _standing_in(
    gone: Sequence[Candidate], rows: Sequence[Candidate], scope: Scope, found: Found
) -> Iterator[Candidate]:
    """The rows, with those that are gone where they were: each stays until it is taken out, which may come to nothing."""
    staying = {each.directory: each for each in gone}
    for row in rows:
        is_wanted = row.status.value == "effective" and scope.holds(row.name)
        old = staying.pop(row.directory, None) if not is_wanted else None
        if old is not None:
            found.rows_after[old.name] = row
        yield old or row
    yield from staying.values()


def _is_broken(candidate: Candidate) -> bool:
    """Whether something is there that cannot be used; not of one whose directory has gone."""
    return candidate.status.value == "rejected" and candidate.code not in _GONE


def _is_to_be_trusted_anew(old: Instance, candidate: Candidate) -> bool:
    """Whether it is blocked as its content is another than what runs, which was trusted; not where trust was taken back."""
    is_known = candidate.digest is not None and candidate.digest == old.candidate.digest
    return candidate.status.value == "blocked" and candidate.code != "trust_denied" and not is_known


def _why_out_of_sight(known: Candidate, scanned: Collection[Candidate]) -> str:
    """Why the folder it was found in cannot be read, though it is there: that says nothing of what is in it. Or nothing."""
    above = known.directory.parents
    return next((each.reason for each in scanned if _is_broken(each) and each.directory in above), "")


def _row_there(candidate: Candidate, known: Sequence[Candidate]) -> Candidate | None:
    """The row that counted in the directory of a candidate."""
    return next((each for each in known if each.active and each.directory == candidate.directory), None)


def _that_runs_there(
    candidate: Candidate, known: Sequence[Candidate], latest: Callable[[str], Instance | None]
) -> Instance | None:
    """Who runs in the directory of a candidate, whatever the candidate is called."""
    for each in known:
        if each.directory == candidate.directory:
            instance = latest(each.name)
            if instance is not None and instance.candidate.directory == candidate.directory and not instance.is_ending:
                return instance
    return None


def _look_at(candidate: Candidate, instance: Instance | None, scope: Scope, found: Found) -> None:
    name = candidate.name
    if not scope.holds(name):
        return
    if instance is None:
        found.added.append(candidate)
    elif name in scope.names or _is_another(instance, candidate):
        found.restarted.append(candidate)
    else:
        found.unchanged.append(name)


def _is_another(instance: Instance, candidate: Candidate) -> bool:
    """Whether to start it: it has failed, or something of it has changed; one that was unloaded stays so."""
    if instance.state is State.STOPPED:
        return False
    if instance.ended.is_set():
        return True
    old = instance.candidate
    same = old.digest is not None and old.digest == candidate.digest
    return not (same and old.directory == candidate.directory and old.manifest == candidate.manifest)


def _why_not(name: str, scanned: Collection[Candidate]) -> str:
    row = next((each for each in scanned if each.name == name), None)
    if row is None:
        return "there is no extension of that name"
    return row.reason or f"it is {row.status.value}, and there is nothing to start"


def _log_of(instance: Instance | None) -> str:
    return str(instance.log.path) if instance is not None else ""
