"""A naive model of the ledger, and a state machine that drives both and compares every answer after each step.

The model is one list of records in stacking order; it has no index and looks through all of it for each answer.
"""

from __future__ import annotations

import contextlib
from collections import deque

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from ledger_invariants import check_invariants

from trio_exthost.effects import (
    Change,
    ChangeAction,
    Conflict,
    Disposal,
    DisposeCause,
    DisposedHandle,
    EffectKind,
    EffectLedger,
    EffectOwner,
    EffectView,
    LedgerError,
    OverrideDenied,
    Registration,
    Scope,
    ScopeBinding,
    UnknownHandle,
)

OWNERS = [EffectOwner("a", "s", 1), EffectOwner("a", "s", 2), EffectOwner("b", "s", 1), EffectOwner("c", "s", 1)]
BINDINGS = [
    ScopeBinding.session(),
    ScopeBinding.process(),
    ScopeBinding.setup(Scope.RUN),
    ScopeBinding.setup(Scope.REQUEST),
    ScopeBinding.run("r1"),
    ScopeBinding.run("r2"),
    ScopeBinding.request("q1"),
    ScopeBinding.request("q2"),
]
KINDS = [EffectKind.TOOL, EffectKind.COMMAND, EffectKind.PROVIDER]
KEYS = ["x", "y"]
PLACES = [(None, None), ("r1", None), ("r2", None), ("r1", "q1"), ("r2", "q2"), (None, "q1"), ("r9", "q9")]
"""From where one looks: two overlapping runs, each with a request of its own."""

owners = st.sampled_from(OWNERS)
bindings = st.sampled_from(BINDINGS)
causes = st.sampled_from(DisposeCause)
registrations = st.builds(
    Registration, st.sampled_from(KINDS), st.sampled_from(KEYS), st.integers(0, 3), st.integers(1, 9), st.booleans()
)
bound = st.tuples(bindings, registrations)


def slot(record) -> tuple:
    return record.registration.kind, record.registration.key, record.binding.realm


class Row:
    """A record as the model has it."""

    def __init__(self, handle, owner, binding, registration) -> None:
        self.handle, self.owner, self.binding, self.registration = handle, owner, binding, registration

    def plain(self) -> tuple:
        return self.handle, self.owner, self.binding, self.registration


