"""What the ledger holds, and what it says happened.

These values are made with every registration and every disposal, and are hashed as keys. They are msgspec structs
because a frozen attrs class of four fields takes ten times as long to make (0.8 us against 0.08 us), which alone
would exceed what the ledger may cost.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs
import msgspec

from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.scopes import EffectOwner, ScopeBinding


class Registration(msgspec.Struct, frozen=True):
    """What is to be registered."""

    kind: EffectKind
    """What it is."""
    key: str
    """What it collides with others on, within its kind and realm; compared as it stands, so fold case before."""
    value: Any
    """The descriptor; the ledger never looks into it."""
    sequence: int
    """The session's number of this registration; the ledger keeps it and does not order by it."""
    override: bool = False
    """Whether it asks to take the place of who has the key."""

    def __hash__(self) -> int:
        """The value may be unhashable, and equal registrations agree on these."""
        return hash((self.kind, self.key, self.sequence))


class EffectRecord(msgspec.Struct, frozen=True):
    """A registration that was accepted."""

    handle: int
    """Its number in the ledger: from 1, growing in order of acceptance, never used again."""
    owner: EffectOwner
    """Whose it is."""
    binding: ScopeBinding
    """Where it is active."""
    registration: Registration
    """What was registered."""

    def __hash__(self) -> int:
        """A handle names one record of a ledger."""
        return hash(self.handle)


class ChangeAction(enum.StrEnum):
    """What happened to a record."""

    ACCEPTED = "accepted"
    """It came into the ledger and is the one in force for its key."""
    DISPLACED = "displaced"
    """It stays in the ledger; another is in force for its key."""
    RESTORED = "restored"
    """It is in force again."""
    UPDATED = "updated"
    """Its value is another; handle, place and whether it is in force are as before."""
    DISPOSED = "disposed"
    """It left the ledger."""


class DisposeCause(enum.StrEnum):
    """Why a record left the ledger, in the words of the wire."""

    HANDLE = "handle"
    """Somebody disposed of this one."""
    SCOPE = "scope"
    """Its run or request ended."""
    OWNER = "owner"
    """Its instance ended."""
    FAULT = "fault"
    """Its instance crashed, or its circuit opened."""
    RELOAD = "reload"
    """A successor took over."""
    SHUTDOWN = "shutdown"
    """The session ended."""


class Change(msgspec.Struct, frozen=True):
    """One thing that happened to one record.

    The changes of one call belong together: apply all of them, in order, before anybody reads.
    """

    action: ChangeAction
    """What happened."""
    record: EffectRecord
    """To which record."""
    cause: DisposeCause | None = None
    """Why it was disposed of; None for every other action."""


class Disposal(enum.StrEnum):
    """What `dispose` found."""

    DISPOSED = "disposed"
    """The record was there and is gone now."""
    ALREADY_DISPOSED = "already_disposed"
    """It had gone before; nothing changed."""


class Accepted(msgspec.Struct, frozen=True):
    """What `accept` did."""

    handle: int
    """The handle of the new record."""
    record: EffectRecord
    """The new record."""
    displaced: EffectRecord | None = None
    """The record whose place it took, if any."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """ACCEPTED, then DISPLACED if the record took another's place."""
        accepted = Change(ChangeAction.ACCEPTED, self.record)
        return (accepted,) if self.displaced is None else (accepted, Change(ChangeAction.DISPLACED, self.displaced))


class Disposed(msgspec.Struct, frozen=True):
    """What `dispose` did."""

    outcome: Disposal
    """Whether there was something to dispose of."""
    record: EffectRecord | None = None
    """The record that left; None if it had gone before."""
    restored: EffectRecord | None = None
    """The record that is in force again, if one is."""
    cause: DisposeCause | None = None
    """Why the record left; None if it had gone before."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """RESTORED if a record below came into force again, then DISPOSED; empty if it had gone before."""
        if self.record is None:
            return ()
        disposed = Change(ChangeAction.DISPOSED, self.record, self.cause)
        return (disposed,) if self.restored is None else (Change(ChangeAction.RESTORED, self.restored), disposed)


class Updated(msgspec.Struct, frozen=True):
    """What `update` did."""

    record: EffectRecord
    """The record with its new value, under its old handle."""
    previous: EffectRecord
    """The record as it was."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """UPDATED."""
        return (Change(ChangeAction.UPDATED, self.record),)


class Replaced(msgspec.Struct, frozen=True):
    """What `replace_owner` did."""

    handles: tuple[int, ...]
    """The handles of the new records, in the order of the registrations given."""
    changes: tuple[Change, ...]
    """ACCEPTED of all new records, what that displaced or brought back, then DISPOSED of all old ones, newest first."""


@attrs.frozen
class LedgerStatistics:
    """Counts of one moment."""

    held: int
    """Records in the ledger, those that another overrides included."""
    in_force: int
    """Records that a look-up can find: one per kind, key and realm."""
    displaced: int
    """Records that another overrides; `held - in_force`."""
    owners: int
    """Instances that hold at least one record."""
    scopes: int
    """Different bindings in use; one for each run or request that has records of its own."""
    issued: int
    """Handles given out since the ledger was made."""
    disposed: int
    """Records that have left; `issued - held`."""
