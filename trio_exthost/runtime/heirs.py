"""Who is asked in the place of one that was reloaded while a chain that it takes part in was on its way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import EffectKind
from trio_exthost.runtime.guards import Absent
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.views import Member


def heir_of(
    session: Session, member: Member, event: str, payload: Mapping[str, Any], run: Run | None
) -> Member | Absent | None:
    """The member itself, if nobody has taken over from it; else who is asked now.

    The successor's registration of the same key; where it has none, its first that is asked here; where it has none
    either, the guard that is missed, if the policy or the manifest says that one is; else None.
    """
    instance = member.instance if isinstance(member, HookMember) else member
    if instance.successor is None:
        return member
    if isinstance(member, HookMember):
        registration = member.record.registration
        record = session.ledger.active(registration.kind, registration.key, **where(run))
        if record is not None and record.owner.extension_id == member.name:
            entry = record.registration.value
            hook = entry.descriptor if registration.kind is EffectKind.HOOK else member.hook
            return attrs.evolve(member, record=record, instance=entry.instance, hook=hook)
        if registration.kind is not EffectKind.HOOK:
            return None
    living = session.views.asked(event, **where(run))
    mine = [each for each in living if each.name == member.name]
    if mine:
        return next((each for each in mine if type(each) is type(member)), mine[0])
    return next((each for each in session.guards.absent(event, payload, living) if each.name == member.name), None)
