"""Capabilities of the host that an extension may use while it works on an invocation: what it has stored, and a memory.

An invocation sees what it has written itself and is not stored yet; with a usable answer all of it is stored with the answer,
or counts, and with any other end it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from trio_exthost.errors import HostError, PayloadError, StateError
from trio_exthost.hooks import DURABLE
from trio_exthost.runtime.brokered import Brokered
from trio_exthost.runtime.storing import MAX_ID, is_too_long
from trio_exthost.runtime.turns import Turns
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.values import ABSENT, ErrorDetail

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.state import Projection
    from trio_exthost.wire.effects_from_extension import BrokerCall

MAX_OPERATIONS = 32
"""Operations of one invocation; those that fail count, `capabilities.has` does not."""
MAX_MEMORY_BYTES = 1024 * 1024
"""Keys and values, encoded, that one instance keeps in its memory."""
_DELETED = object()


class BrokerRefused(HostError):
    """An operation is refused; `code` is a word of the wire."""


class Brokers:
    """The open invocations of one instance, and its memory."""

    def __init__(self, instance: Instance) -> None:
        """None, and nothing in memory."""
        self._instance = instance
        self._open: dict[str, Brokered] = {}
        self._memory: dict[str, bytes] = {}
        self.turns: Turns = Turns()
        """The order of what it stores."""

    @contextmanager
    def invocation(self) -> Iterator[Callable[[str], Brokered]]:
        """Yield what opens an invocation once it is issued under an id; leaving closes it."""
        opened: list[str] = []

        def begin(id: str) -> Brokered:
            opened.append(id)
            self._open[id] = Brokered()
            return self._open[id]

        try:
            yield begin
        finally:
            for each in opened:
                self._open.pop(each, None)

    def remember(self, brokered: Brokered) -> None:
        """The invocation has ended well: what it has written to the memory counts."""
        if brokered.clears_memory:
            self._memory.clear()
        for key, text in brokered.memory.items():
            if text is _DELETED:
                self._memory.pop(key, None)
            else:
                self._memory[key] = text

    def call(self, frame: BrokerCall) -> None:
        """Do what is asked for, and answer; never raises for what an extension sent."""
        if is_too_long(self._instance, frame.TYPE, frame.id):
            return
        try:
            value = self._do(frame)
        except (BrokerRefused, StateError) as exc:
            self._answer(frame, error=ErrorDetail(exc.code, exc.message))
        else:
            if value is not _LATER:
                self._answer(frame, value)

    def refuse_unreadable(self, id: str, why: str) -> None:
        """A frame that cannot be read, or comes when it must not, is answered, too; unless nothing fits under its id."""
        if outbound.BrokerResult.TYPE in self._instance.connection.dialect.outbound and len(id) <= MAX_ID:
            error = ErrorDetail("invalid_arguments", why)
            self._instance.post(outbound.BrokerResult(id, ok=False, error=error))

    def _do(self, frame: BrokerCall) -> Any:
        if frame.operation not in {*_OPERATIONS, *_READING, *DURABLE}:
            known = ", ".join([*_OPERATIONS, *_READING, *sorted(DURABLE)])
            message = f"this host has no broker for {frame.operation!r:.80}; it has {known}"
            raise BrokerRefused(message, code="broker_unavailable")
        brokered = self._open.get(frame.invocation)
        if brokered is None:
            raise BrokerRefused(f"invocation {frame.invocation!r:.80} is not running", code="cancelled")
        if frame.operation != "capabilities.has":
            brokered.operations += 1
            if brokered.operations > MAX_OPERATIONS:
                raise BrokerRefused(f"{MAX_OPERATIONS} operations in one invocation are enough", code="resource_limit")
        if frame.operation in DURABLE:
            return self._write(brokered, {**frame.arguments, "kind": frame.operation})
        if frame.operation in _READING:
            return self._get(brokered, frame)
        return _OPERATIONS[frame.operation](self, brokered, frame.arguments)

    def _answer(self, frame: BrokerCall, value: Any = ABSENT, *, error: ErrorDetail | None = None) -> None:
        try:
            self._instance.post(outbound.BrokerResult(frame.id, ok=error is None, value=value, error=error))
        except PayloadError:
            detail = ErrorDetail("resource_limit", "the result does not fit into a frame")
            self._instance.post(outbound.BrokerResult(frame.id, ok=False, error=detail))

    # --- operations ---

    def _has(self, _brokered: Brokered, arguments: Mapping[str, Any]) -> bool:
        return _text(arguments, "permission") in self._instance.registrant.granted

    def _schema(self) -> int:
        schema = self._instance.registrant.state_schema
        if schema is None:
            raise BrokerRefused("the manifest has no state_schema", code="state_schema_required")
        return schema

    def _state_schema(self, _brokered: Brokered, _arguments: Mapping[str, Any]) -> int:
        return self._schema()

    def _write(self, brokered: Brokered, action: Mapping[str, Any]) -> bool:
        """Store with the answer: refused at once where the batch so far could not be stored."""
        self._schema()
        self._seen([*brokered.pending, action])
        brokered.pending.append(action)
        return True

    def _seen(self, pending: list[Mapping[str, Any]]) -> Projection:
        """What is stored, with what the invocation has written on top."""
        from trio_exthost.state import apply  # noqa: PLC0415 - only with state

        persistence = self._instance.session.persistence
        projection = persistence.projection(self._instance.name)
        if not pending:
            return projection
        actions = persistence.read_actions(self._instance, pending)
        return apply(projection, actions, schema=self._schema(), sequence=0).projection

    def _get(self, brokered: Brokered, frame: BrokerCall) -> Any:
        self._schema()
        key = _text(frame.arguments, "key")
        is_revision = frame.operation == "state.revision"

        def read(projection: Projection) -> Any:
            return projection.revision_of(key) if is_revision else projection.get(key)

        if frame.arguments.get("space", "session") == "session":
            return read(self._seen(brokered.pending))
        if frame.arguments["space"] != "extension":
            raise BrokerRefused("space must be session or extension", code="invalid_arguments")
        nursery = self._instance.nursery
        assert nursery is not None
        nursery.start_soon(self._get_shared, frame, key, read, name=f"shared state of {self._instance.name}")
        return _LATER

    async def _get_shared(self, frame: BrokerCall, key: str, read: Callable[[Projection], Any]) -> None:
        try:
            projection = await self._instance.session.persistence.shared.read(self._instance.name, [key])
        except StateError as exc:
            self._answer(frame, error=ErrorDetail(exc.code, exc.message))
        else:
            self._answer(frame, read(projection))

    def _replay(self, brokered: Brokered, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._schema()
        custom_type = _text(arguments, "custom_type") if arguments.get("custom_type") is not None else None
        projection = self._seen(brokered.pending)
        return [
            {"event_id": event_id, "custom_type": event.custom_type, "payload": event.payload}
            for event_id, event in projection.events.items()
            if custom_type in (None, event.custom_type)
        ]

    # --- the memory ---

    def _memory_text(self, brokered: Brokered, key: str) -> bytes | None:
        if key in brokered.memory:
            text = brokered.memory[key]
            return None if text is _DELETED else text
        return None if brokered.clears_memory else self._memory.get(key)

    def _memory_get(self, brokered: Brokered, arguments: Mapping[str, Any]) -> Any:
        text = self._memory_text(brokered, _text(arguments, "key"))
        return None if text is None else msgspec.json.decode(text)

    def _memory_set(self, brokered: Brokered, arguments: Mapping[str, Any]) -> None:
        key = _text(arguments, "key")
        if "value" not in arguments:
            raise BrokerRefused("value is missing", code="invalid_arguments")
        text = msgspec.json.encode(arguments["value"])
        before = {} if brokered.clears_memory else self._memory
        changed = {**before, **brokered.memory, key: text}
        after = {each: value for each, value in changed.items() if value is not _DELETED}
        size = sum(len(each.encode()) + len(value) for each, value in after.items())
        if size > MAX_MEMORY_BYTES:
            raise BrokerRefused(
                f"its memory would hold {size} bytes, of {MAX_MEMORY_BYTES} allowed", code="resource_limit"
            )
        brokered.memory[key] = text

    def _memory_delete(self, brokered: Brokered, arguments: Mapping[str, Any]) -> None:
        brokered.memory[_text(arguments, "key")] = _DELETED

    def _memory_clear(self, brokered: Brokered, _arguments: Mapping[str, Any]) -> None:
        brokered.memory.clear()
        brokered.clears_memory = True


_READING = ("state.get", "state.revision")
_LATER = object()
"""The answer comes from a task of its own."""


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str) or not value or len(value) > 1024:
        raise BrokerRefused(f"{key} must be a text of 1 to 1024 characters", code="invalid_arguments")
    return value


_OPERATIONS: Mapping[str, Callable[[Brokers, Brokered, Mapping[str, Any]], Any]] = {
    "capabilities.has": Brokers._has,  # noqa: SLF001 - its own module
    "state.schema": Brokers._state_schema,  # noqa: SLF001
    "events.replay": Brokers._replay,  # noqa: SLF001
    "memory.get": Brokers._memory_get,  # noqa: SLF001
    "memory.set": Brokers._memory_set,  # noqa: SLF001
    "memory.delete": Brokers._memory_delete,  # noqa: SLF001
    "memory.clear": Brokers._memory_clear,  # noqa: SLF001
}
