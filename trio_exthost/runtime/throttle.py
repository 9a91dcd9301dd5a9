"""When an extension is not read: it floods, or it does not read what waits for it itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

from trio_exthost.diagnostics import Code, Severity

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.pump import InputPipe


class Throttle:
    """Input budget of one instance: bytes per second, and the share of a second that handling its frames may take."""

    def __init__(self, instance: Instance) -> None:
        """Nothing is counted before `attach`."""
        self._instance = instance
        self._pipe: InputPipe | None = None
        self._window_end = 0.0
        self._window_bytes = 0
        self._busy_s = 0.0
        self._is_over_budget = False
        self._is_full = False

    def attach(self, pipe: InputPipe) -> None:
        """Watch over this pipe."""
        self._pipe = pipe

    def count(self, begun: float, now: float) -> None:
        """Handling took from `begun` to `now` (`time.perf_counter`: work is real time, whatever trio's clock says).

        Pauses the pipe until the end of this second where the budget is used up.
        """
        pipe = self._pipe
        if pipe is None:
            return
        if now >= self._window_end:
            self._window_end = now + 1
            self._window_bytes = pipe.received_bytes
            self._busy_s = 0.0
        self._busy_s += now - begun
        limits = self._instance.limits
        is_over = (
            self._busy_s > limits.inbound_busy_share
            or pipe.received_bytes - self._window_bytes > limits.inbound_bytes_per_s
        )
        if is_over and not self._is_over_budget and self._instance.nursery is not None:
            self._is_over_budget = True
            self._instance.report(
                Code.INPUT_THROTTLED,
                Severity.WARNING,
                f"it floods: {pipe.received_bytes - self._window_bytes} bytes, {self._busy_s:.2f} s of handling in a second",
            )
            self._update()
            self._instance.nursery.start_soon(self._resume, name=f"throttle of {self._instance.name}")

    @trio.lowlevel.enable_ki_protection
    async def _resume(self) -> None:
        await trio.sleep(max(0, self._window_end - time.perf_counter()))
        self._is_over_budget = False
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
