"""Who is asked in the place of one whose registration went, or was taken over, while its chain was on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import EffectKind, EffectRecord
from trio_exthost.errors import DisposedHandle
from trio_exthost.runtime.guards import Absent
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.views import Member


def as_it_stands(session: Session, member: Member) -> Member:
    """A hook with what an update has made of it; the same one where its registration has gone, or it is none."""
    if not isinstance(member, HookMember) or member.record.registration.kind is not EffectKind.HOOK:
        return member
    try:
        record = session.ledger.record(member.record.handle)
    except DisposedHandle:
        return member
    return member if record is member.record else _under(member, record)


def _under(member: HookMember, record: EffectRecord) -> HookMember:
    """The same part, under another record."""
    entry = record.registration.value
    hook = entry.descriptor if record.registration.kind is EffectKind.HOOK else member.hook
    return attrs.evolve(member, record=record, instance=entry.instance, hook=hook)


def _has_gone(session: Session, member: HookMember) -> bool:
    """Whether its registration is in the ledger no more, though its extension could be asked."""
    try:
        session.ledger.record(member.record.handle)
    except DisposedHandle:
        return member.instance.is_available
    return False


def heir_of(
    session: Session,
    member: Member,
    event: str,
    payload: Mapping[str, Any],
    run: Run | None,
    others: Sequence[Member] = (),
) -> Member | Absent | None:
    """The member itself, if nobody has taken over from it and it takes part as before; else who is asked now.

    What an extension that can be asked has taken back, or what has ended with its run, is asked no more; of one that cannot
    be, the member stays: that it fails is for the policy. In its place comes the registration of the same key, after a
    reload or a probe; where there is none, the extension's first that is asked here and not in the chain already; where it
    has none either, the guard that is missed, if the policy or the manifest says that one is; else None.

    Args:
      session: Whose chain it is.
      member: Whose turn it is.
      event: The point.
      payload: What is asked about.
      run: In which run.
      others: Who takes part as well.
    """
    instance = member.instance if isinstance(member, HookMember) else member
    if instance.successor is None and not (isinstance(member, HookMember) and _has_gone(session, member)):
        return member
    if isinstance(member, HookMember):
        registration = member.record.registration
        record = session.ledger.active(registration.kind, registration.key, **where(run))
        if record is not None and record.owner.extension_id == member.name:
            return _under(member, record)
        if registration.kind is not EffectKind.HOOK:
            return None
    living = session.views.asked(event, **where(run))
    mine = [each for each in living if each.name == member.name]
    if instance.successor is None and mine:
        there = {each.record.handle for each in others if isinstance(each, HookMember)}
        return next((each for each in mine if isinstance(each, HookMember) and each.record.handle not in there), None)
    if mine:
        return next((each for each in mine if type(each) is type(member)), mine[0])
    return next((each for each in session.guards.absent(event, payload, living) if each.name == member.name), None)
