"""How long one call is waited for: an idle limit that news of it restarts, and a total that nothing does.

While somebody asks a person, both stand still, and so does whatever the call is a part of: a chain's budget, the tool call
of an extension that this one serves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Patience:
    """The deadline of one call, which may move while it is waited for.

    Seconds on trio's clock, from the moment it is made.
    """

    __slots__ = ("_idle_s", "_idle_until", "_paused_at", "_pauses", "_scope", "_total_s", "_until", "within")

    def __init__(self, idle_s: float, total_s: float = math.inf, *, within: Patience | None = None) -> None:
        """Wait `idle_s` seconds without news, `total_s` in all.

        Args:
          idle_s: Restarted by `restart`.
          total_s: Restarted by nothing.
          within: The patience of what this call is a part of: it stands still whenever this one does. It is not looked at
            otherwise: who has less time left than the call may take says so in `total_s`.
        """
        now = trio.current_time()
        self.within: Patience | None = within
        self._idle_s = idle_s
        self._total_s = total_s
        self._idle_until = now + idle_s
        self._until = now + total_s
        self._pauses = 0
        self._paused_at = now
        self._scope: trio.CancelScope | None = None

    @property
    def deadline(self) -> float:
        """When it is over, as things stand; infinite while it stands still."""
        return math.inf if self._pauses else min(self._idle_until, self._until)

    @property
    def limit_s(self) -> float:
        """The limit that the deadline stands for, for messages: the total where that comes first, else the idle limit."""
        return self._total_s if self._until <= self._idle_until else self._idle_s

    @property
    def left_s(self) -> float:
        """Seconds until it is over, were it to go on now; 0 where it is over."""
        now = self._paused_at if self._pauses else trio.current_time()
        return max(min(self._idle_until, self._until) - now, 0.0)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed; never while it stands still."""
        return trio.current_time() >= self.deadline

    @property
    def is_paused(self) -> bool:
        """Whether it stands still."""
        return self._pauses > 0

    def scope(self) -> trio.CancelScope:
        """A cancel scope that ends at the deadline, wherever that moves to."""
        self._scope = trio.CancelScope(deadline=self.deadline)
        return self._scope

    def restart(self) -> None:
        """News came: the idle limit begins again, the total goes on."""
        self._idle_until = (self._paused_at if self._pauses else trio.current_time()) + self._idle_s
        self._move_scope()

    def pause(self) -> None:
        """Stand still, and what this is within with it, until `resume` was called as often as this."""
        if not self._pauses:
            self._paused_at = trio.current_time()
        self._pauses += 1
        self._move_scope()
        if self.within is not None:
            self.within.pause()

    def resume(self) -> None:
        """Undo one `pause`; after the last, both limits go on where they stood."""
        self._pauses -= 1
        if not self._pauses:
            stood_s = trio.current_time() - self._paused_at
            self._idle_until += stood_s
            self._until += stood_s
        self._move_scope()
        if self.within is not None:
            self.within.resume()

    def _move_scope(self) -> None:
        if self._scope is not None:
            self._scope.deadline = self.deadline


@contextmanager
def standing_still(patience: Patience | None) -> Iterator[None]:
    """Nothing of a patience, if there is one, is used up in the block."""
    if patience is not None:
        patience.pause()
    try:
        yield
    finally:
        if patience is not None:
            patience.resume()
