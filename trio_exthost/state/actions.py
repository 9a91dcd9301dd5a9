"""Durable actions: what an extension asks to store, read strictly from its words.

An action is a flat object: `{"kind": "set_state", "key": "count", "value": 3}`. One of `kind` and `payload` alone is read as
if the payload's keys stood beside the kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs
import msgspec

from trio_exthost.effects.descriptors_fields import Fields, did_you_mean, noun, shown
from trio_exthost.errors import RegistrationRefused, StateRefused
from trio_exthost.state.entries import (
    ContextEntry,
    DeleteEntry,
    Entry,
    EventEntry,
    Placement,
    SetEntry,
    decode_value,
    encode_entry,
    encode_value,
)
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.wire.depth import is_deeper
from trio_exthost.wire.payload import find_fault

WRITE_PERMISSION = "session.write"
"""Without it an extension stores nothing."""
MAX_VALUE_DEPTH = 120
"""Levels of objects and arrays in a stored value: fewer than a frame may have, so that one can carry it back."""
MAX_REVISION = 2**63 - 1
"""No state has been changed more often."""

_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,256}")
_CUSTOM_TYPE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


@attrs.frozen
class SetState:
    """`set_state`: the key gets this value."""

    key: str
    value: bytes
    """JSON text."""
    if_revision: int | None = None
    """The key must be as this revision left it; 0: it must not be there; None: whatever it is."""


@attrs.frozen
class AddState:
    """`add_state`: the number under the key becomes larger by this; a key that is not there counts as 0."""

    key: str
    by: int | float
    """Finite; below 0 to subtract."""


@attrs.frozen
class DeleteState:
    """`delete_state`: the key goes; nothing happens if it is not there."""

    key: str
    if_revision: int | None = None
    """As in `SetState`."""


@attrs.frozen
class AppendCustomEvent:
    """`append_custom_event`: an event of the extension's own making, once per id."""

    event_id: str
    custom_type: str
    payload: bytes
    """JSON text."""


@attrs.frozen
class AppendModelContext:
    """`append_model_context`: something for the model, in place of what has the same id."""

    context_id: str
    placement: Placement
    content: bytes
    """JSON text: of a string for a section, of an object for a message."""


Action: TypeAlias = SetState | AddState | DeleteState | AppendCustomEvent | AppendModelContext


def check_may_store(extension: str, *, granted: Collection[str], state_schema: int | None) -> int:
    """The schema under which an extension stores.

    Args:
      extension: Its name.
      granted: The permissions it has.
      state_schema: What its manifest says.

    Raises:
      StateRefused: It has no `session.write` (`permission_denied`) or no `state_schema` (`state_schema_required`).
    """
    if WRITE_PERMISSION not in granted:
        raise StateRefused(
            f"may not store anything: it has no permission {WRITE_PERMISSION}", code="permission_denied",
            extension=extension, hint=f'"exthost": {{"permissions": ["{WRITE_PERMISSION}"]}} in its manifest asks for it',
        )  # fmt: skip
    if state_schema is None:
        raise StateRefused(
            "may not store anything: its manifest has no state_schema", code="state_schema_required",
            extension=extension, hint='"exthost": {"state_schema": 1} says in which form its state is',
        )  # fmt: skip
    return state_schema


def read_actions(
    raw: Sequence[Mapping[str, Any]], *, extension: str, limits: StateLimits = DEFAULT_LIMITS
) -> tuple[Action, ...]:
    """The durable actions in these objects, in their order. Nothing of the result shares anything with `raw`.

    Args:
      raw: As they came; none of them is changed.
      extension: Whose they are, for the refusal.
      limits: How many, and how large.

    Raises:
      StateRefused: One is wrong (`invalid_payload`) or too large, or there are too many (`resource_limit`); `field`
        is its place, as `actions[3].key`.
    """
    if len(raw) > limits.batch_entries:
        raise StateRefused(
            f"{len(raw)} in one batch, of {limits.batch_entries} allowed", code="resource_limit",
            field="actions", extension=extension, hint="store in several batches what need not be stored together",
        )  # fmt: skip
    try:
        return tuple(_read(each, f"actions[{index}]", extension, limits) for index, each in enumerate(raw))
    except RegistrationRefused as exc:
        raise StateRefused(exc.reason, code=exc.code, field=exc.field, extension=extension, hint=exc.hint) from None


