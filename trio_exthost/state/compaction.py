"""Which stored batches no branch needs any more, and which entries of the others.

Between two rows at which a child leaves a position, every branch that needs one of the position's batches needs all of them.
Within such a stretch a value that is overwritten later is never seen again, nor is the deletion of a key that was not
there at its beginning. Batches keep rows and revisions, so that whoever holds a revision can go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from trio_exthost.state.entries import (
    Batch,
    ContextEntry,
    DeleteEntry,
    Entry,
    SetEntry,
    StoredBatch,
    decode_batch,
    encode_batch,
)
from trio_exthost.state.projection import NO_PROJECTIONS, Projection, replay
from trio_exthost.state.tree import LAST_ROW, ROOT, Position


@attrs.frozen
class Rewrite:
    """One batch that can be smaller."""

    row: int
    """Which."""
    body: bytes | None
    """Its text from now on; None if the batch can go."""


def compact(positions: Iterable[Position], batches_of: Callable[[int], Sequence[StoredBatch]]) -> Iterator[Rewrite]:
    """What can be made smaller, without a difference to any position's state.

    Rewrites of a position's batches are given after all of these were read, so they can be done at once.

    Args:
      positions: All of the session.
      batches_of: The batches under the position in this row, in the order of rows; called once for each.

    Raises:
      StoreDamaged: A batch cannot be read.
    """
    children: dict[int, list[int]] = {}
    for each in positions:
        if each.parent is not None:
            children.setdefault(each.parent.row, []).append(each.row)
    waiting: list[tuple[int, Mapping[str, Projection]]] = [(ROOT.row, NO_PROJECTIONS)]
    while waiting:
        position, projections = waiting.pop()
        batches = batches_of(position)
        start = 0
        for cut in (*sorted(children.get(position, ())), LAST_ROW):
            end = start
            while end < len(batches) and batches[end].row < cut:
                end += 1
            stretch = batches[start:end]
            yield from _stretch(stretch, projections)
            projections = replay((each.body for each in stretch), projections)
            if cut != LAST_ROW:
                waiting.append((cut, projections))
            start = end


def _stretch(batches: Sequence[StoredBatch], before: Mapping[str, Projection]) -> Iterator[Rewrite]:
    by_extension: dict[str, list[tuple[StoredBatch, Batch]]] = {}
    for stored in batches:
        batch = decode_batch(stored.body)
        by_extension.setdefault(batch.extension, []).append((stored, batch))
    for extension, pairs in by_extension.items():
        needed = _needed([batch for _, batch in pairs], before.get(extension) or Projection(extension=extension))
        for index, ((stored, batch), entries) in enumerate(zip(pairs, needed, strict=True)):
            # The last one stays even when nothing is left in it: the state's revision is its revision.
            if not entries and index < len(pairs) - 1:
                yield Rewrite(stored.row, None)
            elif len(entries) < len(batch.entries) or any(
                one is not other for one, other in zip(entries, batch.entries, strict=True)
            ):
                yield Rewrite(stored.row, encode_batch(_with_entries(batch, entries)))


def _needed(batches: Sequence[Batch], before: Projection) -> list[tuple[Entry, ...]]:
    """The entries of each batch that still count at the end of them all."""
    contexts = {
        entry.context_id: entry for batch in batches for entry in batch.entries if isinstance(entry, ContextEntry)
    }
    seen_contexts: set[str] = set()
    kept = [_without_repeated_contexts(batch.entries, contexts, seen_contexts) for batch in batches]
    overwritten: set[str] = set()
    return [_without_overwritten(entries, overwritten, before) for entries in reversed(kept)][::-1]


def _without_repeated_contexts(
    entries: Sequence[Entry], last: Mapping[str, ContextEntry], seen: set[str]
) -> list[Entry]:
    """Where a context comes first it gets its last content: a context that is replaced keeps its place."""
    kept: list[Entry] = []
    for entry in entries:
        if not isinstance(entry, ContextEntry):
            kept.append(entry)
        elif entry.context_id not in seen:
            seen.add(entry.context_id)
            kept.append(last[entry.context_id])
    return kept


def _without_overwritten(entries: Sequence[Entry], overwritten: set[str], before: Projection) -> tuple[Entry, ...]:
    kept: list[Entry] = []
    for entry in reversed(entries):
        if isinstance(entry, SetEntry | DeleteEntry):
            if entry.key in overwritten:
                continue
            overwritten.add(entry.key)
            if isinstance(entry, DeleteEntry) and entry.key not in before.values:
                continue
        kept.append(entry)
    return tuple(reversed(kept))


def _with_entries(batch: Batch, entries: tuple[Entry, ...]) -> Batch:
    return Batch(batch.extension, batch.schema, batch.sequence, batch.revision, entries)
