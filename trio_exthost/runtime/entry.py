"""One encoded frame on its way out, and what may happen to it where there is no room."""

from __future__ import annotations

import enum


class Kind(enum.Enum):
    """What may happen to a waiting frame when there is no room."""

    EVENT = "event"
    """Dropped, oldest first, and counted."""
    KEPT = "kept"
    """An event that is never dropped: session_start, session_end."""
    CALL = "call"
    """Refused with `Overloaded` before it is queued; withdrawn when its caller gives up."""
    ANSWER = "answer"
    """Neither: queued in any case, and the extension is not read until there is room."""


class Entry:
    """One encoded frame. An event's entry is shared by every outbox it waits in, so it is never changed."""

    __slots__ = ("data", "kind", "sequence", "weight")

    def __init__(self, data: bytes, kind: Kind, sequence: int = 0, *, weight: int = 1) -> None:
        """Hold the line to send, with its line feed."""
        self.data: bytes = data
        self.kind: Kind = kind
        self.sequence: int = sequence
        self.weight: int = weight
        """How many events it stands for: the newest value of a stream stands for those it replaced."""
