"""Operations on a session's state, in the order in which they count, before any store has them.

A group is what one transaction of a store will hold. It works on values that never change, so a group whose transaction
fails is simply dropped, and who looks at the session meanwhile sees it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from trio_exthost.errors import StateRefused
from trio_exthost.state.actions import Action
from trio_exthost.state.applying import apply
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import Batch, StoredBatch, encode_batch
from trio_exthost.state.limits import StateLimits
from trio_exthost.state.migration import build_migration
from trio_exthost.state.projection import NO_PROJECTIONS, Projection
from trio_exthost.state.tree import Position, Tree


@attrs.frozen(kw_only=True)
class Commit:
    """Store a batch under the selected position."""

    extension: str
    """Whose it is."""
    schema: int
    """Its `state_schema`; `check_may_store` gives it."""
    actions: tuple[Action, ...]
    """In the order in which they count."""
    sequence: int = 0
    """The session's number of what they came with."""


@attrs.frozen(kw_only=True)
class Migrate:
    """Store what a migration returned, with its marker."""

    base: Projection
    """The state whose values the handler got; refused with `conflict` if another one is there now."""
    state: object
    """What it returned."""
    to_schema: int
    """The extension's `state_schema`."""
    sequence: int = 0
    """The session's number of the invocation."""


@attrs.frozen
class Advance:
    """A new entry of the transcript, after the selected position; it is selected now."""

    entry_id: str
    """The embedder's id of it; new in this session."""


@attrs.frozen
class Checkout:
    """Go to another position."""

    entry_id: str
    """Where to; the empty one is the beginning."""


Operation: TypeAlias = Commit | Migrate | Advance | Checkout
Record: TypeAlias = Position | StoredBatch
"""What a store appends."""


@attrs.frozen(kw_only=True)
class Branches:
    """A session's state at one moment: its tree, and each extension's state on the selected branch."""

    tree: Tree = attrs.field(factory=Tree)
    """All positions."""
    projections: Mapping[str, Projection] = NO_PROJECTIONS
    """By extension; of those that have stored something on this branch."""

    def projection(self, extension: str) -> Projection:
        """What this extension has stored; an empty one if nothing."""
        return self.projections.get(extension) or Projection(extension=extension)


class Group:
    """Operations that are to be stored together, though each stands or falls by itself."""

    def __init__(self, before: Branches, limits: StateLimits) -> None:
        """Begin after this state."""
        self.after = before
        """The state with all operations of the group; in force when the store has the records."""
        self.records: list[Record] = []
        """What the store is to append, in this order."""
        self._limits = limits

    def commit(self, commit: Commit) -> Committed:
        """Take a batch into the group.

        Raises:
          StateRefused: As `apply`. The group is as it was.
        """
        applied = apply(
            self.after.projection(commit.extension), commit.actions,
            schema=commit.schema, sequence=commit.sequence, limits=self._limits,
        )  # fmt: skip
        if applied.batch is not None:
            self._append(applied.projection, applied.batch)
        return applied.committed

    def migrate(self, migrate: Migrate) -> Committed:
        """Take a migration into the group.

        Raises:
          StateRefused: As `build_migration`; with `conflict` if the state is not the one that was migrated. The group
            is as it was.
        """
        extension = migrate.base.extension
        if self.after.projection(extension) != migrate.base:
            raise StateRefused(
                "its state has become another one while it was migrated", code="conflict", extension=extension,
                hint="migrate what is there now",
            )  # fmt: skip
        migrated = build_migration(
            migrate.base, migrate.state,
            to_schema=migrate.to_schema, sequence=migrate.sequence, limits=self._limits,
        )  # fmt: skip
        self._append(migrated.projection, migrated.batch)
        return migrated.committed

    def advance(self, entry_id: str) -> Position:
        """Take a new position into the group.

        Raises:
          PositionError: As `Tree.advance`. The group is as it was.
        """
        tree = self.after.tree.advance(entry_id)
        self.records.append(tree.selected)
        self.after = attrs.evolve(self.after, tree=tree)
        return tree.selected

    def select(self, branches: Branches) -> None:
        """Go on at another position.

        Args:
          branches: The state there, with that position selected. The group must hold no record yet.
        """
        self.after = branches

    def _append(self, projection: Projection, batch: Batch) -> None:
        tree = self.after.tree
        stored = StoredBatch(tree.next_row, tree.selected.row, batch.sequence, encode_batch(batch))
        self.records.append(stored)
        projections = {**self.after.projections, batch.extension: projection}
        self.after = Branches(tree=tree.with_row(), projections=projections)
