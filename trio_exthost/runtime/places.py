"""Which names an extension may take, before the ledger is asked: the agent's own, reserved ones, and those of wider scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_exthost.effects import EffectKind, EffectOwner, Registration, Scope, ScopeBinding
from trio_exthost.errors import Conflict

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session


def check_place(session: Session, owner: EffectOwner, binding: ScopeBinding, registration: Registration) -> None:
    """Refuse a tool or a command whose name the owner may not take; an override is taken for authorized.

    Raises:
      Conflict: Says whose the name is.
    """
    kind, key = registration.kind, registration.key
    if not kind.can_be_overridden:
        return
    winner = session.host.policy.winner(kind, key)
    if winner is not None and winner.value != owner.extension_id and session.loader.is_expected(winner.value):
        raise _taken(registration, f"the operator prefers {winner.value} for that name ({winner.where})")
    if kind is EffectKind.COMMAND and key in session.builtin_commands:
        raise _taken(registration, "that name is built in, and built-ins win")
    if kind is EffectKind.TOOL:
        keepers = session.reserved.keepers(key)
        if keepers and owner.extension_id not in keepers:
            raise _taken(registration, f"that name is kept for {' and '.join(keepers)}")
    if registration.override:
        return
    if kind is EffectKind.TOOL and key in session.host_tools:
        raise _taken(registration, "that name is built in, and built-ins win")
    if binding.realm is None:
        return
    # In its run or request it would stand before what is registered more widely: that is an override.
    run_id = session.requests[str(binding.id)].id if binding.scope is Scope.REQUEST else None
    wider = session.ledger.active(kind, key, run_id=run_id)
    if wider is not None and wider.owner.extension_id != owner.extension_id:  # not of a predecessor either
        raise _taken(registration, f"{wider.owner.extension_id} has registered that name for a wider scope")


def _taken(registration: Registration, why: str) -> Conflict:
    return Conflict(f"{registration.kind.value} {registration.key!r}: {why}", hint="register it under another name")
