"""Every call of a chaos run's agent: how it ended, and whether in time."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from chaos.plan import STEP_S
from chaos.watch import Watch

from trio_exthost import HostError


class Tally:
    """Every call of the agent's, and how it ended."""

    def __init__(self, watch: Watch) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.open: dict[int, str] = {}
        self.journal: deque[str] = deque(maxlen=40)
        """The newest, for whoever has to find out."""
        self.lag_s = 0.0
        """How long the agent was held up so far, the machine's other work included."""
        self._watch = watch
        self._number = 0

    async def use(
        self, kind: str, limit_s: float, operation: Callable[[], Awaitable[Any]], give_up_after: float = float("inf")
    ) -> Any:
        """Make a call, and give it up after a while; what it gave, or None. It ends within its limit and a step."""
        self._number += 1
        number, begun, lag = self._number, trio.current_time(), self.lag_s
        self.begun[kind] += 1
        self.open[number] = kind
        how = "bug"
        try:
            with trio.move_on_after(give_up_after) as scope:
                value = await operation()
                how = "answer"
                return value
            assert scope.cancelled_caught
            how = "given up"
        except HostError as exc:
            how = exc.code
        except trio.Cancelled:
            how = "cancelled"
            raise
        finally:
            del self.open[number]
            self.ended[kind, how] += 1
            took = trio.current_time() - begun
            self.journal.append(f"{kind}: {how} after {took:.2f} s")
            if took > min(limit_s, give_up_after) + STEP_S + self.lag_s - lag:
                self._watch.fault(
                    f"{kind} took {took:.2f} s, its limit is {limit_s:g} s, given up at {give_up_after:g} s"
                )
        return None

    async def beat(self) -> None:
        """How long the agent is held up. By other processes is no fault of the host's; by its own work is."""
        while True:
            begun, worked = time.monotonic(), time.thread_time()
            await trio.sleep(0.02)
            late, busy = time.monotonic() - begun - 0.02, time.thread_time() - worked
            if late > 0.1:
                self.lag_s += late
            if busy > 1.5:
                self._watch.fault(f"the agent had no turn for {late:.2f} s, {busy:.2f} s of them the host's own work")

    def check(self) -> None:
        """Each has ended, in exactly one way, and none by a bug."""
        ways: Counter[str] = Counter()
        for (kind, how), count in self.ended.items():
            ways[kind] += count
            if how == "bug":
                self._watch.fault(f"{kind} raised what is no error of the host's")
        if self.open or ways != self.begun:
            self._watch.fault(f"begun {dict(self.begun)}, ended {dict(ways)}, open {list(self.open.values())}")
