"""A batch of actions and the state it meets: what becomes of it, or why not, all or nothing.

What would change nothing is skipped: a value that stands there already, a key that is not there to be deleted, an event
or a context that is stored as it is. So a batch that is sent twice counts once, `add_state` excepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Never

import attrs
import msgspec

from trio_exthost.effects.descriptors_fields import noun, shown
from trio_exthost.errors import StateRefused
from trio_exthost.state.actions import (
    Action,
    AddState,
    AppendCustomEvent,
    AppendModelContext,
    DeleteState,
    SetState,
)
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import (
    Batch,
    ContextEntry,
    DeleteEntry,
    Entry,
    EventEntry,
    SetEntry,
    decode_value,
    encode_value,
    same_json,
)
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.migration import check_schema
from trio_exthost.state.projection import Projection, ProjectionDraft
from trio_exthost.state.quota import check_quota

_WHOLE_NUMBERS = range(-(2**63), 2**64)


@attrs.frozen
class Applied:
    """A batch that fits, applied."""

    projection: Projection
    """The state after it; the same object if it changed nothing."""
    batch: Batch | None
    """What to store, without what was skipped; None if that is nothing."""
    committed: Committed
    """What to tell."""


def apply(
    projection: Projection,
    actions: Sequence[Action],
    *,
    schema: int,
    sequence: int = 0,
    limits: StateLimits = DEFAULT_LIMITS,
) -> Applied:
    """Apply all of a batch.

    Conditions (`if_revision`) speak of the state before the batch, whatever else the batch does.

    Args:
      projection: The state it meets; stays as it is.
      actions: In the order in which they count.
      schema: The extension's `state_schema`.
      sequence: The session's number of what they came with.
      limits: How much may be stored.

    Raises:
      StateRefused: Nothing of the batch counts. `conflict`: a condition does not hold, or an event has the id of another
        one. `invalid_payload`: something is added to what is no number. `resource_limit`: it is too much.
      MigrationRefused: The state stands in another schema.
    """
    check_schema(projection, schema)
    revision = projection.revision + 1
    work = _Work(projection, Batch(projection.extension, schema, sequence, revision, ()))
    for index, action in enumerate(actions):
        work.take(f"actions[{index}]", action)
    if not work.entries:
        return Applied(projection, None, work.committed(projection.revision, changed=False))
    check_quota(projection, work.draft, limits)
    batch = Batch(projection.extension, schema, sequence, revision, tuple(work.entries))
    work.draft.schema, work.draft.revision = schema, revision
    return Applied(work.draft.finish(), batch, work.committed(revision, changed=True))


class _Work:
    """One batch on its way: the draft it has made so far, and what is to be stored."""

    def __init__(self, projection: Projection, head: Batch) -> None:
        self.draft = ProjectionDraft(projection)
        self.entries: list[Entry] = []
        self._before = projection
        self._head = head
        self._keys: dict[str, None] = {}

    def take(self, at: str, action: Action) -> None:
        match action:
            case SetState():
                self._condition(at, action.key, action.if_revision)
                self._set(action.key, action.value)
            case AddState():
                self._add(at, action)
            case DeleteState():
                self._condition(at, action.key, action.if_revision)
                if self._touch(action.key) is not None:
                    self._store(DeleteEntry(key=action.key))
            case AppendCustomEvent():
                self._event(at, action)
            case _:
                self._context(action)

    def committed(self, revision: int, *, changed: bool) -> Committed:
        texts = ((key, self.draft.values.get(key)) for key in self._keys)
        there = {key: value.text for key, value in texts if value is not None}
        return Committed(revision=revision, texts=there, changed=changed)

    def _touch(self, key: str) -> bytes | None:
        """Note that the batch names the key; its JSON as the batch has left it so far."""
        self._keys[key] = None
        value = self.draft.values.get(key)
        return None if value is None else value.text

    def _store(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.draft.put(entry, self._head)

    def _fail(self, at: str, reason: str, code: str, hint: str = "") -> Never:
        raise StateRefused(reason, code=code, field=at, extension=self._before.extension, hint=hint)

    def _condition(self, at: str, key: str, wanted: int | None) -> None:
        found = self._before.revision_of(key)
        if wanted is None or wanted == found:
            return
        expected = f"revision {wanted}" if wanted else "to be absent"
        there = f"is at revision {found}" if found else "is not there"
        reason = f"the key {shown(key)} was expected {'at ' if wanted else ''}{expected} and {there}"
        self._fail(f"{at}.if_revision", reason, "conflict", "read it again, and decide anew")

    def _set(self, key: str, text: bytes, by: float | None = None) -> None:
        old = self._touch(key)
        if old is None or not same_json(old, text):
            self._store(SetEntry(key=key, value=msgspec.Raw(text), by=by))

    def _add(self, at: str, action: AddState) -> None:
        old = self._touch(action.key)
        number = 0 if old is None else decode_value(old)
        if isinstance(number, bool) or not isinstance(number, int | float):
            reason = f"the key {shown(action.key)} holds {noun(number)}; only to a number something can be added"
            self._fail(f"{at}.key", reason, "invalid_payload")
        try:
            total = number + action.by
        except OverflowError:  # a whole number that no float can hold
            total = math.inf
        if total not in _WHOLE_NUMBERS if isinstance(total, int) else not math.isfinite(total):
            self._fail(f"{at}.by", f"the sum under {shown(action.key)} is too large to be stored", "invalid_payload")
        self._set(action.key, encode_value(total), action.by)

    def _event(self, at: str, action: AppendCustomEvent) -> None:
        old = self.draft.events.get(action.event_id)
        if old is None:
            payload = msgspec.Raw(action.payload)
            entry = EventEntry(event_id=action.event_id, custom_type=action.custom_type, payload=payload)
            self._store(entry)
        elif old.custom_type != action.custom_type or not same_json(old.text, action.payload):
            reason = f"another event with the id {shown(action.event_id)} is stored already"
            self._fail(f"{at}.event_id", reason, "conflict", "an event stays as it is; give a new one a new id")

    def _context(self, action: AppendModelContext) -> None:
        old = self.draft.contexts.get(action.context_id)
        if old is None or old.placement is not action.placement or not same_json(old.text, action.content):
            content = msgspec.Raw(action.content)
            self._store(ContextEntry(context_id=action.context_id, placement=action.placement, content=content))
