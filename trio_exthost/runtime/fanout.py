"""Fan-out: one event to everybody who subscribes, encoded once, in one order per extension, never waiting for anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trio_exthost.hooks import NEVER_DROPPED, Event
from trio_exthost.runtime.bodies import fitting
from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.wire import to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


class Fanout:
    """Tells the subscribers of one session."""

    def __init__(self, session: Session, cwd_text: str) -> None:
        """Tell of this session, with its directory as a frame can hold it."""
        self._session = session
        self._host = session.host
        where = {"session_id": session.id, "cwd": cwd_text}
        self._where = {name: value for name, value in where.items() if value}  # what is empty is not sent

    def tell(self, event: str, payload: Mapping[str, Any], sequence: int) -> None:
        """Queue an event for whoever subscribes to it."""
        subscribers = self._session.views.subscribers.get(event)
        if subscribers or self._host.instrument is not None:
            self.send(event, payload, sequence, subscribers or ())

    def send(self, event: str, payload: Mapping[str, Any], sequence: int, subscribers: tuple[Instance, ...]) -> None:
        """Queue an event for these."""
        if subscribers:
            entry = self._entry(event, payload, sequence)
            self._host.flusher.tell(subscribers, entry)
        if self._host.instrument is not None:
            receivers = tuple(instance.name for instance in subscribers)
            self._host.instrument.event_emitted(self._session.id, event, sequence, payload, receivers)

    def welcome(self, instance: Instance) -> None:
        """An instance that came after the session's start is told of it now, if it wants to know."""
        session = self._session
        if instance in session.views.subscribers.get(Event.SESSION_START, ()):
            self.send(Event.SESSION_START, {}, session.next_sequence(), (instance,))

    def _entry(self, event: str, payload: Mapping[str, Any], sequence: int) -> Entry:
        host = self._host
        kind = to_extension.Event
        fields = {"type": kind.TYPE, "event": event, **self._where, "sequence": sequence}
        data = host.codec.encode_spread(kind, fields, payload)
        limits = host.config.limits
        if len(data) > limits.event_body_bytes and (smaller := fitting(payload, limits)) is not payload:
            data = host.codec.encode_spread(kind, fields, smaller)
        return Entry(data, Kind.KEPT if event in NEVER_DROPPED else Kind.EVENT, sequence)
