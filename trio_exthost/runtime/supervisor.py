"""Starting again what has crashed: after a delay that grows, within a budget, and then no more, loudly."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.policy.restarts import RestartWindow
from trio_exthost.policy.settings import RestartMode
from trio_exthost.runtime.lifecycle import State

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


class Supervisor:
    """Restarts the extensions of one session as the policy says."""

    def __init__(self, session: Session) -> None:
        """Nothing has crashed."""
        self._session = session
        self._chance = random.Random(session.host.config.seed)  # noqa: S311 - jitter, no secret
        self._windows: dict[str, RestartWindow] = {}
        self._waiting: dict[str, tuple[Instance, trio.CancelScope]] = {}

    def instance_ended(self, instance: Instance) -> None:
        """Nothing is left of an instance: start a successor later, if it crashed and the policy says so.

        One that could not even be spawned is not tried again: nothing would be different.
        """
        host, name = self._session.host, instance.name
        ruling = host.policy.restart(name, instance.manifest.exthost.restart)
        is_over = host.is_closing or self._session.is_closed
        if ruling.value.mode is RestartMode.NEVER or instance.state is not State.FAILED or is_over:
            return
        if instance.pid_was is None:
            return
        window = self._windows.get(name)
        if window is None:
            policy = ruling.value
            window = self._windows[name] = RestartWindow(
                budget=policy.budget,
                window_s=policy.window_s,
                delay_s=policy.delay_s,
                delay_max_s=policy.delay_max_s,
            )
        delay = window.next_delay(trio.current_time(), self._chance.random())
        why = instance.reason
        if delay is None:
            instance.reason = f"given up after {window.used} restarts in {window.window_s:g} s; the last end: {why}"
            instance.move(State.GAVE_UP)
            instance.report(Code.GAVE_UP, Severity.ERROR, f"{instance.reason}; session.load({name!r}) tries again")
            return
        instance.reason = f"it is started again in {delay:.3g} s ({ruling.explain()}); its last end: {why}"
        instance.move(State.WAITING)
        instance.report(Code.RESTARTING, Severity.WARNING, instance.reason)
        scope = trio.CancelScope()
        self._waiting[name] = (instance, scope)
        host.nursery.start_soon(self._restart_later, instance, scope, delay, name=f"restart of {name}")

    async def _restart_later(self, instance: Instance, scope: trio.CancelScope, delay: float) -> None:
        with scope:
            await trio.sleep(delay)
            del self._waiting[instance.name]
            self._session.loader.start_again(instance.candidate)

    def forget(self, name: str) -> None:
        """A person acts: what waits is not started any more, and the budget is whole again."""
        self._windows.pop(name, None)
        if name in self._waiting:
            instance, scope = self._waiting.pop(name)
            scope.cancel(f"the restart of {name} is called off")
            instance.reason = "it was asked to stop"
            instance.move(State.STOPPED)

    def stop(self) -> None:
        """The session ends: nothing is started any more."""
        for name in list(self._waiting):
            self.forget(name)
