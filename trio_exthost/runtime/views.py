"""Views of the ledger: who is told, who is asked.

They are changed by nothing but the ledger's own changes, all of one mutation at once, and hold immutable tuples, replaced
on change: what is being iterated while sending never changes under the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import Change, ChangeAction, EffectKind, EffectRecord

if TYPE_CHECKING:
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


class Views:
    """Answers in one dictionary look-up what the ledger knows."""

    def __init__(self) -> None:
        self.subscribers: dict[str, tuple[Instance, ...]] = {}
        """Instances told about an event, in catalogue order."""
        self.interceptors: dict[str, tuple[Instance, ...]] = {}
        """Instances asked at a point: manifest priority descending, catalogue order, registration sequence."""
        self._listening: dict[tuple[EffectKind, str], dict[int, EffectRecord]] = {}

    def apply(self, changes: Iterable[Change]) -> bool:
        """Take in all changes of one mutation; whether tools or commands are others now."""
        stale: set[tuple[EffectKind, str]] = set()
        offers_changed = False
        for change in changes:
            kind = change.record.registration.kind
            if kind in (EffectKind.SUBSCRIPTION, EffectKind.INTERCEPTION):
                stale.add(self._listen(change))
            elif kind in (EffectKind.TOOL, EffectKind.COMMAND):
                offers_changed = True
        for kind, event in stale:
            self._rebuild(kind, event)
        return offers_changed

    def _listen(self, change: Change) -> tuple[EffectKind, str]:
        registration = change.record.registration
        place = (registration.kind, registration.value.descriptor)
        records = self._listening.setdefault(place, {})
        if change.action in (ChangeAction.ACCEPTED, ChangeAction.RESTORED):
            records[change.record.handle] = change.record
        else:
            records.pop(change.record.handle, None)
        return place

    def _rebuild(self, kind: EffectKind, event: str) -> None:
        records = self._listening[kind, event].values()
        is_asked = kind is EffectKind.INTERCEPTION
        target = self.interceptors if is_asked else self.subscribers

        def rank(record: EffectRecord) -> tuple[int, int, int]:
            instance = record.registration.value.instance
            return (-instance.priority if is_asked else 0, instance.rank, record.handle)

        if records:
            target[event] = tuple(record.registration.value.instance for record in sorted(records, key=rank))
        else:
            target.pop(event, None)
            del self._listening[kind, event]
