"""The ledger: everything the extensions of a session do to their host, with what it takes to undo it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trio_exthost.effects.index import RecordIndex
from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.records import (
    Accepted,
    Change,
    ChangeAction,
    Disposal,
    DisposeCause,
    Disposed,
    EffectRecord,
    LedgerStatistics,
    Registration,
    Replaced,
    Updated,
)
from trio_exthost.effects.refusals import conflict, not_held, override_denied
from trio_exthost.effects.replacement import plan_replacement, replace
from trio_exthost.effects.scopes import EffectOwner, Scope, ScopeBinding
from trio_exthost.errors import UnknownHandle

# The class attribute of an enum takes several times as long to find as a name of the module.
_RESTORED = ChangeAction.RESTORED
_DISPOSED = ChangeAction.DISPOSED
_GONE = Disposal.DISPOSED
_ALREADY_GONE = Disposed(Disposal.ALREADY_DISPOSED)


class EffectLedger:
    """The records of one session: what is registered, by whom, where it is active, and what it displaced.

    A key is unique per kind and realm; a realm is one run, one request, or everything that is unbound. A record that
    overrides stands on those it displaced, and when it goes, the one below is in force again. Handles grow from 1 and
    are never used again; of a record that was disposed of, nothing stays.

    Every method that changes something validates first, then does all of it or nothing, and returns what it did as
    ordered changes; `EffectView` applies them. Nothing waits and nothing is called back. Not thread-safe: one thread
    at a time. The cost of one record does not depend on how many others there are.
    """

    __slots__ = ("_index", "_next_handle")

    def __init__(self) -> None:
        """Hold nothing; the first handle will be 1."""
        self._index = RecordIndex()
        self._next_handle = 1

    # --- look-up -----------------------------------------------------------------------------------------------------

    @property
    def active_count(self) -> int:
        """Records held: those in force, and those that another overrides."""
        return len(self._index.records)

    def record(self, handle: int) -> EffectRecord:
        """The record with this handle, in force or displaced.

        Raises:
          DisposedHandle: It was disposed of.
          UnknownHandle: There has been no such handle.
        """
        record = self._index.records.get(handle)
        if record is None:
            raise not_held(handle, self._next_handle - 1)
        return record

    def active(
        self, kind: EffectKind, key: str, *, run_id: str | None = None, request_id: str | None = None
    ) -> EffectRecord | None:
        """The record in force for a key, seen from a run and a request.

        What is bound to the request wins over what is bound to the run, and that over what is unbound.

        Args:
          kind: What is looked for.
          key: Its key, folded as it was registered.
          run_id: The run one is in, if any.
          request_id: The request one is in, if any.
        """
        top = self._index.top
        if request_id is not None and (record := top(kind, key, (Scope.REQUEST, request_id))) is not None:
            return record
        if run_id is not None and (record := top(kind, key, (Scope.RUN, run_id))) is not None:
            return record
        return top(kind, key, None)

    def active_records(
        self, kind: EffectKind, *, run_id: str | None = None, request_id: str | None = None
    ) -> tuple[EffectRecord, ...]:
        """All records of a kind that `active` would find from this run and request, in order of acceptance."""
        tables = self._index.tables
        found = dict(tables.get(kind, ()))
        if run_id is not None:
            found.update(tables.get((kind, (Scope.RUN, run_id)), ()))
        if request_id is not None:
            found.update(tables.get((kind, (Scope.REQUEST, request_id)), ()))
        return tuple(sorted(found.values(), key=_by_handle))

    def records_for_owner(self, owner: EffectOwner) -> tuple[EffectRecord, ...]:
        """All records of an instance, in force or displaced, in order of acceptance."""
        return tuple(self._index.owners.get(owner, {}).values())

    def records_for_scope(self, scope: Scope, id: str | None = None) -> tuple[EffectRecord, ...]:
        """All records whose binding is this one, in order of acceptance.

        Args:
          scope: The scope they were registered for.
          id: The run or request they are bound to; None for what is unbound.

        Raises:
          MissingScopeId: The id is empty.
          ValueError: PROCESS or SESSION with an id.
        """
        binding = ScopeBinding.setup(scope) if id is None else ScopeBinding(scope, id)
        return tuple(self._index.bindings.get(binding.place, {}).values())

    def statistics(self) -> LedgerStatistics:
        """Counts of this moment; takes longer the more runs and requests have records of their own."""
        index = self._index
        held, displaced, issued = len(index.records), len(index.above), self._next_handle - 1
        return LedgerStatistics(
            held=held,
            in_force=held - displaced,
            displaced=displaced,
            owners=len(index.owners),
            scopes=len(index.bindings),
            issued=issued,
            disposed=issued - held,
        )

    # --- acceptance --------------------------------------------------------------------------------------------------

    def accept(
        self,
        owner: EffectOwner,
        binding: ScopeBinding,
        registration: Registration,
        *,
        override_authorized: bool = False,
    ) -> Accepted:
        """Take a registration in.

        Args:
          owner: Whose it is.
          binding: Where it is active.
          registration: What it is.
          override_authorized: Whether the operator lets this owner override this key; a request for it gives no
            authority.

        Returns:
          The new record, what it displaced, and both as changes.

        Raises:
          OverrideDenied: It asks for an override without authority, or of a kind without overrides, be the key free
            or not.
          Conflict: The key is taken in this kind and realm, and it does not ask for an override.
        """
        index = self._index
        realm = binding.realm
        table = index.tables.get(registration.kind if realm is None else (registration.kind, realm))
        holder = None if table is None else table.get(registration.key)
        if registration.override:
            if not (override_authorized and registration.kind.can_be_overridden):
                raise override_denied(owner, binding, registration, holder)
        elif holder is not None:
            raise conflict(owner, binding, registration, holder)
        handle = self._next_handle
        record = EffectRecord(handle, owner, binding, registration)
        self._next_handle = handle + 1
        index.push(record, table, holder)
        return Accepted(handle, record, holder)

    def update(self, handle: int, value: Any) -> Updated:
        """Give a record another value. Its kind, key, binding, sequence and place in its stack stay, and so does its handle.

        Raises:
          DisposedHandle: It was disposed of.
          UnknownHandle: There has been no such handle.
        """
        old = self.record(handle)
        registration = msgspec.structs.replace(old.registration, value=value)
        new = msgspec.structs.replace(old, registration=registration)
        self._index.renew(old, new)
        return Updated(new, old)

    def below(self, handle: int) -> EffectRecord | None:
        """The record that this one displaced and that would be in force without it, or None.

        Raises:
          DisposedHandle: It was disposed of.
          UnknownHandle: There has been no such handle.
        """
        return self._index.below.get(self.record(handle).handle)

    def replace_owner(
        self,
        old: EffectOwner,
        new: EffectOwner,
        registrations: Iterable[tuple[ScopeBinding, Registration]],
        *,
        override_authorized: bool = False,
    ) -> Replaced:
        """Swap all records of an instance for those of its successor, in one step.

        A registration whose kind, key and realm the old instance holds takes the place of that record in its stack,
        whether on top or covered; of several with the same key the first takes the place of the first. The others are
        accepted as by `accept`. What the old instance holds beyond that is disposed of with cause RELOAD. All new
        records get new handles.

        Args:
          old: The instance that goes; it may hold nothing.
          new: The instance that takes over; what it holds already stays.
          registrations: Each with its binding, in the order in which they are to be accepted.
          override_authorized: As for `accept`, for all registrations. One that takes the place of an override needs
            no more authority than that had.

        Raises:
          OverrideDenied: One asks for an override that is neither authorized nor inherited.
          Conflict: One would stand on a record that remains, or on another new one, without asking for an override.
        """
        plan = plan_replacement(self._index, old, new, list(registrations), override_authorized=override_authorized)
        replaced = replace(self._index, plan, self._next_handle)
        self._next_handle += len(replaced.handles)
        return replaced

    def check_replacement(
        self, old: EffectOwner, new: EffectOwner, registrations: Iterable[tuple[ScopeBinding, Registration]]
    ) -> None:
        """Raise what `replace_owner` with authority for every override would; change nothing."""
        plan_replacement(self._index, old, new, list(registrations), override_authorized=True)

    # --- disposal ----------------------------------------------------------------------------------------------------

    def dispose(self, handle: int, cause: DisposeCause = DisposeCause.HANDLE) -> Disposed:
        """Take a record out; a second time is no error and changes nothing.

        Disposing of the record in force restores the one below it. Disposing of a displaced record changes nothing
        visible.

        Raises:
          UnknownHandle: There has been no such handle.
        """
        record = self._index.records.get(handle)
        if record is None:
            error = not_held(handle, self._next_handle - 1)
            if isinstance(error, UnknownHandle):
                raise error
            return _ALREADY_GONE
        return Disposed(_GONE, record, self._index.remove(record), cause)

    def dispose_owner(self, owner: EffectOwner, cause: DisposeCause = DisposeCause.OWNER) -> tuple[Change, ...]:
        """Take out all records of an instance, newest first.

        Of several records in one stack none comes into force on the way: what remains below them is restored at once.
        """
        return self._dispose_all(self._index.owners.get(owner), cause)

    def dispose_scope(
        self,
        scope: Scope,
        id: str | None = None,
        cause: DisposeCause = DisposeCause.SCOPE,
    ) -> tuple[Change, ...]:
        """Take out all records bound to this run or request, or of this wider scope, newest first.

        The end of one run does not touch what is unbound, so RUN and REQUEST need an id here.

        Raises:
          MissingScopeId: RUN or REQUEST without an id.
          ValueError: PROCESS or SESSION with an id.
        """
        return self._dispose_all(self._index.bindings.get(ScopeBinding(scope, id).place), cause)

    def dispose_all(self, cause: DisposeCause = DisposeCause.SHUTDOWN) -> tuple[Change, ...]:
        """Take out everything, newest first; handles go on growing."""
        return self._dispose_all(self._index.records, cause)

    def _dispose_all(self, records: dict[int, EffectRecord] | None, cause: DisposeCause) -> tuple[Change, ...]:
        if not records:
            return ()
        changes = []
        for record, restored in self._index.remove_all(reversed(records.values())):
            if restored is not None:
                changes.append(Change(_RESTORED, restored))
            changes.append(Change(_DISPOSED, record, cause))
        return tuple(changes)


def _by_handle(record: EffectRecord) -> int:
    return record.handle
