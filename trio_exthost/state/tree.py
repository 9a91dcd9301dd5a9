"""The tree of a session's positions: which entries of the embedder's transcript came after which.

A position is an entry of the transcript, under the embedder's own id. Batches are committed under the selected position and
belong to it: whoever comes back to it finds all of them. A child begins with what its parent had when the child was
made; what the parent gets later, the child never sees.

Positions and batches draw their rows from one count. So a branch is: of each position on the way, the batches below the
row at which the way leaves it; in the order of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from trio_exthost.effects.descriptors_fields import shown
from trio_exthost.errors import PositionError, StoreDamaged
from trio_exthost.state.table import Table

BEGINNING = ""
"""Names the beginning of the transcript, before its first entry."""
LAST_ROW = 2**63 - 1
"""No row is above it."""

_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")

Path: TypeAlias = tuple[tuple[int, int], ...]
"""A branch from the beginning: row of each position on it, and the row below which its batches belong to the branch."""


@attrs.frozen(eq=False)
class Position:
    """One entry of the transcript."""

    row: int
    """Its place in the order of the session; 0 for the beginning, above 0 for all others."""
    name: str
    """The embedder's id of it."""
    parent: Position | None = attrs.field(repr=False)
    """The entry before it; None for the beginning."""

    def way(self) -> Iterator[Position]:
        """This position, its parent, and so on to the beginning."""
        at: Position | None = self
        while at is not None:
            yield at
            at = at.parent


ROOT = Position(0, BEGINNING, None)
"""The beginning of every session."""


@attrs.frozen(kw_only=True)
class Tree:
    """All positions of a session, and the selected one. Never changes; the next one shares most of it."""

    positions: Table[Position] = attrs.field(factory=lambda: Table({BEGINNING: ROOT}), repr=False)
    """By name."""
    selected: Position = ROOT
    """Under which batches are committed now."""
    next_row: int = 1
    """What the next position or batch gets."""

    def find(self, name: str) -> Position:
        """The position of this name.

        Raises:
          PositionError: There is none.
        """
        position = self.positions.get(name)
        if position is None:
            raise PositionError(
                f"the session has no position {shown(name)}",
                hint="advance makes one; checkout and fork take an entry id that was advanced to, or the empty one "
                "for the beginning",
            )
        return position

    def advance(self, name: str) -> Tree:
        """The tree with a new position after the selected one, which is selected now.

        Raises:
          PositionError: There is one of that name already, or it cannot be a name.
        """
        if not _NAME.fullmatch(name):
            raise PositionError(f"an entry id must be 1 to 256 characters, none of control, not {name[:80]!r}")
        if name in self.positions:
            raise PositionError(f"the session has a position {shown(name)} already", hint="checkout goes back to it")
        position = Position(self.next_row, name, self.selected)
        positions = self.positions.draft()
        positions.set(name, position)
        return Tree(positions=positions.finish(), selected=position, next_row=self.next_row + 1)

    def checkout(self, name: str) -> Tree:
        """The tree with this position selected.

        Raises:
          PositionError: There is none.
        """
        return attrs.evolve(self, selected=self.find(name))

    def with_row(self) -> Tree:
        """The tree after a batch has taken the next row."""
        return attrs.evolve(self, next_row=self.next_row + 1)


def path_to(position: Position) -> Path:
    """The branch that ends in this position, with all batches that are committed under it."""
    steps: list[tuple[int, int]] = []
    until = LAST_ROW
    for each in position.way():
        steps.append((each.row, until))
        until = each.row
    return tuple(reversed(steps))


def read_tree(rows: Iterable[tuple[int, str, int]], *, selected: int, last_row: int) -> Tree:
    """The tree in what a store kept of it.

    Args:
      rows: Row, name and parent's row of each position but the beginning, in the order of rows.
      selected: Row of the selected position.
      last_row: The highest that a position or a batch has.

    Raises:
      StoreDamaged: They do not make a tree.
    """
    by_row = {0: ROOT}
    by_name = {BEGINNING: ROOT}
    for row, name, parent in rows:
        if row <= 0 or parent not in by_row or row in by_row or name in by_name:
            raise StoreDamaged(f"the position {shown(name)} in row {row}, after row {parent}, has no place in the tree")
        by_name[name] = by_row[row] = Position(row, name, by_row[parent])
    if selected not in by_row:
        raise StoreDamaged(f"the selected position, in row {selected}, is not there")
    return Tree(positions=Table(by_name), selected=by_row[selected], next_row=max(last_row, *by_row) + 1)
