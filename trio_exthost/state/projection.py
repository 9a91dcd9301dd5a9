"""What one extension has stored, as it stands at one point of one branch.

A projection is what the batches on the way there add up to. It never changes; the next one shares most of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs
import msgspec

from trio_exthost.errors import StoreDamaged
from trio_exthost.state.entries import (
    Batch,
    ContextEntry,
    DeleteEntry,
    Entry,
    EventEntry,
    Placement,
    SetEntry,
    decode_batch,
    decode_value,
)
from trio_exthost.state.table import Table
from trio_exthost.state.usage import NOTHING, Usage, size_of


class Value(msgspec.Struct, frozen=True):
    """What stands under a key."""

    text: bytes
    """JSON."""
    revision: int
    """The revision of the state that put it there."""


class CustomEvent(msgspec.Struct, frozen=True):
    """An event of an extension's own making."""

    event_id: str
    custom_type: str
    text: bytes
    """Its payload, as JSON."""
    sequence: int
    """The session's number of what it was stored with."""

    @property
    def payload(self) -> Any:
        """The payload; new objects at each look, which are the caller's."""
        return decode_value(self.text)


class ModelContext(msgspec.Struct, frozen=True):
    """Something an extension wants the model to see."""

    context_id: str
    placement: Placement
    text: bytes
    """Its content, as JSON."""

    @property
    def content(self) -> Any:
        """A string for a section, an object for a message; new objects at each look, which are the caller's."""
        return decode_value(self.text)


@attrs.frozen(kw_only=True)
class Projection:
    """One extension's state: values by key, custom events by id, and what the model shall see, each in order."""

    extension: str
    """Whose it is."""
    values: Table[Value] = attrs.field(factory=Table)
    """By key."""
    events: Table[CustomEvent] = attrs.field(factory=Table)
    """By id, oldest first."""
    contexts: Table[ModelContext] = attrs.field(factory=Table)
    """By id; one that was replaced keeps its place."""
    schema: int | None = None
    """The schema in which it stands; None while nothing was ever stored."""
    revision: int = 0
    """How many batches have changed it on this branch."""
    usage: Usage = NOTHING
    """What is stored now."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a key: new objects at each call, which are the caller's. `default` if it is not there."""
        value = self.values.get(key)
        return default if value is None else decode_value(value.text)

    def revision_of(self, key: str) -> int:
        """What `if_revision` must say about this key; 0 if it is not there."""
        value = self.values.get(key)
        return 0 if value is None else value.revision

    def state(self) -> dict[str, Any]:
        """All keys and values, as a new object."""
        return {key: decode_value(value.text) for key, value in self.values.items()}

    def replay_events(self, custom_type: str | None = None) -> Iterator[CustomEvent]:
        """The events of this type, or all, oldest first."""
        return (each for each in self.events.values() if custom_type is None or each.custom_type == custom_type)


NO_PROJECTIONS: Mapping[str, Projection] = MappingProxyType({})
"""Of a session in which nothing was ever stored."""


class ProjectionDraft:
    """The next projection, while it is made. What must hold for an entry is checked by who makes entries."""

    def __init__(self, projection: Projection) -> None:
        """Begin with this projection, which stays as it is."""
        self._before = projection
        self.values = projection.values.draft()
        self.events = projection.events.draft()
        self.contexts = projection.contexts.draft()
        # Counted here, not taken from the tables: a store may hand in a projection of only what a batch is about.
        used = projection.usage
        self._value_count, self._value_bytes = used.values, used.value_bytes
        self._event_count, self._event_bytes = used.events, used.event_bytes
        self._context_count, self._context_bytes = used.contexts, used.context_bytes
        self.schema = projection.schema
        self.revision = projection.revision

    def add(self, batch: Batch) -> None:
        """All of this batch."""
        self.schema = batch.schema
        self.revision = batch.revision
        for entry in batch.entries:
            self.put(entry, batch)

    def put(self, entry: Entry, batch: Batch) -> None:
        """One entry; whose revision and sequence are the batch's."""
        match entry:
            case SetEntry():
                self._set(entry, batch.revision)
            case DeleteEntry():
                self.delete(entry.key)
            case EventEntry():
                self._event(entry, batch.sequence)
            case ContextEntry():
                self._context(entry)
            case _:
                pass  # a marker: the batch's schema says it

    def delete(self, key: str) -> None:
        """Take a key out, if it is there: compaction may leave a deletion whose key was never put in."""
        old = self.values.get(key)
        if old is not None:
            self._value_count -= 1
            self._value_bytes -= size_of(key, old.text)
            self.values.delete(key)

    def finish(self) -> Projection:
        """The projection as it stands. The draft must not be changed after it."""
        return Projection(
            extension=self._before.extension, values=self.values.finish(), events=self.events.finish(),
            contexts=self.contexts.finish(), schema=self.schema, revision=self.revision, usage=self.usage,
        )  # fmt: skip

    @property
    def usage(self) -> Usage:
        """What is stored as it stands."""
        return Usage(
            values=self._value_count, value_bytes=self._value_bytes, events=self._event_count,
            event_bytes=self._event_bytes, contexts=self._context_count, context_bytes=self._context_bytes,
        )  # fmt: skip

    def _set(self, entry: SetEntry, revision: int) -> None:
        key, text = entry.key, bytes(entry.value)  # a copy: a small value must not keep the memory of a large batch
        old = self.values.get(key)
        if old is None:
            self._value_count += 1
            self._value_bytes += size_of(key, text)
        else:
            self._value_bytes += len(text) - len(old.text)
        self.values.set(key, Value(text, revision))

    def _event(self, entry: EventEntry, sequence: int) -> None:
        text = bytes(entry.payload)
        self._event_count += 1
        self._event_bytes += size_of(entry.event_id, text) + len(entry.custom_type)
        self.events.set(entry.event_id, CustomEvent(entry.event_id, entry.custom_type, text, sequence))

    def _context(self, entry: ContextEntry) -> None:
        name, text = entry.context_id, bytes(entry.content)
        old = self.contexts.get(name)
        if old is None:
            self._context_count += 1
            self._context_bytes += size_of(name, text)
        else:
            self._context_bytes += len(text) - len(old.text)
        self.contexts.set(name, ModelContext(name, entry.placement, text))


def replay(bodies: Iterable[bytes], base: Mapping[str, Projection] = NO_PROJECTIONS) -> dict[str, Projection]:
    """The projection of every extension that has stored something in these batches, or before them.

    Args:
      bodies: Stored batches of one branch, in the order of its rows.
      base: What stood before them; stays as it is.

    Raises:
      StoreDamaged: One of them is no batch, or comes out of turn.
    """
    drafts: dict[str, ProjectionDraft] = {}
    for body in bodies:
        batch = decode_batch(body)
        draft = drafts.get(batch.extension)
        if draft is None:
            draft = drafts[batch.extension] = ProjectionDraft(
                base.get(batch.extension) or Projection(extension=batch.extension)
            )
        if batch.revision <= draft.revision:
            raise StoreDamaged(
                f"a stored batch has revision {batch.revision} after {draft.revision}", extension=batch.extension
            )
        draft.add(batch)
    return {**base, **{extension: draft.finish() for extension, draft in drafts.items()}}
