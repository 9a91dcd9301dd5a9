"""The words in which the ledger refuses: who, what, who has it, and the way out."""

from __future__ import annotations

from trio_exthost.effects.kinds import EffectKind
from trio_exthost.effects.records import EffectRecord, Registration
from trio_exthost.effects.scopes import EffectOwner, ScopeBinding
from trio_exthost.errors import Conflict, DisposedHandle, OverrideDenied, UnknownHandle


def _what(registration: Registration, binding: ScopeBinding) -> str:
    kind = registration.kind.replace("_", " ")
    where = f" in {binding}" if binding.realm is not None else ""
    return f"{kind} {registration.key!r}{where}"


def conflict(
    owner: EffectOwner, binding: ScopeBinding, registration: Registration, holder: EffectRecord | None
) -> Conflict:
    """The key is taken by `holder`, or by an earlier registration of the same call when that is None."""
    if holder is None:
        who = "is registered twice in one replacement"
    elif holder.owner == owner:
        who = f"is already registered by this instance (handle {holder.handle})"
    else:
        holds = f"instance {holder.owner.instance}, handle {holder.handle}"
        who = f"is held by extension {holder.owner.extension_id!r} ({holds})"
    hint = "choose another key, or dispose of the other first"
    if registration.kind.can_be_overridden:
        hint += ", or ask for an override, which needs a grant of the operator"
    return Conflict(f"{_what(registration, binding)} {who}", extension=owner.extension_id, hint=hint)


def override_denied(
    owner: EffectOwner, binding: ScopeBinding, registration: Registration, holder: EffectRecord | None
) -> OverrideDenied:
    """An override by someone who may not, or of a kind that has none; `holder` has the key, if anybody."""
    what = _what(registration, binding)
    held = f", held by extension {holder.owner.extension_id!r}" if holder is not None else ""
    if registration.kind.can_be_overridden:
        message = f"{what} asks for an override without authority{held}"
        hint = f"the operator can grant the override of {registration.key!r}; or register without it, under a free key"
    else:
        kinds = " and ".join(kind for kind in EffectKind if kind.can_be_overridden)
        message = f"{what} asks for an override, which this kind does not have{held}"
        hint = f"only {kinds} can be overridden; register without override, under a free key"
    return OverrideDenied(message, extension=owner.extension_id, hint=hint)


def not_held(handle: int, issued: int) -> UnknownHandle | DisposedHandle:
    """No record has this handle: any more, or ever."""
    if 0 < handle <= issued:
        return DisposedHandle(
            f"the record with handle {handle} has been disposed of", hint="register anew for a new handle"
        )
    so_far = f"handles so far are 1 to {issued}" if issued else "none has been given out yet"
    return UnknownHandle(f"no record ever had handle {handle}", hint=so_far)
