"""When changes are acted on: after a moment of quiet, and not too often in a minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import trio


class Changes:
    """Paths that have changed and that nobody has acted on. None is lost, whatever happens meanwhile."""

    def __init__(self, *, quiet_s: float, longest_s: float) -> None:
        """Nothing has changed.

        Args:
          quiet_s: A burst is over once nothing has changed for so long: an editor's save is several changes, and a file
            that is half written must not be loaded.
          longest_s: A burst that does not end is over after so long.
        """
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._paths: set[str] = set()
        self._more = trio.Event()

    def add(self, paths: Iterable[str]) -> None:
        """These have changed. Nothing, if there are none."""
        paths = set(paths)
        if paths:
            self._paths |= paths
            self._more.set()

    def take(self) -> tuple[str, ...]:
        """What has changed since the last time, sorted."""
        paths, self._paths = self._paths, set()
        return tuple(sorted(paths))

    async def wait(self) -> tuple[str, ...]:
        """Wait for a burst of changes and its end; all that has changed since the last time."""
        await trio.lowlevel.checkpoint()
        while not self._paths:
            self._more = trio.Event()
            await self._more.wait()
        with trio.move_on_after(self._longest_s):
            await self.settle()
        return self.take()

    async def settle(self) -> None:
        """Wait until nothing has changed for the quiet period, from now on."""
        is_quiet = False
        while not is_quiet:
            self._more = trio.Event()
            with trio.move_on_after(self._quiet_s) as silence:
                await self._more.wait()
            is_quiet = silence.cancelled_caught


class Rate:
    """At most so many in any window of time. Pure: it is told what time it is."""

    def __init__(self, most: int, window_s: float) -> None:
        """Allow `most` in `window_s` seconds."""
        self.most: int = most
        self.window_s: float = window_s
        self._times: deque[float] = deque(maxlen=most)

    def wait_s(self, now: float) -> float:
        """Seconds until the next is allowed; 0 where it is now."""
        if len(self._times) < self.most:
            return 0.0
        return max(0.0, self._times[0] + self.window_s - now)

    def use(self, now: float) -> None:
        """One has happened."""
        self._times.append(now)
