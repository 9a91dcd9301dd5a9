"""The tables in which the ledger finds records: by handle, by key, by owner, by binding.

Each key of a realm has a stack of records; only its top is in force. Nearly every stack is one record high, so the
table holds the top itself, and the neighbours in higher stacks stand in two side tables. Every operation on one
record takes constant time, also in the middle of a stack. Buckets are in order of acceptance because handles grow.
Empty buckets go at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.records import EffectRecord
from trio_exthost.effects.scopes import EffectOwner, Realm, Scope

TableName: TypeAlias = "EffectKind | tuple[EffectKind, Realm]"
"""One table per kind and realm; the kind alone names the table of what is unbound."""

_CHECK_AFTER = 256
"""Removals before the tables are looked through for memory to give back, at least."""
_SPARE_BYTES = 256
"""What a table may take per record; a dict that has just grown takes up to half of it."""

_Key = TypeVar("_Key")


def table_name(kind: EffectKind, realm: Realm | None) -> TableName:
    """The name of the table of this kind in this realm."""
    return kind if realm is None else (kind, realm)


class RecordIndex:
    """Every table of a ledger. It checks nothing: the ledger has validated before it calls."""

    __slots__ = ("_until_check", "above", "below", "bindings", "owners", "records", "tables")

    def __init__(self) -> None:
        """Hold nothing."""
        self.records: dict[int, EffectRecord] = {}
        self.tables: dict[TableName, dict[str, EffectRecord]] = {}
        self.owners: dict[EffectOwner, dict[int, EffectRecord]] = {}
        self.bindings: dict[Scope | Realm, dict[int, EffectRecord]] = {}
        self.above: dict[int, EffectRecord] = {}
        self.below: dict[int, EffectRecord] = {}
        self._until_check = _CHECK_AFTER

    def top(self, kind: EffectKind, key: str, realm: Realm | None) -> EffectRecord | None:
        """The record in force for this key in this realm, and in no other."""
        table = self.tables.get(kind if realm is None else (kind, realm))
        return None if table is None else table.get(key)

    def push(self, record: EffectRecord, table: dict[str, EffectRecord] | None, covered: EffectRecord | None) -> None:
        """Put a record on top of a stack.

        Args:
          record: The new record.
          table: The table of its kind and realm, or None if there is none yet; the caller has looked into it anyway.
          covered: The present top of its key in that table, if any.
        """
        handle, owner, registration = record.handle, record.owner, record.registration
        binding = record.binding
        place = binding.place
        if table is None:
            self.tables[table_name(registration.kind, binding.realm)] = {registration.key: record}
        else:
            table[registration.key] = record
        if covered is not None:
            self.below[handle] = covered
            self.above[covered.handle] = record
        self.records[handle] = record
        bucket = self.owners.get(owner)
        if bucket is None:
            self.owners[owner] = {handle: record}
        else:
            bucket[handle] = record
        bucket = self.bindings.get(place)
        if bucket is None:
            self.bindings[place] = {handle: record}
        else:
            bucket[handle] = record

    def remove(self, record: EffectRecord) -> EffectRecord | None:
        """Take a record out; return the one that is in force because of it, if any."""
        handle, owner, registration = record.handle, record.owner, record.registration
        binding = record.binding
        realm = binding.realm
        place = binding.place
        name = registration.kind if realm is None else (registration.kind, realm)
        table = self.tables[name]
        restored = None
        if self.above and (handle in self.below or handle in self.above):
            restored = self._unstack(record, table)
        else:
            del table[registration.key]
            if not table:
                del self.tables[name]
        del self.records[handle]
        bucket = self.owners[owner]
        del bucket[handle]
        if not bucket:
            del self.owners[owner]
        bucket = self.bindings[place]
        del bucket[handle]
        if not bucket:
            del self.bindings[place]
        self._until_check -= 1
        if not self._until_check:
            self._compact()
        return restored

    def _unstack(self, record: EffectRecord, table: dict[str, EffectRecord]) -> EffectRecord | None:
        """Take a record out of a stack of at least two; return the new top if it was the top."""
        covered = self.below.pop(record.handle, None)
        covering = self.above.pop(record.handle, None)
        if covering is None:
            assert covered is not None
            table[record.registration.key] = covered
            del self.above[covered.handle]
            return covered
        if covered is None:
            del self.below[covering.handle]
        else:
            self.below[covering.handle] = covered
            self.above[covered.handle] = covering
        return None

    def swap(self, old: EffectRecord, new: EffectRecord) -> None:
        """Put a record into the place that `old`, of the same kind, key and realm, has in its stack."""
        name, key = table_name(old.registration.kind, old.binding.realm), old.registration.key
        covered = self.below.pop(old.handle, None)
        covering = self.above.pop(old.handle, None)
        top = self.tables[name][key]
        self.tables[name][key] = old  # alone for a moment, so that it can be taken out and the other put in
        self.remove(old)
        self.push(new, self.tables.get(name), None)
        if covering is not None:
            self.tables[name][key] = top
            self.above[new.handle] = covering
            self.below[covering.handle] = new
        if covered is not None:
            self.below[new.handle] = covered
            self.above[covered.handle] = new

    def renew(self, old: EffectRecord, new: EffectRecord) -> None:
        """Put a record in the place of one with the same handle, owner, binding, kind and key."""
        handle = old.handle
        self.records[handle] = self.owners[old.owner][handle] = self.bindings[old.binding.place][handle] = new
        covering, covered = self.above.get(handle), self.below.get(handle)
        if covering is None:
            self.tables[table_name(old.registration.kind, old.binding.realm)][old.registration.key] = new
        else:
            self.below[covering.handle] = new
        if covered is not None:
            self.above[covered.handle] = new

    def remove_all(self, doomed: Iterable[EffectRecord]) -> list[tuple[EffectRecord, EffectRecord | None]]:
        """Take several records out, in the order given.

        Returns:
          Each record with the one that is in force because of it, if any. None of the doomed ones ever is: when the
          top of a stack goes, what is named is the first below it that outlives them all.
        """
        records = list(doomed)
        handles = {record.handle for record in records} if self.below else set()
        passed: set[int] = set()
        result = []
        for record in records:
            restored = self.remove(record)
            if record.handle in passed:
                restored = None
            while restored is not None and restored.handle in handles:
                passed.add(restored.handle)
                restored = self.below.get(restored.handle)
            result.append((record, restored))
        return result

    def _compact(self) -> None:
        """Give back the memory of what has gone: a dict that has shrunk keeps its size until it next grows.

        The next check is after half as many removals as there are records now. So what is kept is a small multiple of
        what is needed, and the checks cost each removal the same however many records there are.
        """
        self.records, self.above, self.below = _fitted(self.records), _fitted(self.above), _fitted(self.below)
        self.tables = {name: _fitted(table) for name, table in self.tables.items()}
        self.owners = {owner: _fitted(bucket) for owner, bucket in self.owners.items()}
        self.bindings = {place: _fitted(bucket) for place, bucket in self.bindings.items()}
        self._until_check = max(_CHECK_AFTER, len(self.records) // 2)


def _fitted(table: dict[_Key, EffectRecord]) -> dict[_Key, EffectRecord]:
    """The same table, made anew if it takes much more memory than its content needs."""
    return dict(table) if table.__sizeof__() > _SPARE_BYTES * (len(table) + 16) else table
