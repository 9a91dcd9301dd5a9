"""What must not vanish with an extension: required guards and reserved names, in tables outside the ledger.

A guard that crashed, was never loaded, is starting, tripped or stopped takes part in the chain as one that does not run, and
the policy answers in its place.

A sandbox that overrides `bash` and crashes takes its record with it, as anybody; that the bare `bash` does not come back by
that is said here. The name is free only where the extension serves no override of its own free will: it is ready, has
held the name in this incarnation, and has disposed of its record itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import EffectKind, EffectRecord, Scope
from trio_exthost.errors import GuardAbsent
from trio_exthost.hooks import Event
from trio_exthost.runtime.lifecycle import State

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.views import Member


class ReservedNames:
    """The names of tools that are kept for extensions of one session."""

    def __init__(self, session: Session) -> None:
        """As the host's policy says."""
        self._session = session
        self._keepers: Mapping[str, Collection[str]] = session.host.policy.reserved_tools()

    def keepers(self, name: str) -> Collection[str]:
        """The only extensions that may serve this tool; empty where anybody may."""
        return self._keepers.get(name, ())

    def now(self, run_id: str | None = None, request_id: str | None = None) -> Mapping[str, Collection[str]]:
        """The names that are kept now, seen from a run and a request, each for whom."""
        return {
            name: keepers for name, keepers in self._keepers.items() if not self._is_released(name, run_id, request_id)
        }

    def check(
        self, name: str, record: EffectRecord | None, *, run_id: str | None = None, request_id: str | None = None
    ) -> None:
        """Refuse a tool that is kept for somebody else than who is in force.

        Raises:
          GuardAbsent: Says for whom it is kept, and in which state that one is.
        """
        keepers = self._keepers.get(name)
        if not keepers or (record is not None and record.owner.extension_id in keepers):
            return
        if self._is_released(name, run_id, request_id):
            return
        who = " and ".join(f"{keeper} ({self._session.loader.state_of(keeper)})" for keeper in keepers)
        raise GuardAbsent(
            f"tool {name!r} is kept for {who}, which does not serve it now",
            extension=next(iter(keepers)),
            may_have_run=False,
            hint='get it running, or let the policy say on_absent = "restore" for it',
        )

    def _is_released(self, name: str, run_id: str | None, request_id: str | None) -> bool:
        """Whether each keeper is there and has given the name up, for everywhere or for where one looks from."""
        places = {(name, None), (name, (Scope.RUN, run_id)), (name, (Scope.REQUEST, request_id))}
        for keeper in self._keepers[name]:
            instance = self._session.loader.running(keeper)
            if instance is None or instance.state is not State.READY:
                return False
            if places.isdisjoint(instance.declarations.released):
                return False
        return True


@attrs.frozen
class Absent:
    """A guard that should be asked and cannot be."""

    name: str
    """The extension."""
    why: str
    """In which state it is, with the reason."""
    hint: str
    """The way out."""
    rank: tuple[int, float, float]
    """Where it stands among those who are asked."""
    manifest_blocks: bool
    """Whether its manifest tightens."""


class RequiredGuards:
    """Who has to be asked in one session, running or not: as the policy requires, and as manifests tighten."""

    def __init__(self, session: Session) -> None:
        """As the host's policy says; manifests join as they are discovered."""
        self._session = session
        self._policy = session.host.policy
        self._requires_any = any(each.required for each in self._policy.extensions.values())
        self._points: dict[str, set[str]] = {}  # of those whose manifest tightens: where they have been asked so far

    def discovered(self, candidates: Iterable[Candidate]) -> None:
        """These extensions are there; one whose manifest says `on_failure: block` guards from now on."""
        for candidate in candidates:
            manifest = candidate.manifest
            if (
                candidate.status.value == "effective"
                and manifest is not None
                and manifest.exthost.on_failure == "block"
            ):
                self._points.setdefault(candidate.name, set())

    def started_anew(self, extension: str, *, tightens: bool) -> None:
        """Another incarnation takes over, before it has registered anything: its own manifest counts now."""
        self._points.pop(extension, None)
        if tightens:
            self._points[extension] = set()

    def taken_out(self, extension: str) -> None:
        """It is in the catalogue no more: its manifest asks for nothing; what the policy requires stays required."""
        self._points.pop(extension, None)

    def registered(self, extension: str, point: str) -> None:
        """An extension is asked at a point from now on, and counts as its guard if its manifest tightens."""
        if extension in self._points:
            self._points[extension].add(point)

    def absent(self, point: str, payload: Mapping[str, Any], members: Sequence[Member]) -> list[Absent]:
        """Who guards this and is not among the members that will be asked.

        Where the policy requires it: everybody that does not intercept the point, whatever the reason. A manifest only
        tightens what its extension does: where it has intercepted before, and at `tool_call` while nobody knows yet; one
        that was unloaded on purpose, or runs and does not intercept, guards nothing.
        """
        if not self._requires_any and not self._points:
            return []
        subject = f"tool:{payload.get('tool_name', '*')}" if point == Event.TOOL_CALL else point
        required = self._policy.guards(subject)
        living = {member.name for member in members}
        names = [name for name in required if name not in living]
        names += [
            name
            for name, points in self._points.items()
            if name not in living and name not in required and self._tightens(name, point, points)
        ]
        return [self._describe(name) for name in names]

    def _tightens(self, name: str, point: str, points: set[str]) -> bool:
        if point not in (points or (Event.TOOL_CALL.value,)):
            return False
        loader = self._session.loader
        instance = loader.latest(name)
        if instance is None:
            return True
        return instance.state not in (State.READY, State.STOPPED)

    def _describe(self, name: str) -> Absent:
        loader = self._session.loader
        instance, rank = loader.latest(name), loader.place_of(name)
        priority = instance.priority if instance is not None else loader.priority_of(name)
        state = loader.state_of(name)
        if instance is not None and instance.state is State.READY:
            how = "taken as ready without a word" if instance.registering.is_auto else "ready"
            state = f"{how}, but does not intercept this"
        return Absent(
            name,
            state,
            hint=way_out(name),
            rank=(-priority, rank, math.inf),
            manifest_blocks=name in self._points,
        )


def way_out(name: str) -> str:
    """What to do about a guard that is not there."""
    return f"get {name} running (session.extensions() has its state and why), or change the policy about it"


def overrides_tool(record: EffectRecord) -> bool:
    """Whether this record takes the place of a tool."""
    return record.registration.kind is EffectKind.TOOL and record.registration.override
