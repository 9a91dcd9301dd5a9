"""What a reader of the ledger's changes knows: the plainest view there can be."""

from __future__ import annotations

from collections.abc import Iterable

from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.records import Change, ChangeAction, EffectRecord
from trio_exthost.effects.scopes import Realm, Scope


class EffectView:
    """Answers as the ledger does, from its changes alone.

    Give it every change from the first on, in order, and all changes of one call before anybody reads. It knows nothing
    of stacks: what is in force follows from what the changes say. `active_records` takes time for everything in force.
    """

    __slots__ = ("_in_force", "_records")

    def __init__(self) -> None:
        """Know nothing."""
        self._records: dict[int, EffectRecord] = {}
        self._in_force: dict[tuple[EffectKind, str, Realm | None], EffectRecord] = {}

    @property
    def active_count(self) -> int:
        """Records held: those in force, and those that another overrides."""
        return len(self._records)

    def apply(self, changes: Iterable[Change]) -> None:
        """Follow the ledger through the changes of one call."""
        for change in changes:
            record = change.record
            slot = (record.registration.kind, record.registration.key, record.binding.realm)
            if change.action in {ChangeAction.ACCEPTED, ChangeAction.RESTORED}:
                self._records[record.handle] = record
                self._in_force[slot] = record
                continue
            if change.action is ChangeAction.UPDATED:
                before, self._records[record.handle] = self._records[record.handle], record
                if self._in_force.get(slot) is before:
                    self._in_force[slot] = record
                continue
            if change.action is ChangeAction.DISPOSED:
                del self._records[record.handle]
            if self._in_force.get(slot) is record:
                del self._in_force[slot]

    def records(self) -> tuple[EffectRecord, ...]:
        """Everything held, in order of acceptance."""
        return tuple(self._records[handle] for handle in sorted(self._records))

    def active(
        self, kind: EffectKind, key: str, *, run_id: str | None = None, request_id: str | None = None
    ) -> EffectRecord | None:
        """The record in force for a key, seen from a run and a request; as `EffectLedger.active`."""
        for realm in reversed(_realms(run_id, request_id)):
            if (record := self._in_force.get((kind, key, realm))) is not None:
                return record
        return None

    def active_records(
        self, kind: EffectKind, *, run_id: str | None = None, request_id: str | None = None
    ) -> tuple[EffectRecord, ...]:
        """All records of a kind in force, in order of acceptance; as `EffectLedger.active_records`."""
        found: dict[str, EffectRecord] = {}
        for realm in _realms(run_id, request_id):
            for (of_kind, key, of_realm), record in self._in_force.items():
                if of_kind is kind and of_realm == realm:
                    found[key] = record
        return tuple(sorted(found.values(), key=lambda record: record.handle))


def _realms(run_id: str | None, request_id: str | None) -> list[Realm | None]:
    """The realms one sees from here, widest first."""
    realms: list[Realm | None] = [None]
    if run_id is not None:
        realms.append((Scope.RUN, run_id))
    if request_id is not None:
        realms.append((Scope.REQUEST, request_id))
    return realms
