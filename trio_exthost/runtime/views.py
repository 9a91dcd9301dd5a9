"""Views of the ledger: who is told, who is asked.

They are changed by nothing but the ledger's own changes, all of one mutation at once, and hold immutable tuples, replaced
on change: what is being iterated while sending never changes under the loop.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from trio_exthost.effects import Change, ChangeAction, EffectKind, EffectRecord, Scope
from trio_exthost.hooks import LIFE_POINTS, HookClass

if TYPE_CHECKING:
    from trio_exthost.hooks import Hook
    from trio_exthost.runtime.instance import Instance


@attrs.frozen
class Entry:
    """What a registration's `value` holds in this runtime: whose, and what."""

    instance: Instance
    """Who registered it."""
    descriptor: Any
    """What: the name of an event, a tool or command that can be run, or a descriptor of the effect dialect."""
    registration_id: int | None = None
    """The extension's own number of it, in the effect dialect."""


@attrs.frozen(eq=False)
class HookMember:
    """A hook that takes part in a chain, or is told."""

    record: EffectRecord
    """Its registration."""
    instance: Instance
    """Whose it is."""
    hook: Hook
    """What it said of itself."""

    @property
    def name(self) -> str:
        """The extension's name."""
        return self.instance.name


Member: TypeAlias = "Instance | HookMember"
"""Who is asked at a point: an extension that intercepts it as in zot's protocol, or a hook."""


class _Place(enum.Enum):
    """In which way a registration listens."""

    TOLD = "told"
    """A subscription: told of an event, in zot's words."""
    ASKED = "asked"
    """An interception, a gate or a transform."""
    OBSERVES = "observes"
    """A hook that is told of a life-cycle point."""
    AWAITED = "awaited"
    """A hook that is told, and waited for: when its own extension begins and ends."""


class Views:
    """Answers in one dictionary look-up what the ledger knows."""

    def __init__(self) -> None:
        self.subscribers: dict[str, tuple[Instance, ...]] = {}
        """Instances told about an event, in catalogue order."""
        self.interceptors: dict[str, tuple[Member, ...]] = {}
        """Who is asked at a point: manifest priority descending, catalogue order, hook priority descending, registration."""
        self.observers: dict[str, tuple[HookMember, ...]] = {}
        """Hooks that are told of a life-cycle point, in the same order."""
        self.awaited: dict[str, tuple[HookMember, ...]] = {}
        """Hooks that are told of their own extension's begin and end, in the same order."""
        self._listening: dict[tuple[_Place, str], dict[int, EffectRecord]] = {}
        self._bound: set[tuple[_Place, str]] = set()  # where somebody listens in one run or request only

    def asked(self, event: str, *, run_id: str | None = None, request_id: str | None = None) -> tuple[Member, ...]:
        """Who is asked at a point, seen from a run and a request."""
        members = self.interceptors.get(event, ())
        if (_Place.ASKED, event) not in self._bound:
            return members
        return tuple(
            each for each in members if not isinstance(each, HookMember) or _is_active(each.record, run_id, request_id)
        )

    def observing(
        self, event: str, *, run_id: str | None = None, request_id: str | None = None
    ) -> tuple[HookMember, ...]:
        """Hooks that are told of a life-cycle point, seen from a run and a request."""
        members = self.observers.get(event, ())
        if (_Place.OBSERVES, event) not in self._bound:
            return members
        return tuple(each for each in members if _is_active(each.record, run_id, request_id))

    def apply(self, changes: Iterable[Change]) -> bool:
        """Take in all changes of one mutation; whether tools or commands are others now."""
        stale: set[tuple[_Place, str]] = set()
        offers_changed = False
        for change in changes:
            kind = change.record.registration.kind
            if kind in _LISTENING:
                stale.add(self._listen(change))
            elif kind in (EffectKind.TOOL, EffectKind.COMMAND):
                offers_changed = True
        for place, event in stale:
            self._rebuild(place, event)
        return offers_changed

    def reorder(self) -> None:
        """The places of extensions in the catalogue are others."""
        for place, event in tuple(self._listening):
            self._rebuild(place, event)

    def _listen(self, change: Change) -> tuple[_Place, str]:
        where = _where(change.record)
        records = self._listening.setdefault(where, {})
        if change.action in (ChangeAction.ACCEPTED, ChangeAction.RESTORED, ChangeAction.UPDATED):
            records[change.record.handle] = change.record
        else:
            records.pop(change.record.handle, None)
        return where

    def _rebuild(self, place: _Place, event: str) -> None:
        records = sorted(self._listening[place, event].values(), key=_told_rank if place is _Place.TOLD else _rank)
        tables: dict[_Place, dict[str, Any]] = {
            _Place.TOLD: self.subscribers,
            _Place.ASKED: self.interceptors,
            _Place.OBSERVES: self.observers,
            _Place.AWAITED: self.awaited,
        }
        target = tables[place]
        self._bound.discard((place, event))
        if not records:
            target.pop(event, None)
            del self._listening[place, event]
            return
        target[event] = tuple(_member(record) for record in records)
        if any(record.binding.realm is not None for record in records):
            self._bound.add((place, event))


_LISTENING = (EffectKind.SUBSCRIPTION, EffectKind.INTERCEPTION, EffectKind.HOOK)


def _where(record: EffectRecord) -> tuple[_Place, str]:
    kind, descriptor = record.registration.kind, record.registration.value.descriptor
    if kind is EffectKind.SUBSCRIPTION:
        return _Place.TOLD, descriptor
    if kind is EffectKind.INTERCEPTION:
        return _Place.ASKED, descriptor
    if descriptor.hook_class in (HookClass.GATE, HookClass.TRANSFORM):
        return _Place.ASKED, descriptor.event
    return (_Place.AWAITED if LIFE_POINTS[descriptor.event].awaited else _Place.OBSERVES), descriptor.event


def _member(record: EffectRecord) -> Member:
    entry: Entry = record.registration.value
    if record.registration.kind is EffectKind.HOOK:
        return HookMember(record, entry.instance, entry.descriptor)
    return entry.instance


def _told_rank(record: EffectRecord) -> tuple[int, int]:
    return (record.registration.value.instance.rank, record.handle)


def _rank(record: EffectRecord) -> tuple[int, int, int, int]:
    entry: Entry = record.registration.value
    priority = entry.descriptor.priority if record.registration.kind is EffectKind.HOOK else 0
    return (-entry.instance.priority, entry.instance.rank, -priority, record.handle)


def _is_active(record: EffectRecord, run_id: str | None, request_id: str | None) -> bool:
    return record.binding.realm in (None, (Scope.RUN, run_id), (Scope.REQUEST, request_id))
