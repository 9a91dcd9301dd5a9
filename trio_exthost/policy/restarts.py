"""When an extension that crashed is started again: an exponential delay with jitter, within a budget of a sliding window.

A value and a function of time, without a clock and without chance: the caller says what the time is and what the dice
showed. (Erlang's supervisors restart within an intensity, so many in so many seconds, and then give up loudly.)
"""

from __future__ import annotations

from collections import deque

import attrs

JITTER = 0.25
"""A delay is lengthened by up to this share of itself, so that those which crashed together do not come back together."""


@attrs.define(eq=False)
class RestartWindow:
    """The restarts of one extension in one session. Mutable, for one thread."""

    budget: int
    """Restarts within the window; then it gives up."""
    window_s: float
    """Seconds that the window looks back."""
    delay_s: float
    """Before the first restart."""
    delay_max_s: float
    """What the doubling ends at."""
    _restarts: deque[float] = attrs.field(factory=deque, init=False)

    def next_delay(self, now: float, chance: float) -> float | None:
        """It has crashed: seconds until it is started again, or None where the budget is used up.

        Args:
          now: The time in seconds, never less than before.
          chance: From 0 to 1; the share of `JITTER` that is added.
        """
        while self._restarts and self._restarts[0] <= now - self.window_s:
            self._restarts.popleft()
        if len(self._restarts) >= self.budget:
            return None
        delay = min(self.delay_s * 2.0 ** min(len(self._restarts), 64), self.delay_max_s)
        self._restarts.append(now)
        return delay * (1 + JITTER * chance)

    @property
    def used(self) -> int:
        """Restarts in the window, as of the last crash."""
        return len(self._restarts)
