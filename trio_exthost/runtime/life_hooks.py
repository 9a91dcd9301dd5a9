"""Hooks about the life of their own extension: invoked, and waited for, where it begins and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError
from trio_exthost.hooks import HookEvent
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

FAREWELL = (HookEvent.SESSION_SHUTDOWN, HookEvent.EXTENSION_UNLOAD)
"""What an extension that ends is told, in this order."""


def hooks_of(instance: Instance, *events: HookEvent) -> list[HookMember]:
    """The hooks that an extension has for these, in their order."""
    awaited = instance.session.views.awaited
    return [each for event in events for each in awaited.get(event, ()) if each.instance is instance]


async def begin(instance: Instance, members: Sequence[HookMember]) -> CallError | None:
    """Have an extension begin; why it could not, or None."""
    for member in members:
        try:
            await _invoke(member, instance.reason_to_begin, instance.deadlines.life_cycle_s)
        except CallError as exc:
            return exc
    return None


async def say_farewell(instance: Instance, members: Sequence[HookMember], reason: str, ended: trio.Event) -> None:
    """Tell an extension that it ends, and wait for what it has to do; at most `deadlines.life_cycle_s` in all.

    Shielded, as everything around it may be cancelled already.

    Args:
      instance: On its way out, and not asked to exit yet.
      members: Its hooks that are told.
      reason: Why it ends.
      ended: Set once its process has ended: then nobody is there to answer.
    """
    if not members or ended.is_set():
        return
    limit_s = instance.deadlines.life_cycle_s
    instance.is_leaving = True
    with trio.move_on_after(limit_s, shield=True) as scope:  # noqa: ASYNC912 - the nursery below is a cancel point
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, ended, nursery.cancel_scope)
            for member in members:
                try:
                    await _invoke(member, reason, limit_s, even_at_the_end=True)
                except CallError as exc:
                    event = member.hook.event.value
                    instance.report(Code.CALL_FAILED, Severity.WARNING, f"{event}: {exc.message}")
            nursery.cancel_scope.cancel("all was said")
    instance.is_leaving = False
    if scope.cancelled_caught:
        instance.report(
            Code.CALL_TIMED_OUT, Severity.WARNING, f"it is not done with its end within {limit_s:g} s, and is stopped"
        )


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel("its process has ended")


async def _invoke(member: HookMember, reason: str, limit_s: float, *, even_at_the_end: bool = False) -> None:
    hook = member.hook

    def read(_batch: Any) -> None:
        """There is nothing to be made of it."""

    await invoke(
        member.instance,
        Invoked(
            record=member.record,
            event=hook.event.value,
            payload={"reason": reason},
            what=f"hook {hook.event.value}",
            contract=hook.contract,
            read=read,
            even_at_the_end=even_at_the_end,
        ),
        Patience(limit_s),
    )
