"""The positions of a session's transcript as a small tree: a way without branches is one line, however long it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from trio_exthost.policy.shown import cut
from trio_exthost.state.tree import Position, Tree

MOST_LINES = 200
"""Lines of a tree."""
_DEEPEST = 20
"""Levels that are indented; what is deeper stands at the last."""
_NAME = 40
"""Characters of an entry id that are printed."""
_AT_ENDS = 2
"""Positions at each end of a way that are named."""


@attrs.frozen(kw_only=True)
class TreeLine:
    """One way: positions of which each but the last has one child."""

    first: str
    """What is in front of it."""
    text: str
    """Its positions, and how many were left out."""
    is_selected: bool
    """Whether the selected position, or the one that is shown, is on it."""


def position_name(position: Position) -> str:
    """How a position is called."""
    return cut(position.name, _NAME) if position.parent is not None else "(the beginning)"


def positions_json(tree: Tree) -> list[dict[str, Any]]:
    """All positions but the beginning, in the order in which they were made."""
    return [{"entry_id": each.name, "after": each.parent.name} for each in _by_row(tree) if each.parent is not None]


def position_lines(tree: Tree, *, shown: Position | None) -> Iterator[TreeLine]:
    """The tree, depth first, children in the order in which they were made.

    Args:
      tree: All positions.
      shown: The position of the branch that is shown; marked, as the selected one is.
    """
    children: dict[int, list[Position]] = {}
    for each in _by_row(tree):
        if each.parent is not None:
            children.setdefault(each.parent.row, []).append(each)
    marks = {tree.selected.row: "selected"}
    if shown is not None and shown.row != tree.selected.row:
        marks[shown.row] = "shown"
    waiting, count, left_out = [(tree.positions[""], 0)], 0, 0
    while waiting:
        start, depth = waiting.pop()
        way = [start]
        while len(after := children.get(way[-1].row, [])) == 1:
            way += after
        waiting += [(each, depth + 1) for each in reversed(after)]
        count += 1
        if count > MOST_LINES:
            left_out += len(way)
            continue
        text = " > ".join(_words(way, marks))
        is_selected = any(each.row in marks for each in way)
        yield TreeLine(first="  " * (1 + min(depth, _DEEPEST)), text=text, is_selected=is_selected)
    if left_out:
        yield TreeLine(first="  ", text=f"... and {left_out} more positions", is_selected=False)


def _words(way: list[Position], marks: dict[int, str]) -> Iterator[str]:
    """The ends of a way by name, and those that are marked; the number of others between them."""
    skipped = 0
    for place, each in enumerate(way):
        if _AT_ENDS <= place < len(way) - _AT_ENDS and each.row not in marks:
            skipped += 1
            continue
        if skipped:
            yield f"... {skipped} more ..."
            skipped = 0
        mark = marks.get(each.row)
        yield f"{position_name(each)} [{mark}]" if mark else position_name(each)


def _by_row(tree: Tree) -> list[Position]:
    return sorted(tree.positions.values(), key=lambda each: each.row)
