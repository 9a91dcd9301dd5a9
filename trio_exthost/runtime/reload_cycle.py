"""One reload from the scan to the report, for everybody who has asked for it by the time it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_exthost.runtime.handover import Handover
from trio_exthost.runtime.reload_report import ReloadReport, Restarted, When
from trio_exthost.runtime.reload_scan import Found, Scope, compare, look

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session

SECOND_LOOK_S = 0.3
"""A manifest that cannot be read is looked at once more after so long: an editor may be half way through writing it."""


class Cycle:
    """What several requests have in common, and what became of it."""

    def __init__(self, session: Session) -> None:
        """Nobody has asked for anything."""
        self._session = session
        self._names: set[str] = set()
        self._everything = False
        self._at_once = False
        self._grace_s = 0.0
        self._handovers: list[Handover] = []
        self._added: set[str] = set()
        self._removals: set[str] = set()  # that wait for open runs to end
        self._done_before: list[Restarted] = []
        self._added_before: list[str] = []
        self._removed: list[str] = []
        self._is_started = False
        self._newer: Cycle | None = None
        self.waiters = 0
        """Who waits for it; without anybody, it is given up."""
        self.scope: trio.CancelScope = trio.CancelScope()
        self.done: trio.Event = trio.Event()
        """Set once it has its report, or never will, or another has taken over what it was to do."""
        self.report: ReloadReport | None = None
        self.error: Exception | None = None
        """Why the catalogue could not be looked at."""
        self.continued_by: Cycle | None = None
        """The cycle that does what this one was to do."""

    # --- what is asked for ---

    def join(self, name: str | None, when: When, grace_s: float) -> None:
        """One more request: the widest scope, the earliest moment and the longest grace of all count."""
        if name is None:
            self._everything = True
        else:
            self._names.add(name)
        self._at_once = self._at_once or when == "now"
        self._grace_s = max(self._grace_s, grace_s)

    def continue_(self, other: Cycle) -> None:
        """Do what another was to do and has not done."""
        done = {each.name for each in other._restarted()}
        self._names |= other._names - done
        self._everything = self._everything or other._everything
        self._grace_s = max(self._grace_s, other._grace_s)
        self.waiters += other.waiters
        self._done_before = other._restarted()
        self._added_before = other._added_so_far()
        self._removed = list(other._removed)
        other.continued_by = self

    def leave(self) -> None:
        """One waits no longer."""
        self.waiters -= 1
        if not self.waiters:
            self.scope.cancel("nobody waits for this reload any more")
            for each in self._handovers:
                if not each.has_taken_over:
                    each.new.stop()

    # --- what it does ---

    @property
    def pending(self) -> tuple[str, ...]:
        """Extensions whose successors are ready and wait for open runs to end, and those that are to be stopped then."""
        if self.scope.cancel_called:
            return ()
        return (*(each.name for each in self._handovers if each.is_pending), *sorted(self._removals))

    def give_way(self, newer: Cycle) -> None:
        """A newer request is there: where all that is left waits for open runs to end, that one begins with a new scan."""
        self._newer = newer
        self._look()

    def call_off(self, name: str | None) -> None:
        """The successor of this extension, or everything, is not wanted any more."""
        for each in self._handovers:
            if name in (None, each.name):
                each.new.stop()
        if name is None:
            self.scope.cancel("the session has ended")

    def _look(self) -> None:
        left = [each for each in self._handovers if not each.in_line.is_set() or each.is_pending]
        is_waiting = self._is_started and all(each.is_pending for each in left) and bool(self.pending)
        if self._newer is not None and is_waiting and self.continued_by is None:
            self._newer.continue_(self)
            self.scope.cancel("a newer reload begins with what is there now")

    async def run(self) -> None:
        """Do it. If this raises `trio.Cancelled`, successors that have not taken over are being stopped."""
        try:
            found = await self._scan()
        except Exception as exc:  # noqa: BLE001 - the embedder's catalogue may raise anything; whoever waits is told
            self.error = exc
            return
        self._session.loader.adopt(found.candidates)
        async with trio.open_nursery() as nursery:
            added: list[Handover] = []
            for candidate in (*found.added, *found.restarted):
                handover = self._begin(candidate)
                behind = tuple(added)
                if candidate in found.added:
                    self._added.add(candidate.name)
                    added.append(handover)
                nursery.start_soon(self._hand_over, handover, behind)
            for name in found.removed:
                nursery.start_soon(self._remove, name, found.rows_after.get(name))
            self._is_started = True
        self.report = self._report(found)

    async def _scan(self) -> Found:
        loader, scope = self._session.loader, Scope(frozenset(self._names), self._everything)
        scanned = await look(self._session)
        if any(each.status.value == "rejected" for each in scanned):
            await trio.sleep(SECOND_LOOK_S)
            scanned = await look(self._session)
        return compare(loader.candidates, scanned, loader.latest, scope)

    def _begin(self, candidate: Candidate) -> Handover:
        total_s = self._session.host.config.deadlines.reload_total_s
        handover = Handover(self._session, candidate, grace_s=self._grace_s, total_s=total_s)
        self._handovers.append(handover)
        return handover

    async def _hand_over(self, handover: Handover, behind: tuple[Handover, ...]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look_when_in_line, handover)
            await handover.run(at_once=self._at_once, behind=behind)
        self._look()

    async def _look_when_in_line(self, handover: Handover) -> None:
        await handover.in_line.wait()
        self._look()

    async def _remove(self, name: str, row: Candidate | None) -> None:
        loader = self._session.loader

        taken_out: Instance | None = None

        def take_out() -> None:
            nonlocal taken_out
            if self.scope.cancel_called:
                return
            self._removals.discard(name)
            taken_out = loader.take_out(name, row)
            self._removed.append(name)

        self._removals.add(name)
        try:
            self._look()
            await loader.boundary.cross(take_out, at_once=self._at_once)
        finally:
            self._removals.discard(name)
        if taken_out is not None:
            with trio.move_on_after(self._session.host.config.deadlines.reload_total_s):
                await taken_out.ended.wait()

    # --- the report ---

    def _restarted(self) -> list[Restarted]:
        now = [each.restarted for each in self._handovers if each.has_taken_over and each.name not in self._added]
        again = {each.name for each in now}
        return [*(each for each in self._done_before if each.name not in again), *now]

    def _added_so_far(self) -> list[str]:
        return [
            *self._added_before,
            *(each.name for each in self._handovers if each.has_taken_over and each.name in self._added),
        ]

    def _report(self, found: Found) -> ReloadReport:
        order = {each.name: place for place, each in enumerate(found.candidates)}

        def place(name: str) -> int:
            return order.get(name, len(order))

        restarted, added = self._restarted(), self._added_so_far()
        told = {*added, *(each.name for each in restarted)}
        failed = [*found.failed, *(each.failure for each in self._handovers if each.failure is not None)]
        return ReloadReport(
            added=tuple(sorted(added, key=place)),
            removed=tuple(dict.fromkeys([*(each for each in found.removed if each in self._removed), *self._removed])),
            restarted=tuple(sorted(restarted, key=lambda each: place(each.name))),
            unchanged=tuple(each for each in found.unchanged if each not in told),
            failed=tuple(sorted(failed, key=lambda each: place(each.name))),
        )
