"""One instance's records for its successor's: the plan, which may be refused, and the step, which may not fail."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TypeAlias

import attrs

from trio_exthost.effects.index import RecordIndex, table_name
from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.records import Change, ChangeAction, DisposeCause, EffectRecord, Registration, Replaced
from trio_exthost.effects.refusals import conflict, override_denied
from trio_exthost.effects.scopes import EffectOwner, Realm, ScopeBinding

Slot: TypeAlias = "tuple[EffectKind, str, Realm | None]"
"""Within what a key is unique."""


@attrs.frozen
class Succession:
    """A registration and the record whose place it takes, if there is one."""

    binding: ScopeBinding
    registration: Registration
    predecessor: EffectRecord | None

    @property
    def slot(self) -> Slot:
        """Where it will stand."""
        return (self.registration.kind, self.registration.key, self.binding.realm)


@attrs.frozen
class ReplacementPlan:
    """What a replacement will do; every check has been made."""

    new: EffectOwner
    successions: tuple[Succession, ...]
    leaving: tuple[EffectRecord, ...]
    """All records of the old instance, in order of acceptance."""


def plan_replacement(
    index: RecordIndex,
    old: EffectOwner,
    new: EffectOwner,
    registrations: Sequence[tuple[ScopeBinding, Registration]],
    *,
    override_authorized: bool,
) -> ReplacementPlan:
    """Match registrations with predecessors and check each against the stacks as they will be; changes nothing.

    Raises:
      OverrideDenied: As `EffectLedger.replace_owner` says.
      Conflict: As `EffectLedger.replace_owner` says.
    """
    leaving = tuple(index.owners.get(old, {}).values())
    unclaimed: defaultdict[Slot, deque[EffectRecord]] = defaultdict(deque)
    for record in leaving:
        unclaimed[_slot(record)].append(record)
    successions = []
    for binding, registration in registrations:
        waiting = unclaimed.get((registration.kind, registration.key, binding.realm))
        successions.append(Succession(binding, registration, waiting.popleft() if waiting else None))
    dying = {record.handle for waiting in unclaimed.values() for record in waiting}
    stacked: set[Slot] = set()
    for each in successions:
        _check(index, new, each, dying, authorized=override_authorized, on_new=each.slot in stacked)
        stacked.add(each.slot)
    return ReplacementPlan(new, tuple(successions), leaving)


def _slot(record: EffectRecord) -> Slot:
    return (record.registration.kind, record.registration.key, record.binding.realm)


def _check(
    index: RecordIndex, new: EffectOwner, each: Succession, dying: set[int], *, authorized: bool, on_new: bool
) -> None:
    """One that is at the bottom of its stack needs nothing; any other must ask for an override, and have it."""
    registration, predecessor = each.registration, each.predecessor
    if registration.override:
        inherited = predecessor is not None and predecessor.registration.override
        if not (registration.kind.can_be_overridden and (authorized or inherited)):
            raise override_denied(new, each.binding, registration, index.top(*each.slot))
        return
    if predecessor is None:
        under = index.top(*each.slot)
        if on_new or under is not None:
            raise conflict(new, each.binding, registration, None if on_new else under)
        return
    under = index.below.get(predecessor.handle)
    while under is not None and under.handle in dying:
        under = index.below.get(under.handle)
    if under is not None:
        raise conflict(new, each.binding, registration, under)


def replace(index: RecordIndex, plan: ReplacementPlan, next_handle: int) -> Replaced:
    """Carry a plan out, giving handles from `next_handle` on."""
    tops = {each.slot: index.top(*each.slot) for each in plan.successions}
    records: list[EffectRecord] = []
    for handle, each in enumerate(plan.successions, next_handle):
        record = EffectRecord(handle, plan.new, each.binding, each.registration)
        if each.predecessor is None:
            table = index.tables.get(table_name(each.registration.kind, each.binding.realm))
            index.push(record, table, index.top(*each.slot))
        else:
            index.swap(each.predecessor, record)
        records.append(record)
    claimed = {each.predecessor.handle for each in plan.successions if each.predecessor is not None}
    removed = index.remove_all(record for record in reversed(plan.leaving) if record.handle not in claimed)
    restored = {record.handle: revived for record, revived in removed}
    changes = [Change(ChangeAction.ACCEPTED, record) for record in records]
    changes += _shifts(index, tops, records, {record.handle for record in plan.leaving})
    for record in reversed(plan.leaving):
        revived = restored.get(record.handle)
        if revived is not None and _slot(revived) not in tops:
            changes.append(Change(ChangeAction.RESTORED, revived))
        changes.append(Change(ChangeAction.DISPOSED, record, DisposeCause.RELOAD))
    return Replaced(tuple(record.handle for record in records), tuple(changes))


def _shifts(
    index: RecordIndex, tops: dict[Slot, EffectRecord | None], records: list[EffectRecord], leaving: set[int]
) -> list[Change]:
    """What else changed for each key that has new records.

    An ACCEPTED says that the record is in force. Of a record that came in covered this is taken back here: it is
    displaced, and the one that is really in force restored, so that whoever applies the changes needs to know nothing
    about stacks.
    """
    fresh: defaultdict[Slot, list[EffectRecord]] = defaultdict(list)
    for record in records:
        fresh[_slot(record)].append(record)
    changes: list[Change] = []
    for slot, before in tops.items():
        after = index.top(*slot)
        assert after is not None
        stayed = [before] if before is not None and before.handle not in leaving else []
        changes += [Change(ChangeAction.DISPLACED, each) for each in (*stayed, *fresh[slot]) if each is not after]
        if after is not fresh[slot][-1]:
            changes.append(Change(ChangeAction.RESTORED, after))
    return changes
