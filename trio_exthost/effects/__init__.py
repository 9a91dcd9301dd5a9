"""Ledger and scopes: what extensions have registered, where it is active, and how it is undone. Pure."""

from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.ledger import EffectLedger
from trio_exthost.effects.records import (
    Accepted,
    Change,
    ChangeAction,
    Disposal,
    DisposeCause,
    Disposed,
    EffectRecord,
    LedgerStatistics,
    Registration,
    Replaced,
    Updated,
)
from trio_exthost.effects.scopes import EffectOwner, Realm, Scope, ScopeBinding
from trio_exthost.effects.view import EffectView
from trio_exthost.errors import Conflict, DisposedHandle, LedgerError, MissingScopeId, OverrideDenied, UnknownHandle

__all__ = [
    "Accepted",
    "Change",
    "ChangeAction",
    "Conflict",
    "Disposal",
    "DisposeCause",
    "Disposed",
    "DisposedHandle",
    "EffectKind",
    "EffectLedger",
    "EffectOwner",
    "EffectRecord",
    "EffectView",
    "LedgerError",
    "LedgerStatistics",
    "MissingScopeId",
    "OverrideDenied",
    "Realm",
    "Registration",
    "Replaced",
    "Scope",
    "ScopeBinding",
    "UnknownHandle",
    "Updated",
]
