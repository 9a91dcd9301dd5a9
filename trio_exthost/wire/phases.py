"""The phases of a connection and how it moves between them.

Theory of operation. Everything about transitions lives here, as one table; what is legal *in* a phase is the
dialect's data (`dialect.py`), and `connection.py` only looks both up. A pair that is not in the table is illegal and
changes nothing.

    HANDSHAKING --hello--> REGISTERING --ready--> READY
         |                      |                   |
         +--------stop, fault---+-------------------+--> STOPPING --close--> CLOSED

* The phase says what the extension may send. Whether `hello_ack` was written is a matter of the other direction and
  no phase: scripts print hello, registrations and ready at once without reading anything, and that is legal.
* `ready` is idempotent, whether it came as a frame or was assumed by the host.
* A fatal fault moves where stop moves: what is on its way may still be read, nothing new is begun, and no later hello
  repairs it.
* CLOSED is final: bytes that still arrive are dropped.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class Phase(enum.Enum):
    """How far a connection is."""

    HANDSHAKING = "handshaking"
    """`hello` has not come."""
    REGISTERING = "registering"
    """`hello` has come, `ready` has not."""
    READY = "ready"
    """The extension serves."""
    STOPPING = "stopping"
    """Answers to what was asked still count; nothing new is begun."""
    CLOSED = "closed"
    """Nothing is read or sent any more."""


class Move(enum.Enum):
    """What can move a connection."""

    HELLO = "hello"
    """The extension introduced itself."""
    READY = "ready"
    """Its registrations are complete, or taken to be."""
    STOP = "stop"
    """The host wants it to end, or it made a fault that ends it."""
    CLOSE = "close"
    """The pipes are gone."""


TRANSITIONS: Mapping[Phase, Mapping[Move, Phase]] = MappingProxyType(
    {
        Phase.HANDSHAKING: {Move.HELLO: Phase.REGISTERING, Move.STOP: Phase.STOPPING, Move.CLOSE: Phase.CLOSED},
        Phase.REGISTERING: {Move.READY: Phase.READY, Move.STOP: Phase.STOPPING, Move.CLOSE: Phase.CLOSED},
        Phase.READY: {Move.READY: Phase.READY, Move.STOP: Phase.STOPPING, Move.CLOSE: Phase.CLOSED},
        Phase.STOPPING: {Move.STOP: Phase.STOPPING, Move.CLOSE: Phase.CLOSED},
        Phase.CLOSED: {Move.STOP: Phase.CLOSED, Move.CLOSE: Phase.CLOSED},
    }
)
"""Phase and move to the phase after it."""