class Model:
    """What the ledger should do, in the plainest way."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.issued = 0

    def _refusal(self, rows, row, authorized) -> type[LedgerError] | None:
        if row.registration.override:
            allowed = authorized and row.registration.kind in {EffectKind.TOOL, EffectKind.COMMAND}
            return None if allowed else OverrideDenied
        below = rows[: rows.index(row)]
        return Conflict if any(slot(other) == slot(row) for other in below) else None

    def accept(self, owner, binding, registration, authorized) -> type[LedgerError] | None:
        row = Row(self.issued + 1, owner, binding, registration)
        if refusal := self._refusal([*self.rows, row], row, authorized):
            return refusal
        self.rows.append(row)
        self.issued += 1
        return None

    def replace_owner(self, old, new, batch, authorized) -> type[LedgerError] | None:
        waiting: dict[tuple, deque[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.handle):
            if row.owner == old:
                waiting.setdefault(slot(row), deque()).append(row)
        rows, fresh = list(self.rows), []
        for number, (binding, registration) in enumerate(batch, 1):
            row = Row(self.issued + number, new, binding, registration)
            queue = waiting.get(slot(row))
            if queue:
                place = queue.popleft()
                rows[rows.index(place)] = row
                fresh.append((row, authorized or place.registration.override))
            else:
                rows.append(row)
                fresh.append((row, authorized))
        leftover = [row for queue in waiting.values() for row in queue]
        rows = [row for row in rows if row not in leftover]
        for row, allowed in fresh:
            if refusal := self._refusal(rows, row, allowed):
                return refusal
        self.rows = rows
        self.issued += len(batch)
        return None

    def remove(self, wanted) -> list[int]:
        gone = [row.handle for row in self.rows if wanted(row)]
        self.rows = [row for row in self.rows if not wanted(row)]
        return sorted(gone, reverse=True)

    def in_acceptance_order(self, wanted=lambda row: True) -> list[tuple]:
        return [row.plain() for row in sorted(self.rows, key=lambda row: row.handle) if wanted(row)]

    def active(self, kind, key, run_id, request_id) -> tuple | None:
        for realm in ((Scope.REQUEST, request_id), (Scope.RUN, run_id), None):
            for row in reversed(self.rows):
                if slot(row) == (kind, key, realm):
                    return row.plain()
        return None

    def active_records(self, kind, run_id, request_id) -> list[tuple]:
        keys = {row.registration.key for row in self.rows}
        found = [self.active(kind, key, run_id, request_id) for key in keys]
        return sorted((each for each in found if each is not None), key=lambda each: each[0])


def plain(record) -> tuple | None:
    return None if record is None else (record.handle, record.owner, record.binding, record.registration)


def plains(records) -> list[tuple]:
    return [plain(record) for record in records]


class LedgerMachine(RuleBasedStateMachine):
    """Everything one can do to a ledger, with overrides often enough for stacks of three and more."""

    ledger_type: type[EffectLedger] = EffectLedger

    def __init__(self) -> None:
        super().__init__()
        self.ledger = self.ledger_type()
        self.model = Model()
        self.view = EffectView()

    # --- what one can do ---

    @contextlib.contextmanager
    def refused_with(self, refusal, owner):
        """The block raises exactly this, about this owner; or nothing, if it is None."""
        error = None
        try:
            yield
        except LedgerError as caught:
            error = caught
        assert (error and type(error)) is refusal
        assert error is None or error.extension == owner.extension_id

    def accept_and_compare(self, owner, binding, registration, authorized) -> None:
        refusal = self.model.accept(owner, binding, registration, authorized)
        with self.refused_with(refusal, owner):
            accepted = self.ledger.accept(owner, binding, registration, override_authorized=authorized)
        if refusal is not None:
            return
        assert accepted.handle == self.model.issued
        self.follow(accepted.changes, gone=[], new=[accepted.handle])

    @rule(owner=owners, where=bound, authorized=st.booleans())
    def accept(self, owner, where, authorized) -> None:
        self.accept_and_compare(owner, *where, authorized)

    @rule(owner=owners, binding=st.sampled_from(BINDINGS[:2]))
    def stack_up(self, owner, binding) -> None:
        self.accept_and_compare(owner, binding, Registration(EffectKind.TOOL, "x", 0, 1, override=True), True)

    @rule(data=st.data(), cause=causes)
    def dispose(self, data, cause) -> None:
        handle = data.draw(st.integers(0, self.model.issued + 1))
        if not 0 < handle <= self.model.issued:
            with pytest.raises(UnknownHandle):
                self.ledger.dispose(handle, cause=cause)
            return
        gone = self.model.remove(lambda row: row.handle == handle)
        disposed = self.ledger.dispose(handle, cause=cause)
        assert disposed.outcome is (Disposal.DISPOSED if gone else Disposal.ALREADY_DISPOSED)
        self.follow(disposed.changes, gone=gone, cause=cause)

    @rule(data=st.data(), value=st.integers(4, 9))
    def update(self, data, value) -> None:
        handle = data.draw(st.integers(0, self.model.issued + 1))
        row = next((row for row in self.model.rows if row.handle == handle), None)
        if row is None:
            with pytest.raises(DisposedHandle if 0 < handle <= self.model.issued else UnknownHandle):
                self.ledger.update(handle, value)
            return
        old = row.registration
        row.registration = Registration(old.kind, old.key, value, old.sequence, old.override)
        updated = self.ledger.update(handle, value)
        assert (plain(updated.record), updated.previous.registration) == (row.plain(), old)
        assert updated.changes == (Change(ChangeAction.UPDATED, updated.record),)
        self.view.apply(updated.changes)

    @rule(owner=owners, cause=causes)
    def dispose_owner(self, owner, cause) -> None:
        gone = self.model.remove(lambda row: row.owner == owner)
        self.follow(self.ledger.dispose_owner(owner, cause=cause), gone=gone, cause=cause)

    @rule(binding=st.sampled_from([each for each in BINDINGS if each.scope < Scope.RUN or each.id]), cause=causes)
    def dispose_scope(self, binding, cause) -> None:
        gone = self.model.remove(lambda row: row.binding == binding)
        self.follow(self.ledger.dispose_scope(binding.scope, binding.id, cause=cause), gone=gone, cause=cause)

    @precondition(lambda self: len(self.model.rows) > 5)
    @rule(cause=causes)
    def dispose_all(self, cause) -> None:
        gone = self.model.remove(lambda row: True)
        self.follow(self.ledger.dispose_all(cause=cause), gone=gone, cause=cause)

    @rule(data=st.data(), old=owners, new=owners, extra=st.lists(bound, max_size=3), authorized=st.booleans())
    def replace_owner(self, data, old, new, extra, authorized) -> None:
        held = [(row.binding, row.registration) for row in self.model.rows if row.owner == old]
        kept = data.draw(st.lists(st.sampled_from(held), max_size=len(held))) if held else []
        batch = data.draw(st.permutations(kept + extra))
        gone = sorted((row.handle for row in self.model.rows if row.owner == old), reverse=True)
        first = self.model.issued + 1
        refusal = self.model.replace_owner(old, new, batch, authorized)
        with self.refused_with(refusal, new):
            replaced = self.ledger.replace_owner(old, new, iter(batch), override_authorized=authorized)
        if refusal is not None:
            return
        assert replaced.handles == tuple(range(first, first + len(batch)))
        self.follow(replaced.changes, gone=gone, new=list(replaced.handles), cause=DisposeCause.RELOAD)

    def follow(self, changes, *, gone, new=(), cause=None) -> None:
        """The changes name exactly what came and went, in order, and never bring back what goes with them."""
        disposed = [change for change in changes if change.action is ChangeAction.DISPOSED]
        assert [change.record.handle for change in disposed] == gone
        assert all(change.cause is cause for change in disposed)
        assert [c.record.handle for c in changes if c.action is ChangeAction.ACCEPTED] == list(new)
        others = [c for c in changes if c.action is not ChangeAction.DISPOSED]
        assert all(change.cause is None for change in others)
        assert not {change.record.handle for change in others} & set(gone)
        self.view.apply(changes)

    # --- what must be the same ---

    @invariant()
    def same_answers_for_each_key(self) -> None:
        for run_id, request_id in PLACES:
            for kind in KINDS:
                expected = self.model.active_records(kind, run_id, request_id)
                for each in (self.ledger, self.view):
                    assert plains(each.active_records(kind, run_id=run_id, request_id=request_id)) == expected
                for key in KEYS:
                    expected_top = self.model.active(kind, key, run_id, request_id)
                    for each in (self.ledger, self.view):
                        assert plain(each.active(kind, key, run_id=run_id, request_id=request_id)) == expected_top

    @invariant()
    def same_records(self) -> None:
        model, ledger = self.model, self.ledger
        everything = model.in_acceptance_order()
        assert ledger.active_count == self.view.active_count == len(everything)
        assert plains(self.view.records()) == everything
        assert plains(ledger.record(each[0]) for each in everything) == everything
        for row in model.rows:
            under = [each for each in model.rows[: model.rows.index(row)] if slot(each) == slot(row)]
            assert plain(ledger.below(row.handle)) == (under[-1].plain() if under else None)
        for owner in OWNERS:
            expected = model.in_acceptance_order(lambda row, owner=owner: row.owner == owner)
            assert plains(ledger.records_for_owner(owner)) == expected
        for binding in BINDINGS:
            expected = model.in_acceptance_order(lambda row, binding=binding: row.binding == binding)
            assert plains(ledger.records_for_scope(binding.scope, binding.id)) == expected

    @invariant()
    def same_counts(self) -> None:
        rows, counts = self.model.rows, self.ledger.statistics()
        assert (counts.held, counts.issued, counts.disposed) == (
            len(rows),
            self.model.issued,
            self.model.issued - len(rows),
        )
        assert counts.in_force == len({slot(row) for row in rows}) == counts.held - counts.displaced
        assert counts.owners == len({row.owner for row in rows})
        assert counts.scopes == len({(row.binding.scope, row.binding.id) for row in rows})

    @invariant()
    def inside_is_consistent(self) -> None:
        check_invariants(self.ledger)
