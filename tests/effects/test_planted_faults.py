"""The state machine finds each fault that is planted here; a machine that no longer does proves nothing."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from ledger_machine import LedgerMachine

from trio_exthost.effects import EffectLedger, EffectRecord, LedgerError, ScopeBinding
from trio_exthost.effects.index import RecordIndex


class RestoresTheLowest(RecordIndex):
    def _unstack(self, record, table):
        restored = super()._unstack(record, table)
        while restored is not None and restored.handle in self.below:
            restored = self.below[restored.handle]
            table[record.registration.key] = restored
        return restored


class KeepsTheOwnersEntry(RecordIndex):
    def remove(self, record):
        restored = super().remove(record)
        self.owners.setdefault(record.owner, {})[record.handle] = record
        return restored


class KeepsTheEmptyBucket(RecordIndex):
    def remove(self, record):
        restored = super().remove(record)
        self.bindings.setdefault(record.binding.place, {})
        return restored


class ReplacesOnTop(RecordIndex):
    def swap(self, old, new):
        self.remove(old)
        kind, realm = new.registration.kind, new.binding.realm
        self.push(
            new, self.tables.get(kind if realm is None else (kind, realm)), self.top(kind, new.registration.key, realm)
        )


def with_index(index_type):
    class Faulty(EffectLedger):
        def __init__(self):
            super().__init__()
            self._index = index_type()

    return Faulty


class DisposesForwards(EffectLedger):
    def _dispose_all(self, records, cause):
        changes = []
        for record in list((records or {}).values()):
            changes += self.dispose(record.handle, cause=cause).changes
        return tuple(changes)


class ReusesAHandle(EffectLedger):
    def dispose(self, handle, **options):
        disposed = super().dispose(handle, **options)
        if handle == self._next_handle - 1:
            self._next_handle = handle
        return disposed


class AcceptsBeforeItValidates(EffectLedger):
    def accept(self, owner, binding, registration, **options):
        try:
            return super().accept(owner, binding, registration, **options)
        except LedgerError:
            kind, realm = registration.kind, binding.realm
            table = self._index.tables.get(kind if realm is None else (kind, realm))
            record = EffectRecord(self._next_handle, owner, binding, registration)
            self._index.push(record, table, (table or {}).get(registration.key))
            self._next_handle += 1
            raise


class ConsumesAHandleWhenItRefuses(EffectLedger):
    def accept(self, *args, **options):
        try:
            return super().accept(*args, **options)
        except LedgerError:
            self._next_handle += 1
            raise


class ForgetsTheRealmInAccepting(EffectLedger):
    def accept(self, owner, binding, registration, **options):
        return super().accept(owner, ScopeBinding.setup(binding.scope), registration, **options)


class ForgetsTheRealmInLookingUp(EffectLedger):
    def active(self, kind, key, *, run_id=None, request_id=None):
        return super().active(kind, key, run_id=run_id)


FAULTS = {
    "restore to the wrong level": with_index(RestoresTheLowest),
    "dispose forwards": DisposesForwards,
    "reuse a handle": ReusesAHandle,
    "keep an index entry": with_index(KeepsTheOwnersEntry),
    "keep an empty bucket": with_index(KeepsTheEmptyBucket),
    "accept before validating": AcceptsBeforeItValidates,
    "consume a handle when refusing": ConsumesAHandleWhenItRefuses,
    "forget the realm in accepting": ForgetsTheRealmInAccepting,
    "forget the realm in looking up": ForgetsTheRealmInLookingUp,
    "replace on top instead of in place": with_index(ReplacesOnTop),
}


def search(ledger):
    """Drive this ledger against the model with the public answers alone, without a look inside."""
    namespace = {"ledger_type": ledger, "inside_is_consistent": None}
    quick = settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=100,
        stateful_step_count=20,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(type("LedgerMachine", (LedgerMachine,), namespace), settings=quick)


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault):
    with pytest.raises((AssertionError, LedgerError, pytest.fail.Exception)):
        search(FAULTS[fault])


def test_the_same_search_finds_nothing_in_the_ledger_itself():
    search(EffectLedger)
