"""What must hold inside a ledger between two calls."""

from __future__ import annotations

from trio_exthost.effects import EffectLedger


def check_invariants(ledger: EffectLedger) -> None:
    """Every table says the same, in order of acceptance, and nothing is empty, left over or unreachable."""
    index = ledger._index
    records = index.records
    assert [record.handle for record in records.values()] == list(records) == sorted(records)
    assert all(0 < handle < ledger._next_handle for handle in records)
    by_owner: dict = {}
    by_place: dict = {}
    for handle, record in records.items():
        by_owner.setdefault(record.owner, {})[handle] = record
        by_place.setdefault(record.binding.place, {})[handle] = record
    for table, expected in ((index.owners, by_owner), (index.bindings, by_place)):
        assert table == expected
        assert all(list(bucket) == sorted(bucket) for bucket in table.values())
    found = set()
    for name, table in index.tables.items():
        assert table
        for key, top in table.items():
            assert top.handle not in index.above
            record = top
            while record is not None:
                realm, kind = record.binding.realm, record.registration.kind
                assert (kind if realm is None else (kind, realm), record.registration.key) == (name, key)
                assert records[record.handle] is record
                found.add(record.handle)
                below = index.below.get(record.handle)
                if below is not None:
                    assert record.registration.override
                    assert index.above[below.handle] is record
                record = below
    assert found == set(records)
    assert len(index.above) == len(index.below) == len(records) - sum(map(len, index.tables.values()))
