"""The life of an instance: its states, and which may follow which."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class State(enum.StrEnum):
    """Where an instance is in its life."""

    STARTING = "starting"
    """The process is being spawned."""
    HANDSHAKING = "handshaking"
    """`hello` is awaited."""
    REGISTERING = "registering"
    """`hello_ack` is sent; registrations are staged until `ready`, and until earlier candidates have had their turn."""
    READY = "ready"
    """Its registrations are in the ledger."""
    TRIPPED = "tripped"
    """It failed too often in a row: its effects are reversed, and it is asked again after a while."""
    STOPPING = "stopping"
    """It is asked to go; no new work."""
    STOPPED = "stopped"
    """It went because it was asked to."""
    FAILED = "failed"
    """It could not be started, crashed, or had to be ended."""
    WAITING = "waiting"
    """It failed, and a successor will be started."""
    GAVE_UP = "gave_up"
    """It failed too often to be started again without a person."""


_GOING = frozenset({State.STOPPING, State.FAILED})

MOVES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.STARTING: frozenset({State.HANDSHAKING, *_GOING}),
        State.HANDSHAKING: frozenset({State.REGISTERING, *_GOING}),
        State.REGISTERING: frozenset({State.READY, *_GOING}),
        State.READY: frozenset({State.TRIPPED, *_GOING}),
        State.TRIPPED: frozenset({State.READY, *_GOING}),
        State.STOPPING: frozenset({State.STOPPED, State.FAILED}),
        State.STOPPED: frozenset(),
        State.FAILED: frozenset({State.WAITING, State.GAVE_UP}),
        State.WAITING: frozenset({State.STOPPED}),
        State.GAVE_UP: frozenset(),
    }
)
"""Every legal move; any other is a bug of ours."""


def check_move(old: State, new: State) -> None:
    """Raise RuntimeError where a move is not in the table."""
    if new not in MOVES[old]:
        raise RuntimeError(f"an instance cannot go from {old} to {new}")
