"""Hooks about the life of their own extension: invoked, and waited for, where it begins and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError
from trio_exthost.hooks import HookEvent
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

FAREWELL = (HookEvent.SESSION_SHUTDOWN, HookEvent.EXTENSION_UNLOAD)
"""What an extension that ends is told, in this order."""


class LifeHooks:
    """The begin and the end of one instance, as its own hooks take part in them."""

    reason: str = "initial"
    """Why it is started: `initial`, or `reload`."""
    is_beginning: bool = False
    """Whether it is admitted, but not done with its begin."""
    is_migrating: bool = False
    """Whether its state is being brought in order, and nothing else is asked of it."""
    is_leaving: bool = False
    """Whether it is told that it ends, and may have a last word."""

    def __init__(self, instance: Instance) -> None:
        """It has not begun."""
        self._instance = instance
        self._has_failed = False
        self._kept: tuple[HookMember, ...] = ()

    def _hooks(self, *events: HookEvent) -> list[HookMember]:
        awaited = self._instance.session.views.awaited
        return [each for event in events for each in awaited.get(event, ()) if each.instance is self._instance]

    # --- its begin ---

    def begin(self) -> None:
        """What it registered is in the ledger: it begins, in a task of its own where there is something to wait for."""
        instance, members = self._instance, self._hooks(HookEvent.EXTENSION_LOAD)
        self.is_migrating = instance.session.persistence.concerns(instance)
        if not members and not self.is_migrating:
            self._has_begun()
            return
        assert instance.nursery is not None
        self.is_beginning = True
        instance.nursery.start_soon(self._begin, members, name=f"begin of {instance.name}")

    def bring_in_order(self) -> None:
        """What it has stored is in another form than it knows from now on: that comes before all else, in a task.

        One that has not begun yet looks at it when it does; one that is at it looks again in the end.
        """
        instance = self._instance
        if instance.state in (State.READY, State.TRIPPED) and not instance.is_ending and not self.is_migrating:
            assert instance.nursery is not None
            self.is_migrating = True
            instance.nursery.start_soon(self._migrate, name=f"migration of {instance.name}")

    @property
    def is_held_up(self) -> bool:
        """Whether it can be asked later, but not now: its state is being brought in order."""
        return self.is_migrating and not self._instance.is_ending

    async def until_in_order(self, deadline: float) -> bool:
        """Whether it is not held up any more by `deadline`; it may have come to its end by that."""
        return await self._instance.until(lambda: not self.is_held_up, deadline)

    async def _migrate(self) -> None:
        instance = self._instance
        try:
            why = await instance.session.persistence.prepare(instance)
        finally:
            self.is_migrating = False
            instance.poke()
        if why:
            instance.end(Code.LOAD_FAILED, why)

    async def _begin(self, members: Sequence[HookMember]) -> None:
        instance = self._instance
        if self.is_migrating:
            await self._migrate()
        error = await self._load(members) if not instance.is_ending else None
        if instance.is_ending:
            return
        if error is not None:
            self._has_failed = True
            instance.end(Code.LOAD_FAILED, f"it failed to begin: {error.message}")
        else:
            self._has_begun()

    async def _load(self, members: Sequence[HookMember]) -> CallError | None:
        for member in members:
            try:
                await _invoke(member, self.reason, self._instance.deadlines.life_cycle_s)
            except CallError as exc:
                return exc
        return None

    def _has_begun(self) -> None:
        self.is_beginning = False
        self._instance.has_begun()

    # --- its end ---

    def keep_last_words(self) -> None:
        """A successor takes over its records: its hooks about its end are kept, and told at its end."""
        self._kept = tuple(self._hooks(*FAREWELL))

    def last_words(self, *, is_asked: bool) -> list[HookMember]:
        """Who is told about its end; ask before its records leave the ledger.

        Args:
          is_asked: Whether it was asked to end; one that fails is told only where it was its begin that failed.
        """
        if not is_asked and not self._has_failed:
            return []
        return [*self._hooks(*FAREWELL), *(self._kept if is_asked else ())]

    async def say_farewell(self, members: Sequence[HookMember], ended: trio.Event, *, is_reload: bool) -> None:
        """Tell it that it ends, and wait for what it has to do; at most `deadlines.life_cycle_s` in all.

        Shielded, as everything around it may be cancelled already.

        Args:
          members: Its hooks that are told.
          ended: Set once its process has ended: then nobody is there to answer.
          is_reload: Whether a successor is there.
        """
        if not members or ended.is_set():
            return
        instance = self._instance
        limit_s = instance.deadlines.life_cycle_s
        reason = "initialization_failed" if self._has_failed else "reload" if is_reload else "shutdown"
        self.is_leaving = True
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
        self.is_leaving = False
        if scope.cancelled_caught:
            message = f"it is not done with its end within {limit_s:g} s, and is stopped"
            instance.report(Code.CALL_TIMED_OUT, Severity.WARNING, message)


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
