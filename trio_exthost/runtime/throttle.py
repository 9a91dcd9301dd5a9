"""When an extension is not read: it floods, or it does not read what waits for it itself."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_exthost.diagnostics import Code, Severity

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.pump import InputPipe


class Throttle:
    """Input budget of one instance: bytes per second, and the share of a second that handling its frames may take.

    Work is real time, whatever trio's clock says. The clock is looked at only when a second's budget is used up: if that took
    longer than a second, the next begins, with a budget of its own. So a flood is noticed after two budgets at the latest.
    """

    def __init__(self, instance: Instance) -> None:
        """Nothing is counted before `attach`."""
        self._instance = instance
        self._pipe: InputPipe | None = None
        self._window_end = 0.0
        self._is_over_budget = False
        self._is_full = False

    def attach(self, pipe: InputPipe) -> None:
        """Watch over this pipe."""
        self._pipe = pipe
        self._begin_second(pipe, time.perf_counter())
        pipe.on_budget = partial(self._on_budget, pipe)

    def _begin_second(self, pipe: InputPipe, now: float) -> None:
        limits = self._instance.limits
        self._window_end = now + 1
        pipe.budget_bytes = pipe.received_bytes + limits.inbound_bytes_per_s
        pipe.budget_s = pipe.busy_s + limits.inbound_busy_share

    def _on_budget(self, pipe: InputPipe, now: float) -> None:
        """Pause the pipe until the end of this second."""
        limits = self._instance.limits
        if now >= self._window_end:
            self._begin_second(pipe, now)
        elif not self._is_over_budget and self._instance.nursery is not None:
            self._is_over_budget = True
            taken = pipe.received_bytes - (pipe.budget_bytes - limits.inbound_bytes_per_s)
            busy_s = pipe.busy_s - (pipe.budget_s - limits.inbound_busy_share)
            self._instance.report(
                Code.INPUT_THROTTLED,
                Severity.WARNING,
                f"it floods: {taken:.0f} bytes, {busy_s:.2f} s of handling in a second",
            )
            self._update()
            self._instance.nursery.start_soon(self._resume, pipe, name=f"throttle of {self._instance.name}")

    @trio.lowlevel.enable_ki_protection
    async def _resume(self, pipe: InputPipe) -> None:
        await trio.sleep(max(0, self._window_end - time.perf_counter()))
        self._is_over_budget = False
        self._begin_second(pipe, time.perf_counter())
        self._update()

    def set_full(self, is_full: bool) -> None:
        """Answers wait over the outbox's bound: read nothing that could make more of them."""
        self._is_full = is_full
        self._update()

    def _update(self) -> None:
        if self._pipe is not None:
            if self._is_over_budget or self._is_full:
                self._pipe.pause()
            else:
                self._pipe.resume()
