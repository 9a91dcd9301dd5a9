"""Which extensions of a session run: starting them together, letting them in, in order, and stopping them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import DisposeCause, Scope
from trio_exthost.errors import LoadError
from trio_exthost.runtime.admitting import Admission
from trio_exthost.runtime.boundary import Boundary
from trio_exthost.runtime.catalogue_news import tell_about, tell_all
from trio_exthost.runtime.failure import fresh
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.status import ExtensionRow, LoadReport, not_started, row_of
from trio_exthost.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.session import Session


_OVER = (State.FAILED, State.STOPPED, State.GAVE_UP)
"""States of one that nobody will start again by itself."""


class Loader:
    """The instances of one session, by name, and the candidates they were made of."""

    def __init__(self, session: Session) -> None:
        """Nothing is looked for yet."""
        self._session = session
        self._host = session.host
        self.admission: Admission = Admission()
        self.supervisor: Supervisor = Supervisor(session)
        self.report: LoadReport | None = None
        self._running: dict[str, Instance] = {}
        self._gone: dict[str, Instance] = {}  # the last one of each name that has ended, for its state and reason
        self._candidates: tuple[Candidate, ...] = ()
        self._by_hand: dict[Path, None] = {}  # directories that `load` was given
        self._beside: set[Instance] = set()  # that run, and are not, or not any more, the one of their name
        self.boundary: Boundary = Boundary(session)
        self.call_off: Callable[[str | None], None] = lambda _name: None
        """Called where a reload of this extension, or of all, makes no sense any more."""

    async def load_all(self) -> LoadReport:
        """See `Session.load_all`."""
        candidates = await self._host.catalogue(self._host.config, self._session.cwd)
        self._session.check_open()  # it can have ended meanwhile, and nothing would stop what is started now
        self._candidates = tuple(candidates)
        self._session.guards.discovered(self._candidates)
        tell_all(self._session, self._candidates)
        started = [
            self._start(candidate, rank)
            for rank, candidate in enumerate(self._candidates)
            if candidate.status.value == "effective" and self._may_start(candidate.name)
        ]
        self.admission.expect(started, in_order=True)
        # Those that another load has begun and that are not ready yet are waited for, too.
        instances = [instance for instance in self._running.values() if not instance.settled.is_set()]
        try:
            with trio.move_on_after(self._host.config.deadlines.ready_cap_s):  # noqa: ASYNC912 - nothing to wait for is no wait
                for instance in instances:
                    await instance.settled.wait()
        except trio.Cancelled:
            for instance in started:
                if not instance.settled.is_set():
                    instance.stop()
            raise
        for instance in instances:
            if not instance.settled.is_set():
                instance.drain()
        self.admission.stop_waiting()
        self._session.start()
        for instance in instances:
            if not instance.settled.is_set():
                instance.report(Code.READY_LATE, Severity.WARNING, "it is not ready yet; it joins when it is")
        self.report = LoadReport.of(self.rows(), instances, self._candidates)
        return self.report

    def _may_start(self, name: str) -> bool:
        """Whether nothing of that name runs; a restart that waits is called off, as it is started now."""
        if name in self._running:
            return False
        self.supervisor.forget(name)
        return True

    async def load(self, extension: Candidate | str | os.PathLike[str]) -> ExtensionRow:
        """See `Session.load`."""
        if isinstance(extension, (str, os.PathLike)):
            config = attrs.evolve(
                self._host.config, extensions=(self._session.cwd / extension,), project_roots=(), user_roots=()
            )
            (candidate,) = await self._host.catalogue(config, self._session.cwd)
            self._session.check_open()  # as in load_all
            tell_about(self._session, candidate)
        else:
            candidate = extension
        while (before := self._running.get(candidate.name)) is not None and before.is_ending:
            await before.ended.wait()  # its row may say already that it has failed
            self._session.check_open()
        problem = ""
        if candidate.manifest is None or candidate.status.value != "effective":
            problem = candidate.reason or "there is nothing to start"
        elif candidate.name in self._running:
            problem = "an extension of that name is running"
        if problem:
            raise not_started(candidate, problem)
        self.supervisor.forget(candidate.name)
        self._by_hand[candidate.directory] = None
        instance = self.start_again(candidate)
        try:
            await instance.settled.wait()
        except trio.Cancelled:
            instance.stop()
            raise
        if instance.error is not None:
            raise fresh(instance.error)
        if instance.state is not State.READY:
            raise LoadError(instance.reason, extension=instance.name, stage="stopped")
        return row_of(candidate, instance)

    def _rank_of(self, candidate: Candidate) -> int:
        """Its place in the catalogue; one that is not in it comes last."""
        directories = [known.directory for known in self._candidates]
        if candidate.directory in directories:
            return directories.index(candidate.directory)
        self._candidates += (candidate,)
        self._session.guards.discovered((candidate,))
        return len(directories)

    def start_again(self, candidate: Candidate) -> Instance:
        """Start an instance beside a load; it joins when it is ready."""
        instance = self._start(candidate, self._rank_of(candidate))
        self.admission.expect([instance], in_order=False)
        return instance

    def _start(self, candidate: Candidate, rank: int) -> Instance:
        instance = Instance(self._session, candidate, self._host.next_instance_number(), rank)
        self._running[candidate.name] = instance
        self._run(instance)
        return instance

    def _run(self, instance: Instance) -> None:
        candidate = instance.candidate
        self._host.nursery.start_soon(instance.run, name=f"extension {candidate.name} of {self._session.id}")

    # --- for a reload ---

    @property
    def by_hand(self) -> tuple[Path, ...]:
        """The directories of what was loaded by hand, in that order."""
        return tuple(self._by_hand)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The catalogue as it was looked at last."""
        return self._candidates

    def adopt(self, candidates: tuple[Candidate, ...]) -> None:
        """The catalogue is another now; what is new in it is told, and everybody takes the place it has there."""
        known = {(each.directory, each.status, each.reason) for each in self._candidates}
        self._candidates = candidates
        self._session.guards.discovered(candidates)
        for rank, candidate in enumerate(candidates):
            if (candidate.directory, candidate.status, candidate.reason) not in known:
                tell_about(self._session, candidate)
            instance = self._latest(candidate)
            if instance is not None:
                instance.rank = rank
        self._session.views.reorder()
        self._session.mark_changed()

    def start_beside(self, candidate: Candidate) -> Instance:
        """Start one that is not yet the one of its name; `take_over` makes it that."""
        instance = Instance(self._session, candidate, self._host.next_instance_number(), self._rank_of(candidate))
        instance.life.reason = "reload"
        self._beside.add(instance)
        self._run(instance)
        return instance

    def keep_failed(self, new: Instance) -> None:
        """One that did not take over: where nobody of its name runs or will, why is what its row says from now on."""
        latest = self.latest(new.name)
        if new.state is State.FAILED and (latest is None or latest.state in _OVER):
            self._gone[new.name] = new
            self._session.mark_changed()

    def take_over(self, old: Instance | None, new: Instance) -> None:
        """From now on, `new` is the one of its name; the old one is still waited for where the session ends."""
        self._beside.discard(new)
        if old is not None:
            self._beside.add(old)
        self._running[new.name] = new
        self._session.guards.started_anew(new.name, tightens=new.manifest.exthost.on_failure == "block")

    def is_in_waiting(self, instance: Instance) -> bool:
        """Whether it is to take over, and has not."""
        return instance in self._beside and instance.successor is None and not instance.is_ending

    def take_out(self, name: str, row: Candidate | None) -> Instance | None:
        """It counts in the catalogue no more: it is stopped, and nothing is kept of it, so that one that comes back is new.

        Args:
          name: Its name.
          row: What stands in the catalogue in its place; None where nothing does.

        Returns:
          What has been asked to stop, if it ran.
        """
        self.supervisor.forget(name)
        self._session.guards.taken_out(name)
        self._gone.pop(name, None)
        rows = (row if each.name == name and each.active else each for each in self._candidates)
        self.adopt(tuple(each for each in rows if each is not None))
        instance = self._running.pop(name, None)
        if instance is not None:
            self._beside.add(instance)
            instance.stop()
        return instance

    # --- ends ---

    async def unload(self, name: str) -> None:
        """See `Session.unload`."""
        self.call_off(name)
        self.supervisor.forget(name)
        instance = self._running.get(name)
        if instance is None:
            await trio.lowlevel.checkpoint()
            return
        instance.stop()
        await instance.ended.wait()

    def forget(self, instance: Instance) -> None:
        """An instance has ended. By incarnation: the late end of an old one removes nothing of its successor."""
        self._beside.discard(instance)
        if self._running.get(instance.name) is instance:
            del self._running[instance.name]
            self._gone[instance.name] = instance
            self.supervisor.instance_ended(instance)
        self._session.mark_changed()

    async def stop_all(self) -> None:
        """Stop all at once and wait for them; shielded, each is bounded by `deadlines.stop_total_s`. Idempotent."""
        self.call_off(None)
        self.supervisor.stop()
        instances = [*self._running.values(), *self._beside]
        for instance in instances:
            instance.stop(DisposeCause.SHUTDOWN)
        with trio.CancelScope(shield=True):  # noqa: ASYNC912 - nothing to wait for is no wait
            for instance in instances:
                await instance.ended.wait()

    def instances(self) -> tuple[Instance, ...]:
        """Those of which there is something."""
        return tuple(self._running.values())

    def running(self, name: str) -> Instance | None:
        """The instance of this name, while there is something of it."""
        return self._running.get(name)

    def forget_scope(self, scope: Scope, id: str) -> None:
        """A run or request has ended: nothing is kept for it either."""
        for instance in self._running.values():
            instance.health.forget_scope(scope, id)
        self.boundary.scope_ended()

    def latest(self, name: str) -> Instance | None:
        """The instance of this name that runs, or the last that did."""
        return self._running.get(name) or self._gone.get(name)

    def is_expected(self, name: str) -> bool:
        """Whether an extension serves, or can be expected to: it counts in the catalogue and has not come to its end."""
        instance = self.latest(name)
        if instance is not None:
            return instance.state not in _OVER
        return any(each.name == name and each.status.value == "effective" for each in self._candidates)

    def place_of(self, name: str) -> float:
        """Its place in the catalogue; behind everybody for one that is not in it."""
        return next((rank for rank, each in enumerate(self._candidates) if each.name == name), math.inf)

    def priority_of(self, name: str) -> int:
        """As the manifest of a candidate says; 0 for one that is not in the catalogue."""
        manifest = next((each.manifest for each in self._candidates if each.name == name), None)
        return manifest.exthost.priority if manifest is not None else 0

    def state_of(self, name: str) -> str:
        """In which state an extension is, with the reason; `not installed` where nobody has heard of it."""
        for row in self.rows():
            if row.name == name:
                return f"{row.state}: {row.reason}" if row.reason else row.state
        return "not installed"

    def rows(self) -> tuple[ExtensionRow, ...]:
        """See `Session.extensions`."""
        return tuple(row_of(candidate, self._latest(candidate)) for candidate in self._candidates)

    def _latest(self, candidate: Candidate) -> Instance | None:
        instance = self.latest(candidate.name)
        if instance is None or instance.candidate.directory != candidate.directory:
            return None
        here = [each.status.value for each in self._candidates if each.directory == candidate.directory]
        is_another = "effective" in here and candidate.status.value != "effective"  # one directory, found twice
        return None if is_another else instance