def read_values(raw: object, *, extension: str, limits: StateLimits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """All keys and values of a state, as JSON texts: what a migration returns.

    Raises:
      StateRefused: As `read_actions`; `field` is the place, as `state.count`.
    """
    if not isinstance(raw, Mapping):
        reason = f"must be an object, not {noun(raw)}"
        raise StateRefused(reason, code="invalid_payload", field="state", extension=extension)
    try:
        fields = _ActionFields(dict(raw), raw.keys(), extension=extension, at="state")
        fields.most_bytes = limits.entry_bytes
        return {key: _one_value(fields, key, limits) for key in raw}
    except RegistrationRefused as exc:
        raise StateRefused(exc.reason, code=exc.code, field=exc.field, extension=extension) from None


def _one_value(fields: _ActionFields, key: str, limits: StateLimits) -> bytes:
    if not _ID.fullmatch(key):
        fields.fail(fields.at(key), "a key must be 1 to 256 characters, none of control")
    text = fields.json(key)
    if (size := len(encode_entry(SetEntry(key=key, value=msgspec.Raw(text))))) > limits.entry_bytes:
        fields.fail(fields.at(key), f"{size} bytes, of {limits.entry_bytes} allowed", code="resource_limit")
    return text


def _read(raw: object, at: str, extension: str, limits: StateLimits) -> Action:
    if not isinstance(raw, Mapping):
        raise StateRefused(f"must be an object, not {noun(raw)}", code="invalid_payload", field=at, extension=extension)
    kind = raw.get("kind")
    if raw.keys() == {"kind", "payload"} and isinstance(raw["payload"], Mapping):
        raw = {**raw["payload"], "kind": kind}
    if not isinstance(kind, str) or kind not in _KINDS:
        given = shown(kind) if isinstance(kind, str) else noun(kind)
        raise StateRefused(
            f"must be a durable action, not {given}", code="invalid_payload", field=f"{at}.kind", extension=extension,
            hint=did_you_mean(kind if isinstance(kind, str) else "", _KINDS),
        )  # fmt: skip
    known, make = _KINDS[kind]
    fields = _ActionFields(dict(raw), ("kind", *known), extension=extension, at=at)
    fields.most_bytes = limits.entry_bytes
    action, entry = make(fields)
    if (size := len(encode_entry(entry))) > limits.entry_bytes:
        raise StateRefused(
            f"{size} bytes, of {limits.entry_bytes} allowed", code="resource_limit", field=at, extension=extension
        )
    return action


class _ActionFields(Fields):
    """The fields that actions have beside those of descriptors."""

    most_bytes: int = DEFAULT_LIMITS.entry_bytes
    """Of one value, as JSON."""

    def id(self, key: str) -> str:
        return self.matching(key, lambda text: bool(_ID.fullmatch(text)), "1 to 256 characters, none of control")

    def revision(self) -> int | None:
        """Absent is no condition. Null is what a program has that never saw the key: it must not be there, as for 0."""
        if not self.has("if_revision"):
            return None
        return 0 if self.value("if_revision") is None else self.whole("if_revision", 0, MAX_REVISION)

    def number(self, key: str) -> int | float:
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(self.at(key), f"must be a number, not {noun(value)}")
        self.json(key)
        return value

    def json(self, key: str) -> bytes:
        """Any JSON value, as text."""
        value = self.value(key)
        try:
            text = encode_value(value)
            if len(text) > self.most_bytes:
                return text  # the whole entry is refused for its size; to go through a frame's worth of it takes long
            # NaN comes back as null, a set as a list, the key 1 as "1": what comes back changed is looked at.
            fault = None if decode_value(text) == value else find_fault(value, MAX_VALUE_DEPTH)
        except (TypeError, ValueError, RecursionError, OverflowError) as exc:
            self.fail(self.at(key), f"is not JSON: {find_fault(value, MAX_VALUE_DEPTH) or exc}")
        if fault is not None:
            self.fail(self.at(key), f"is not JSON: {fault}")
        if is_deeper(text, MAX_VALUE_DEPTH):
            self.fail(self.at(key), f"is nested deeper than {MAX_VALUE_DEPTH} levels", code="resource_limit")
        return text


_Made: TypeAlias = tuple[Action, Entry]


def _set_state(fields: _ActionFields) -> _Made:
    made = SetState(fields.id("key"), fields.json("value"), fields.revision())
    return made, SetEntry(key=made.key, value=msgspec.Raw(made.value))


def _add_state(fields: _ActionFields) -> _Made:
    made = AddState(fields.id("key"), fields.number("by"))
    return made, SetEntry(key=made.key, value=msgspec.Raw(encode_value(made.by)), by=made.by)


def _delete_state(fields: _ActionFields) -> _Made:
    made = DeleteState(fields.id("key"), fields.revision())
    return made, DeleteEntry(key=made.key)


def _append_custom_event(fields: _ActionFields) -> _Made:
    wanted = "1 to 128 of A-Z a-z 0-9 . - _, a letter or digit at both ends"
    custom_type = fields.matching("custom_type", lambda text: bool(_CUSTOM_TYPE.fullmatch(text)), wanted)
    made = AppendCustomEvent(fields.id("event_id"), custom_type, fields.json("payload"))
    payload = msgspec.Raw(made.payload)
    return made, EventEntry(event_id=made.event_id, custom_type=custom_type, payload=payload)


def _append_model_context(fields: _ActionFields) -> _Made:
    placement = Placement(fields.choice("placement", tuple(Placement)))
    content = fields.value("content")
    kind, words = (str, "a string") if placement is Placement.SYSTEM_PROMPT_SECTION else (dict, "an object")
    if not isinstance(content, kind):
        fields.fail(fields.at("content"), f"of a {placement} must be {words}, not {noun(content)}")
    made = AppendModelContext(fields.id("context_id"), placement, fields.json("content"))
    text = msgspec.Raw(made.content)
    return made, ContextEntry(context_id=made.context_id, placement=placement, content=text)


_KINDS: Mapping[str, tuple[tuple[str, ...], Callable[[_ActionFields], _Made]]] = MappingProxyType(
    {
        "set_state": (("key", "value", "if_revision"), _set_state),
        "add_state": (("key", "by"), _add_state),
        "delete_state": (("key", "if_revision"), _delete_state),
        "append_custom_event": (("event_id", "custom_type", "payload"), _append_custom_event),
        "append_model_context": (("context_id", "placement", "content"), _append_model_context),
    }
)
"""Each kind of durable action: the keys it may have, and how it is read."""

DURABLE_KINDS = frozenset(_KINDS)
"""The kinds of actions that store something."""
