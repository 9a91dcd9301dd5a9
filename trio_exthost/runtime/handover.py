"""One extension is reloaded: its successor starts beside it, gets ready, and takes over; or nothing happens.

Who is in flight has a grace at both sides of that step. Calls that the old one works on when its successor is ready are
waited for before; those that it was given meanwhile, and only those, after. What is over its grace then ends with
`Reloaded`; a chain whose question ends so asks the successor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from trio_exthost.effects import DisposeCause
from trio_exthost.errors import LoadError
from trio_exthost.runtime.calls import cut_off
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.reload_report import ReloadFailure, Restarted
from trio_exthost.runtime.succession import Succession

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


class Handover:
    """The reload of one extension. `run` is its task; afterwards it has failed, or has taken over."""

    def __init__(self, session: Session, candidate: Candidate, *, grace_s: float, total_s: float) -> None:
        """Start the successor.

        Args:
          session: Whose extension it is.
          candidate: What is started.
          grace_s: For calls in flight.
          total_s: For everything, the time in which it waits for open runs not counted.
        """
        self.name: str = candidate.name
        self._session = session
        self._loader = session.loader
        self._grace_s = grace_s
        self._until = trio.current_time() + total_s
        before = self._loader.latest(self.name)
        self._old_pid = before.pid_was if before is not None else None
        self._old: Instance | None = None
        self._waited_for: frozenset[str] = frozenset()
        self._has_taken_over = False
        self.new: Instance = self._loader.start_beside(candidate)
        self.failure: ReloadFailure | None = None
        """Why it did not take over, or failed right after."""
        self.is_pending: bool = False
        """Whether it waits for open runs to end."""
        self.in_line: trio.Event = trio.Event()
        """Set once it waits for nothing but its turn, or will never have one."""

    @property
    def has_taken_over(self) -> bool:
        """Whether it is the one of its name, and goes on."""
        return self._has_taken_over and self.failure is None

    @property
    def restarted(self) -> Restarted:
        """The processes before and after."""
        return Restarted(self.name, self._old_pid, self.new.pid_was)

    async def run(self, *, at_once: bool, behind: Sequence[Handover] = ()) -> None:
        """Reload it. If this raises `trio.Cancelled`, the successor is being stopped, unless it has taken over.

        Args:
          at_once: Whether it takes over without looking at runs.
          behind: Whoever is let in before it where they are in line by `deadlines.ready_cap_s`.
        """
        try:
            await self._reload(at_once=at_once, behind=behind)
        finally:
            self.is_pending = False
            self.in_line.set()
            if not self._has_taken_over:
                self.new.stop()
            elif self._old is not None:
                self._stop_old(self._old)

    async def _reload(self, *, at_once: bool, behind: Sequence[Handover]) -> None:
        cap = min(self._until, trio.current_time() + self._session.host.config.deadlines.ready_cap_s)
        if await self._is_ready():
            with trio.move_on_at(cap):  # noqa: ASYNC912 - nobody before it is no wait
                for each in behind:
                    await each.in_line.wait()
            await self._finish_calls()
            await self._take_over(at_once=at_once)
        if self._has_taken_over:
            await self._settle()
        else:
            self.new.stop()
            with trio.move_on_at(self._until):
                await self.new.ended.wait()
            self._loader.keep_failed(self.new)

    async def _is_ready(self) -> bool:
        new = self.new
        if not await new.until(lambda: new.registering.is_complete or new.is_ending, self._until):
            total_s = self._session.host.config.deadlines.reload_total_s
            self._fail(f"it is not ready after {total_s:g} s (deadlines.reload_total_s)", str(new.state))
        elif new.is_ending:
            await self._explain()
        elif self._was_silent():
            self._fail(
                "it sent no ready frame, and what runs had: taken for hanging (unload it and load it, if that is meant)",
                "registering",
            )
        return self.failure is None

    def _was_silent(self) -> bool:
        """Whether its silence was taken for `ready`, though the one that runs had said it: then it probably hangs."""
        old = self._loader.running(self.name)
        return self.new.registering.is_auto and old is not None and old.registering.has_said_ready

    async def _explain(self) -> None:
        """It ends before it could take over: why."""
        with trio.move_on_at(self._until):
            await self.new.settled.wait()
        error = self.new.error
        if error is not None:
            self._fail(str(error), error.stage)
        else:
            self._fail(self.new.reason or "it was stopped before it could take over", "stopped")

    def _fail(self, reason: str, stage: str) -> None:
        if self.failure is None:
            self.failure = ReloadFailure(self.name, reason, stage, str(self.new.log.path))

    async def _finish_calls(self) -> None:
        """What the old one works on now is waited for; it goes on getting new work."""
        old = self._loader.running(self.name)
        if old is not None:
            self._waited_for = frozenset(each.id for each in old.replies.pending())
            await _within_grace(old, self._waited_for, self._grace_until())

    def _grace_until(self) -> float:
        return min(self._until, trio.current_time() + self._grace_s)

    async def _take_over(self, *, at_once: bool) -> None:
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def cross() -> None:
                await self._session.loader.boundary.cross(self._swap, at_once=at_once)

            self.is_pending = not at_once and bool(self._session.runs)
            nursery.start_soon(cross)
            self.in_line.set()
            await self.new.until(lambda: self._has_taken_over or self.new.is_ending, math.inf)
            nursery.cancel_scope.cancel("it has taken over, or never will")
        self.is_pending = False
        self._until += trio.current_time() - begun
        if not self._has_taken_over and self.failure is None:
            await self._explain()

    def _swap(self) -> None:
        """The one step; whoever looks before it sees the old one, whoever looks after it the new one."""
        new, old = self.new, self._loader.running(self.name)
        if new.is_ending:
            return
        self._loader.supervisor.forget(self.name)
        if old is None:
            self._loader.take_over(None, new)
            new.admit()
            self._session.panels.show_held(new)
        else:
            try:
                Succession(old, new).carry_out()
            except LoadError as exc:
                self._fail(str(exc), exc.stage)
                new.stop()
                return
        self._old, self._has_taken_over = old, True
        new.poke()

    async def _settle(self) -> None:
        """The old one finishes what it was given last, and goes; the new one begins."""
        old = self._old
        if old is not None:
            late = frozenset(each.id for each in old.replies.pending()) - self._waited_for
            cut_off(old, self._waited_for)
            if old.state is State.READY:
                await _within_grace(old, late, self._grace_until())
            self._stop_old(old)
        with trio.move_on_at(self._until):
            await self.new.settled.wait()
            if old is not None:
                await old.ended.wait()
        if self.new.error is not None:
            self._fail(str(self.new.error), "begin")

    @staticmethod
    def _stop_old(old: Instance) -> None:
        cut_off(old, frozenset(each.id for each in old.replies.pending()))
        old.stop(DisposeCause.RELOAD)


async def _within_grace(instance: Instance, ids: frozenset[str], until: float) -> None:
    """Wait until these calls have ended, or the grace has; an answer that is in the pipe by then counts."""
    with trio.move_on_at(until):
        await instance.replies.wait_ended(ids)
    instance.drain()
