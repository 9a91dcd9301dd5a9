"""Which extensions of a session run: loading, unloading, reloading, and how they are; `Session` has them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.host import Host
    from trio_exthost.runtime.loading import Loader
    from trio_exthost.runtime.reload_report import ReloadReport, When
    from trio_exthost.runtime.reloading import Reloader
    from trio_exthost.runtime.status import ExtensionRow, LoadReport


class SessionLoading(ABC):
    """The extensions of one session."""

    host: Host
    loader: Loader
    _reloader: Reloader

    @abstractmethod
    def check_open(self) -> None:
        """As `Session.check_open`."""

    async def load_all(self) -> LoadReport:
        """Look for extensions and start all that count, at the same time; none holds up another.

        Returns when all are ready or have failed, or after `deadlines.ready_cap_s`: late ones join when they are ready.
        Those that run already are left alone. Then the session has started: `session_start` is told.

        If this raises `trio.Cancelled`, those that were not ready are being stopped.

        Raises:
          ClosedError: The session has ended.
        """
        self.check_open()
        return await self.loader.load_all()

    async def load(self, extension: Candidate | str | os.PathLike[str]) -> ExtensionRow:
        """Start one extension and wait until it is ready, however long its own deadlines let it take.

        Args:
          extension: Its directory (relative to the session's cwd; trusted, as you name it), or a row of the catalogue.

        If this raises `trio.Cancelled`, it is being stopped.

        Raises:
          LoadError: It did not become ready, or one of its name runs already.
          ClosedError: The session has ended.
        """
        self.check_open()
        return await self.loader.load(extension)

    async def unload(self, name: str) -> None:
        """Ask an extension to stop and wait until nothing of it is left; nothing if it does not run.

        May be called from a tool of that very extension: the stopping is done in its own task. If this raises
        `trio.Cancelled`, it is being stopped all the same.
        """
        self.host.check_thread()
        await self.loader.unload(name)

    async def reload(
        self, name: str | None = None, *, when: When = "idle", grace_s: float | None = None
    ) -> ReloadReport:
        """Look at the catalogue anew: start what is new, stop what has gone, give what has changed a new process.

        A successor starts beside the one that runs, and takes over in one step once it is ready, with all records and in
        their places; until then the old one is told and asked. If it does not get ready, or would drop what the policy
        requires of it, the old one goes on, and the report says why. Calls in flight have a grace; the others end with
        `Reloaded`. Requests that come together are one reload, and one that comes during another begins after it with a
        new look. Sequence numbers go on. `docs/reload.md` has the whole of it.

        Takes at most `deadlines.reload_total_s` and the time for which it waits for runs.

        If this raises `trio.Cancelled`, and nobody else waits for the same reload, what has not taken over is being stopped,
        and what ran goes on.

        Args:
          name: Only this one, changed or not; all that have changed or failed if not given.
          when: Take over as soon as no run is open (`reload_pending` says who waits), or `now`. Do not wait for `idle` from
            within a run.
          grace_s: For calls in flight; `deadlines.reload_grace_s` if not given.

        Raises:
          ValueError: `when` or `grace_s` is none.
          ClosedError: The session has ended, or does meanwhile.
        """
        self.check_open()
        return await self._reloader.reload(name, when, grace_s)

    @property
    def reload_report(self) -> ReloadReport | None:
        """What the last `reload` did; stays until the next has."""
        return self._reloader.report

    @property
    def reload_pending(self) -> tuple[str, ...]:
        """Extensions that a reload will replace or stop once no run is open."""
        return self._reloader.pending

    def extensions(self) -> tuple[ExtensionRow, ...]:
        """Every extension there is, in catalogue order, with its state and the reason for it."""
        return self.loader.rows()

    @property
    def report(self) -> LoadReport | None:
        """What the last `load_all` found; stays until the next."""
        return self.loader.report
