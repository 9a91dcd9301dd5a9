"""How long one call is waited for: an idle limit that news of it restarts, and a total that nothing does."""

from __future__ import annotations

import math

import trio


class Patience:
    """The deadline of one call, which may move while it is waited for.

    Seconds on trio's clock, from the moment it is made.
    """

    __slots__ = ("_idle_s", "_scope", "_total_s", "_until", "deadline")

    def __init__(self, idle_s: float, total_s: float = math.inf) -> None:
        """Wait `idle_s` seconds without news, `total_s` in all."""
        now = trio.current_time()
        self._idle_s = idle_s
        self._total_s = total_s
        self._until = now + total_s
        self._scope: trio.CancelScope | None = None
        self.deadline: float = min(now + idle_s, self._until)
        """When it is over, as things stand."""

    @property
    def limit_s(self) -> float:
        """The limit that the deadline stands for, for messages: the total where that comes first, else the idle limit."""
        return self._total_s if self.deadline == self._until else self._idle_s

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return trio.current_time() >= self.deadline

    def scope(self) -> trio.CancelScope:
        """A cancel scope that ends at the deadline, wherever that moves to."""
        self._scope = trio.CancelScope(deadline=self.deadline)
        return self._scope

    def restart(self) -> None:
        """News came: the idle limit begins again, the total goes on."""
        self.deadline = min(trio.current_time() + self._idle_s, self._until)
        if self._scope is not None:
            self._scope.deadline = self.deadline
