"""Reloading the extensions of a session: requests that come together are merged, one cycle runs at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

from trio_exthost.errors import ClosedError
from trio_exthost.runtime.reload_cycle import Cycle
from trio_exthost.runtime.reload_report import ReloadReport, When

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session


class Reloader:
    """The reloads of one session. A cycle is no task of who asked for it: several may have, and one may be cancelled."""

    def __init__(self, session: Session) -> None:
        """Nothing has been reloaded."""
        self._session = session
        self._current: Cycle | None = None
        self._next: Cycle | None = None
        self._is_working = False
        self.report: ReloadReport | None = None
        """What the last reload did."""
        session.loader.call_off = self.call_off

    @property
    def pending(self) -> tuple[str, ...]:
        """See `Session.reload_pending`."""
        return self._current.pending if self._current is not None else ()

    async def reload(self, name: str | None, when: When, grace_s: float | None) -> ReloadReport:
        """See `Session.reload`."""
        if when not in ("idle", "now"):
            raise ValueError(f"when must be 'idle' or 'now', not {when!r}")
        if grace_s is None:
            grace_s = self._session.host.config.deadlines.reload_grace_s
        elif not 0 <= grace_s < math.inf:
            raise ValueError(f"grace_s must be a number of seconds, 0 or more, not {grace_s!r}")
        cycle = self._ask(name, when, grace_s)
        try:
            await cycle.done.wait()
            while cycle.continued_by is not None:
                cycle = cycle.continued_by
                await cycle.done.wait()
        except trio.Cancelled:
            while cycle.continued_by is not None:
                cycle = cycle.continued_by
            cycle.leave()
            raise
        if cycle.error is not None:
            raise cycle.error.with_traceback(None)
        if cycle.report is None:
            raise ClosedError(f"session {self._session.id!r} has ended")
        return cycle.report

    def _ask(self, name: str | None, when: When, grace_s: float) -> Cycle:
        """The cycle that will do it: the next one, as one that runs may have looked at the files before they changed."""
        if self._next is None or not self._next.waiters:
            self._next = Cycle(self._session)
        cycle = self._next
        cycle.join(name, when, grace_s)
        cycle.waiters += 1
        if self._current is not None:
            self._current.give_way(cycle)
        if not self._is_working:
            self._is_working = True
            self._session.host.nursery.start_soon(self._work, name=f"reload of {self._session.id}")
        return cycle

    async def _work(self) -> None:
        while self._next is not None:
            cycle, self._next = self._next, None
            self._current = cycle
            try:
                with cycle.scope:
                    await cycle.run()
            finally:
                self._current = None
                self.report = cycle.report or self.report
                cycle.done.set()
        self._is_working = False

    def call_off(self, name: str | None) -> None:
        """A person has unloaded this extension, or the session has ended (None)."""
        for cycle in (self._current, self._next):
            if cycle is not None:
                cycle.call_off(name)
