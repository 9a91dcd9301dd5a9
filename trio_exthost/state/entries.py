"""What is stored: entries, the batches they come in, and the text in which a store keeps a batch.

Entries are made and read by the hundred thousand when a session is opened again, so they are msgspec structs; what an
extension stored stays JSON text until somebody asks for it.
"""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

import msgspec

from trio_exthost.errors import StoreDamaged

MAX_BATCH_ENTRIES = 32
"""Entries in one batch; a migration has no such limit, as it writes all keys."""
MAX_ENTRY_BYTES = 64 * 1024
"""One entry, as JSON in UTF-8, its words included."""
MAX_LIVE_BYTES = 4 * 1024 * 1024
"""What one extension can have stored in one space and branch at the same time; history does not count."""


class Placement(enum.StrEnum):
    """Where the model sees what an extension adds."""

    SYSTEM_PROMPT_SECTION = "system_prompt_section"
    """A text, in the system prompt."""
    MESSAGE = "message"
    """A message, among the messages."""


class _Entry(msgspec.Struct, frozen=True, tag_field="op", omit_defaults=True, kw_only=True):
    """Common to all; written as an object whose `op` says what it is."""


class SetEntry(_Entry, frozen=True, tag="set"):
    """A key has this value from now on."""

    key: str
    value: msgspec.Raw
    """JSON text."""
    by: int | float | None = None
    """The number that was added to give it; None if it was set. Told only: replay reads the value."""


class DeleteEntry(_Entry, frozen=True, tag="delete"):
    """A key is no more."""

    key: str


class EventEntry(_Entry, frozen=True, tag="event"):
    """An event of the extension's own making; it stays."""

    event_id: str
    custom_type: str
    payload: msgspec.Raw
    """JSON text."""


class ContextEntry(_Entry, frozen=True, tag="context"):
    """Something the model shall see, in place of what had the same id."""

    context_id: str
    placement: Placement
    content: msgspec.Raw
    """JSON text: of a string for a section, of an object for a message."""


class MigrationEntry(_Entry, frozen=True, tag="migration"):
    """Marks that what stands before it in its batch is the old state in the form of a newer schema."""

    from_schema: int
    to_schema: int


Entry: TypeAlias = SetEntry | DeleteEntry | EventEntry | ContextEntry | MigrationEntry


class Batch(msgspec.Struct, frozen=True):
    """Entries that were committed together: all of them or none."""

    extension: str
    """Whose they are."""
    schema: int
    """The extension's `state_schema` when it wrote them."""
    sequence: int
    """The session's number of what they came with; told only, as the order of replay is that of the store's rows."""
    revision: int
    """The revision of the extension's state that they made: 1 for its first batch on a branch, then one more each."""
    entries: tuple[Entry, ...]
    """In the order in which they count."""


class StoredBatch(msgspec.Struct, frozen=True):
    """A batch as a store holds it. A store never looks into the body."""

    row: int
    """Its place in the order of the session: positions and batches share one count."""
    position: int
    """Row of the position under which it was committed; 0 is the beginning."""
    sequence: int
    """As in the batch."""
    body: bytes
    """`encode_batch` of the batch."""


_json = msgspec.json.Encoder()
_canonical = msgspec.json.Encoder(order="sorted")
_loads = msgspec.json.Decoder().decode
_read_batch = msgspec.json.Decoder(Batch).decode


def encode_entry(entry: Entry) -> bytes:
    """The entry as compact JSON: what `MAX_ENTRY_BYTES` is about."""
    return _json.encode(entry)


def encode_batch(batch: Batch) -> bytes:
    """The batch as compact JSON, in UTF-8 without a line feed."""
    return _json.encode(batch)


def decode_batch(body: bytes) -> Batch:
    """The batch in this text. Its values share the text's memory.

    Raises:
      StoreDamaged: It is none. (What was altered in place is found by the stores, which keep a check sum.)
    """
    try:
        return _read_batch(body)
    except msgspec.MsgspecError as exc:
        raise StoreDamaged(f"a stored batch cannot be read: {exc}: {body[:80]!r}") from None


def encode_value(value: object) -> bytes:
    """A JSON value as compact text; keys in the order in which they stand."""
    return _json.encode(value)


def decode_value(text: bytes | msgspec.Raw) -> Any:
    """The value in a text of `encode_value`: new objects at each call, which are the caller's."""
    return _loads(text)


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two compact texts are the same JSON value. The order of keys does not count; 1 and 1.0 are two values."""
    if one == other:
        return True
    # Compact texts of the same value are equally long: a key that moved takes its bytes along.
    return len(one) == len(other) and _canonical.encode(_loads(one)) == _canonical.encode(_loads(other))
