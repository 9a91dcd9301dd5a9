"""The reply table of an instance: who waits for which answer.

An entry is (expected frame type, send end of a memory channel of capacity 1): the pump never blocks on it and never finds it
full, as an entry takes one answer and is gone. Ids are decimal strings from one counter per host, never reused.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import attrs
import trio

if TYPE_CHECKING:
    from trio_exthost.runtime.calls import Request
    from trio_exthost.runtime.patience import Patience

_NEVER = object()
LATE_REMEMBERED = 256
"""Ids of given-up calls that are remembered, to call a late answer late."""


@attrs.frozen
class Answer:
    """What came back: what was made of the frame, or the error that ends the call."""

    value: Any = None
    error: Exception | None = None


class PendingCall:
    """A call that awaits its answer."""

    __slots__ = ("id", "patience", "receive", "request", "send", "strays_before")

    def __init__(self, id: str, request: Request, patience: Patience, strays_before: int) -> None:
        """Await the answer to a request, under this correlation id."""
        self.id: str = id
        self.request: Request = request
        self.patience: Patience = patience
        self.strays_before: int = strays_before
        # Not `open_memory_channel[Answer](1)`: the subscript is made at run time, which takes as long as the channel does.
        self.send: trio.MemorySendChannel[Answer]
        self.receive: trio.MemoryReceiveChannel[Answer]
        self.send, self.receive = trio.open_memory_channel(1)

    def answer_nowait(self) -> Answer | None:
        """The answer if it is there."""
        try:
            return self.receive.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None


def id_source() -> Callable[[], str]:
    """Ids of one host: "1", "2", ...; never reused."""
    counter = itertools.count(1)
    return lambda: str(next(counter))


class ReplyTable:
    """The calls of one instance that await an answer."""

    def __init__(self, next_id: Callable[[], str]) -> None:
        """Draw ids from the host's one counter."""
        self._next_id = next_id
        self._open: dict[str, PendingCall] = {}
        self._given_up: OrderedDict[str, None] = OrderedDict()
        self.strays: int = 0
        """Answers that went to nobody, as their id or their type was wrong."""
        self._fewer: trio.Event | None = None  # set when a call has ended; only where somebody waits for that

    def __len__(self) -> int:
        """Calls that await an answer."""
        return len(self._open)

    def __contains__(self, id: object) -> bool:
        """Whether this id awaits an answer."""
        return id in self._open

    def open(self, request: Request, patience: Patience) -> PendingCall:
        """A new call; the caller sends it with the entry's id, without an await in between."""
        pending = PendingCall(self._next_id(), request, patience, self.strays)
        self._open[pending.id] = pending
        return pending

    def find(self, id: str | None) -> PendingCall | None:
        """The call of this id that awaits its answer, or None."""
        return self._open.get(id) if id is not None else None

    def pending(self) -> tuple[PendingCall, ...]:
        """All that await an answer, oldest first."""
        return tuple(self._open.values())

    def is_given_up(self, id: str) -> bool:
        """Whether a call of this id was given up not long ago, and has not been answered late."""
        return id in self._given_up

    def was_given_up(self, id: str) -> bool:
        """Whether a call of this id was given up not long ago; asked once per late answer."""
        return self._given_up.pop(id, _NEVER) is None

    async def wait_ended(self, ids: Collection[str]) -> None:
        """Wait until none of these awaits an answer."""
        await trio.lowlevel.checkpoint()
        while not self._open.keys().isdisjoint(ids):
            if self._fewer is None:
                self._fewer = trio.Event()
            await self._fewer.wait()

    def resolve(self, id: str, answer: Answer) -> None:
        """Give the call its one answer."""
        self._open.pop(id).send.send_nowait(answer)
        self._tell_fewer()

    def abort(self, id: str, error: Exception) -> None:
        """End the call with this error, unless it has ended; an answer that comes all the same is late."""
        pending = self._open.get(id)
        if pending is not None:
            self.resolve(id, Answer(error=error))
            self._remember(id)

    def _tell_fewer(self) -> None:
        fewer, self._fewer = self._fewer, None
        if fewer is not None:
            fewer.set()

    def _remember(self, id: str) -> None:
        self._given_up[id] = None
        if len(self._given_up) > LATE_REMEMBERED:
            self._given_up.popitem(last=False)

    def give_up(self, pending: PendingCall, *, was_sent: bool) -> None:
        """The caller waits no longer; idempotent. A call that was sent is remembered, so that its answer is late."""
        if self._open.pop(pending.id, None) is not None:
            self._tell_fewer()
            if was_sent:
                self._remember(pending.id)

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """End every call with an error of its own."""
        pending, self._open = self._open, {}
        for each in pending.values():
            each.send.send_nowait(Answer(error=error()))
        self._tell_fewer()
