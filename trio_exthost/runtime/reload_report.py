"""What a reload did: a value that stays readable until the next one."""

from __future__ import annotations

from typing import Literal

import attrs

When = Literal["idle", "now"]
"""When a successor takes over: as soon as no run is open, or without looking at runs."""


@attrs.frozen
class Restarted:
    """An extension whose process is another now."""

    name: str
    """Its name."""
    old_pid: int | None
    """The process before, which may have ended long ago; None where there was none."""
    new_pid: int | None
    """The process that took over."""


@attrs.frozen
class ReloadFailure:
    """An extension that could not be reloaded; where one of it ran, that one goes on."""

    name: str
    """Its name, or that of its directory where its manifest cannot be read."""
    reason: str
    """Why, with the end of its stderr where there is something."""
    stage: str = ""
    """How far it came: `discovery`, `spawn`, `hello`, `registering`, `guard`, `swap`, `begin`."""
    log_path: str = ""
    """Where its stderr went; empty where it was never started."""


@attrs.frozen(kw_only=True)
class ReloadReport:
    """What `Session.reload` did. Each extension that was looked at is in one of them; each is in catalogue order."""

    added: tuple[str, ...] = ()
    """Found for the first time, started, and ready."""
    removed: tuple[str, ...] = ()
    """Not there any more, switched off, in the shadow of another, or its trust was taken back: stopped."""
    restarted: tuple[Restarted, ...] = ()
    """Changed, named, or failed before: a new process has taken over."""
    unchanged: tuple[str, ...] = ()
    """Left alone."""
    failed: tuple[ReloadFailure, ...] = ()
    """What did not come to be, and why."""
