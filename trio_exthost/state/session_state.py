"""A session's durable state over its store: what stands, and how a group of operations comes to stand.

Two steps, so that a program with an event loop never waits for a disk on its loop and never sees half a change:
`write` blocks until the store has the operations and changes nothing that can be seen; `publish` makes them seen.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from trio_exthost.errors import StateError, StoreFailed
from trio_exthost.state.branches import Advance, Branches, Commit, Group, Migrate, Operation, Record
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import StoredBatch
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.projection import Projection, replay
from trio_exthost.state.store import Compaction, SessionStore
from trio_exthost.state.tree import Position, Tree, path_to

Outcome: TypeAlias = Committed | Position | StateError
"""What became of an operation: of a commit or a migration, of an advance or a checkout, or why nothing."""


@attrs.frozen
class Written:
    """A group that the store has, as far as its outcomes say."""

    outcomes: tuple[Outcome, ...]
    """One for each operation, in their order. Errors are to be raised to whoever asked; each is an object of its own."""
    after: Branches = attrs.field(repr=False)
    """The state with all that was stored."""


class SessionState:
    """One session's state. `write`, `fork`, `compact` and `close` block, and one of them runs at a time.

    What can be read (`projection`, `tree`, ...) changes in `publish` alone, and all of it at once.
    """

    def __init__(self, store: SessionStore, *, limits: StateLimits = DEFAULT_LIMITS) -> None:
        """Read what the store has, with the position selected that was selected last. Blocks.

        Args:
          store: An open one; `close` closes it. If this raises, it is closed.
          limits: How much each extension may store.

        Raises:
          StoreFailed: It could not be read.
          StoreDamaged: It is damaged.
        """
        try:
            stored = store.load_tree()
            branches = Branches(tree=stored.tree, projections=_load(store, stored.tree.selected))
        except BaseException:  # whatever it is, nobody else would close it
            store.close()
            raise
        self._store = store
        self._limits = limits
        self._seen = self._stored = branches
        self.last_sequence: int = stored.last_sequence
        """The highest sequence that a batch was stored with when the session was opened; new ones begin above it."""

    @property
    def session_id(self) -> str:
        """Whose state it is."""
        return self._store.session_id

    @property
    def tree(self) -> Tree:
        """All positions, and the selected one."""
        return self._seen.tree

    @property
    def projections(self) -> Mapping[str, Projection]:
        """By extension; of those that have stored something on the selected branch."""
        return self._seen.projections

    def projection(self, extension: str) -> Projection:
        """What this extension has stored on the selected branch; an empty one if nothing."""
        return self._seen.projection(extension)

    def write(self, operations: Sequence[Operation]) -> Written:
        """Store these operations, in their order, in as few transactions as can be. Blocks; nothing is seen of it yet.

        Each stands or falls by itself: a refused one changes nothing for the others, but for what they find. All of a
        transaction fail with it. A checkout begins a transaction, as it reads what is stored.

        Args:
          operations: What has come together while the last group was written.

        Returns:
          What became of each, for `publish`. Whatever it says was stored is.
        """
        work = _Writing(self._store, self._stored, self._limits)
        for operation in operations:
            work.take(operation)
        work.flush()
        self._stored = work.stored
        return Written(tuple(work.outcomes), work.stored)

    def publish(self, written: Written) -> None:
        """Let the group be seen. Does not block."""
        self._seen = written.after

    def fork(self, entry_id: str, target: SessionStore) -> None:
        """Copy the branch that ends in a position, with all its positions, into the store of another session. Blocks.

        The position is selected there. All of it is copied or nothing.

        Args:
          entry_id: The position; the empty one for the beginning, which has what was stored before the first.
          target: An open store without positions and batches; the caller keeps and closes it.

        Raises:
          PositionError: There is no such position.
          StoreFailed: One of the stores failed, or `target` holds something already.
        """
        position = self._stored.tree.find(entry_id)
        if target.load_tree().tree.next_row > 1:
            raise StoreFailed(f"session {target.session_id!r} has a state already", hint="fork into a new session id")
        records: list[Record] = [each for each in position.way() if each.parent is not None]
        records += self._store.load_branch(path_to(position))
        target.append_group(sorted(records, key=lambda each: each.row), selected=position.row)

    def compact(self) -> Compaction:
        """Drop what no position's state needs any more; the state is as before. Blocks, and may take long.

        Raises:
          StoreFailed: As `SessionStore.compact`.
        """
        return self._store.compact()

    def close(self) -> None:
        """Close the store. What is read goes on to be readable."""
        self._store.close()

    def history(self) -> Iterator[StoredBatch]:
        """All stored batches of all branches, in the order of rows; `decode_batch` reads one. Blocks while it runs.

        Raises:
          StoreFailed: It could not be read.
        """
        return self._store.load_all()


def _load(store: SessionStore, position: Position) -> Mapping[str, Projection]:
    return replay(each.body for each in store.load_branch(path_to(position)))


class _Writing:
    """One call of `write`: the transaction that is being gathered, and what became of the operations so far."""

    def __init__(self, store: SessionStore, before: Branches, limits: StateLimits) -> None:
        self.stored = before
        self.outcomes: list[Outcome] = []
        self._store = store
        self._limits = limits
        self._group = Group(before, limits)
        self._first = 0
        """Index of the first outcome that belongs to the group."""

    def take(self, operation: Operation) -> None:
        try:
            outcome = self._perform(operation)
        except StateError as exc:
            outcome = exc
        self.outcomes.append(outcome)

    def flush(self) -> None:
        """Store what was gathered; on failure the operations of the group fail, each with an error of its own."""
        group = self._group
        if group.after is not self.stored:
            try:
                self._store.append_group(group.records, selected=group.after.tree.selected.row)
            except StoreFailed as exc:
                for index in range(self._first, len(self.outcomes)):
                    if not isinstance(self.outcomes[index], StateError):
                        self.outcomes[index] = copy.copy(exc)
            else:
                self.stored = group.after
        self._group = Group(self.stored, self._limits)
        self._first = len(self.outcomes)

    def _perform(self, operation: Operation) -> Outcome:
        match operation:
            case Commit():
                return self._group.commit(operation)
            case Migrate():
                return self._group.migrate(operation)
            case Advance():
                return self._group.advance(operation.entry_id)
            case _:
                self.flush()
                tree = self.stored.tree.checkout(operation.entry_id)
                self._group.select(Branches(tree=tree, projections=_load(self._store, tree.selected)))
                return tree.selected
