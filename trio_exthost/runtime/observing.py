"""Telling hooks that observe a life-cycle point: one-way frames, encoded once for all of them.

Two points stream: each of their payloads holds all that the ones before held, so of those that wait for an extension only the
newest is kept, and the next says how many it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.invoking import context_for
from trio_exthost.wire import to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.outbox import Outbox
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session


class Coalescing:
    """Streams of cumulative values on their way to extensions: of each stream, at most one value waits for one extension."""

    def __init__(self) -> None:
        """No stream."""
        self._newest: dict[str, dict[int, Entry]] = {}

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._newest)

    def put(self, stream: str, receiver: int, outbox: Outbox, sequence: int, encode: Callable[[int], bytes]) -> None:
        """Queue a value, in the place of the one that still waits, if one does.

        It goes to the end: what was queued after the one it replaces stays before it.

        Args:
          stream: Which stream; `end` forgets it.
          receiver: Which extension, as a number.
          outbox: Its outbox.
          sequence: The session's number of this value.
          encode: Makes the frame, given how many values it has replaced that were never written.
        """
        newest = self._newest.setdefault(stream, {})
        waiting = newest.get(receiver)
        replaced = waiting.weight if waiting is not None and outbox.withdraw(waiting) else 0
        entry = newest[receiver] = Entry(encode(replaced), Kind.EVENT, sequence, weight=replaced + 1)
        outbox.post(entry)

    def end(self, stream: str) -> None:
        """Nothing more comes of a stream; what waits is still written."""
        self._newest.pop(stream, None)


class Observing:
    """Tells the observing hooks of one session."""

    def __init__(self, session: Session) -> None:
        """Tell of this session."""
        self._session = session
        self.streams: Coalescing = Coalescing()

    def tell(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        run: Run | None = None,
        message_id: str = "",
        tool_call_id: str = "",
        stream: str = "",
        to: Instance | None = None,
    ) -> int | None:
        """Queue a frame for each extension that observes this; the sequence number, or None where nobody does.

        Args:
          event: The life-cycle point.
          payload: As its schema says.
          run: In which run.
          message_id: About which message.
          tool_call_id: About which tool call.
          stream: Of a cumulative payload: which stream it belongs to.
          to: Only this one is told.

        Raises:
          PayloadError: It is not JSON, or larger than a frame; nobody was told.
        """
        session = self._session
        members = session.views.observing(event, **where(run))
        receivers = [
            instance
            for instance in dict.fromkeys(each.instance for each in members if _concerns(each.hook, payload))
            if (instance is to if to is not None else not instance.life.is_beginning)
        ]
        if not receivers:
            return None
        sequence = session.next_sequence()
        context = _context_body(session, run, sequence, message_id, tool_call_id)
        plain = self._encode(event, {"context": context, "payload": payload}, sequence)
        if not stream:
            session.host.flusher.tell(receivers, Entry(plain, Kind.EVENT, sequence))
        else:

            def encode(replaced: int) -> bytes:
                if not replaced:
                    return plain
                return self._encode(event, {"context": context, "payload": payload, "dropped": replaced}, sequence)

            for instance in receivers:
                self.streams.put(stream, instance.number, instance.outbox, sequence, encode)
        if session.host.instrument is not None:
            names = tuple(instance.name for instance in receivers)
            session.host.instrument.event_emitted(session.id, event, sequence, payload, names)
        return sequence

    def _encode(self, event: str, body: Mapping[str, Any], sequence: int) -> bytes:
        session = self._session
        return session.host.codec.encode(to_extension.Event(event, body, session.id, session.cwd_text, sequence))


def _concerns(hook: Any, payload: Mapping[str, Any]) -> bool:
    return hook.payload_schema is None or not hook.payload_schema.explain(payload)


def _context_body(
    session: Session, run: Run | None, sequence: int, message_id: str, tool_call_id: str
) -> dict[str, Any]:
    """As the context of an invocation, without whom it is told: one frame is for all."""
    context = context_for(session, run, sequence=sequence, message_id=message_id, tool_call_id=tool_call_id)
    body = attrs.asdict(context, filter=lambda _attribute, value: value is not None)
    del body["extension_id"]
    return body
