"""What changed between two JSON values: few lines, of bounded size, with secrets masked."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from trio_exthost.policy.shown import MASKED, SHOWN, Keeper, json_text, path_text

CHANGES = 20
"""Changes of one diff that are kept; the others are counted."""
_ROOM = 40
"""Characters of one value that are shown however many changes there are."""

PathStep = str | int
"""A key of an object, or an index of a list."""


class ChangeKind(enum.Enum):
    """What happened at a place."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@attrs.frozen
class ValueChange:
    """One place at which two values differ. What is kept of them is masked and cut; see `is_whole`."""

    path: tuple[PathStep, ...]
    """Where; empty for the value itself."""
    kind: ChangeKind
    """What happened there."""
    before: Any = None
    """What stood there; None where it was added."""
    after: Any = None
    """What stands there now; None where it was removed."""
    is_whole: bool = True
    """Whether path, `before` and `after` are all there is: nothing of them was masked or cut."""

    def explain(self, room: int = SHOWN) -> str:
        """The change in a line without control characters, each value in at most about `room` characters."""
        at = f"{path_text(self.path)}: " if self.path else ""
        before, after = json_text(self.before, room), json_text(self.after, room)
        if self.kind is ChangeKind.ADDED:
            return f"{at}added {after}"
        if self.kind is ChangeKind.REMOVED:
            return f"{at}removed {before}"
        if before == after:
            return f"{at}{before} -> {after} (they differ in what is not shown)"
        return f"{at}{before} -> {after}"


@attrs.frozen
class Diff:
    """What changed, in order of the keys and indices of the values.

    Made one after the other, the changes make the second value of the first, where all are there and whole. (Of a list that
    became shorter, the last items are removed first.)
    """

    changes: tuple[ValueChange, ...] = ()
    """The first `CHANGES` of them."""
    left_out: int = 0
    """How many more there are."""

    def counted(self) -> Diff:
        """How many changes there are, and nothing of them."""
        return Diff(left_out=self.left_out + len(self.changes))

    def explain(self) -> str:
        """All of it in a line: the more changes, the less of each."""
        if not self.changes:
            return f"{self.left_out} changes, not kept" if self.left_out else "nothing changed"
        room = max(_ROOM, SHOWN // len(self.changes))
        shown = "; ".join(change.explain(room) for change in self.changes)
        return f"{shown}; and {self.left_out} more" if self.left_out else shown


def same_json(one: Any, other: Any) -> bool:
    """Whether both are the same JSON. Unlike `==`, true is not 1 and 1 is not 1.0: a program may tell them apart."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)


def diff(before: Any, after: Any, *, mask: Sequence[str] | None = None) -> Diff:
    """What changed from one JSON value to another.

    Items of a list are compared from both ends; what is left between them by index. The work grows with the size of the
    values; only what is kept is searched for secrets, and that is bounded.

    Args:
      before: The value as it was, nested at most as deeply as a frame may be.
      after: The value as it is.
      mask: Regular expressions of what is hidden; `DEFAULT_MASK` if not given, nothing if empty.
    """
    differ = _Differ(mask)
    differ.compare((), before, after)
    return Diff(tuple(differ.changes), differ.left_out)


class _Differ:
    """One comparison, and what it has found."""

    def __init__(self, mask: Sequence[str] | None) -> None:
        self.changes: list[ValueChange] = []
        self.left_out = 0
        self._keeper = Keeper(mask)

    def compare(self, path: tuple[Any, ...], before: Any, after: Any) -> None:
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            self._compare_objects(path, before, after)
        elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
            self._compare_lists(path, before, after)
        elif not same_json(before, after):
            self._note(path, ChangeKind.CHANGED, before, after)

    def _compare_objects(self, path: tuple[Any, ...], before: Mapping[Any, Any], after: Mapping[Any, Any]) -> None:
        for key in (*before, *(key for key in after if key not in before)):
            if key not in after:
                self._note((*path, key), ChangeKind.REMOVED, before[key])
            elif key not in before:
                self._note((*path, key), ChangeKind.ADDED, after[key])
            else:
                self.compare((*path, key), before[key], after[key])

    def _compare_lists(self, path: tuple[Any, ...], before: Sequence[Any], after: Sequence[Any]) -> None:
        short, start, end = min(len(before), len(after)), 0, 0
        while start < short and same_json(before[start], after[start]):
            start += 1
        while end < short - start and same_json(before[-1 - end], after[-1 - end]):
            end += 1
        for index in range(start, short - end):
            self.compare((*path, index), before[index], after[index])
        for index in range(len(before) - end - 1, short - end - 1, -1):
            self._note((*path, index), ChangeKind.REMOVED, before[index])
        for index in range(short - end, len(after) - end):
            self._note((*path, index), ChangeKind.ADDED, after[index])

    def _note(self, path: tuple[Any, ...], kind: ChangeKind, *values: Any) -> None:
        if len(self.changes) >= CHANGES:
            self.left_out += 1
            return
        keeper = self._keeper
        secret = next((at for at, step in enumerate(path, 1) if type(step) is not int and keeper.hides(step)), None)
        keeper.is_whole = secret is None
        if secret is not None:
            kept: list[Any] = [MASKED, MASKED]
            path, kind = path[:secret], kind if secret == len(path) else ChangeKind.CHANGED
        elif len(values) == 2 and all(isinstance(value, str) for value in values):
            kept = keeper.texts(*values)
        else:
            kept = [keeper.value(value) for value in values]
        change = ValueChange(
            tuple(step if type(step) is int else keeper.key(step) for step in path),
            kind,
            None if kind is ChangeKind.ADDED else kept[0],
            None if kind is ChangeKind.REMOVED else kept[-1],
            keeper.is_whole,
        )
        if secret is None or change not in self.changes:  # one secret is one change, however much of it is another
            self.changes.append(change)
