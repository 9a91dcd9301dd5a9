"""In which order the extensions of a load are let in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


class Admission:
    """Lets instances in at `ready`, in catalogue order, whatever order they started in.

    An earlier candidate of the same load that is late is waited for until `stop_waiting`; it joins when it is ready.
    """

    def __init__(self) -> None:
        self._queue: list[Instance] = []
        self._awaited: set[int] = set()  # numbers of the instances that hold up those behind them

    def expect(self, instances: Iterable[Instance], *, in_order: bool) -> None:
        """These are being loaded; `in_order`: each holds up those behind it."""
        for instance in instances:
            self._queue.append(instance)
            if in_order:
                self._awaited.add(instance.number)
        self._queue.sort(key=lambda instance: instance.rank)

    def advance(self) -> None:
        """Admit whoever is ready and has nobody before it that is still waited for."""
        for instance in list(self._queue):
            if instance.registering.is_complete or instance.is_ending:
                self._queue.remove(instance)
                self._awaited.discard(instance.number)
                if not instance.is_ending:
                    instance.admit()
            elif instance.number in self._awaited:
                return

    def stop_waiting(self) -> None:
        """The cap has passed: nobody waits for the late ones any longer."""
        self._awaited.clear()
        self.advance()
