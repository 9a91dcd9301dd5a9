"""The circuit of an instance: three failures in a row take it out of service, a probe may put it back.

A value and a function of time, without a clock: the caller says what the time is.

    CLOSED --threshold failures in a row--> OPEN --its delay is over, a probe begins--> HALF_OPEN
       ^                                     ^                                              |
       +------------- the probe succeeded ---|--------------- the probe failed -------------+

The delay doubles with each failed probe, up to a maximum, and is the first one again once a probe has succeeded.
"""

from __future__ import annotations

import enum

import attrs


class CircuitState(enum.StrEnum):
    """Whether an instance may be asked."""

    CLOSED = "closed"
    """It may."""
    OPEN = "open"
    """It may not: it has failed too often in a row."""
    HALF_OPEN = "half_open"
    """It may be asked one question at a time; the first that ends in a success or a failure is the probe."""


@attrs.define(eq=False)
class Circuit:
    """Counts one instance's failures. Mutable, for one thread.

    Each question carries the `epoch` in which it was asked; what comes back of an earlier epoch changes nothing, so that
    questions which were asked before it opened, however many at once, neither open it twice nor close it.
    """

    threshold: int = 3
    """Failures in a row that open it."""
    delay_s: float = 5.0
    """From opening to the first probe."""
    delay_max_s: float = 300.0
    """What the doubling ends at."""
    state: CircuitState = CircuitState.CLOSED
    """Whether the instance may be asked."""
    failures: int = 0
    """Failures since the last success."""
    epoch: int = 0
    """Grows whenever the state changes."""
    trips: int = 0
    """How often it has opened since a probe last succeeded."""

    def succeeded(self, epoch: int) -> bool:
        """A question of this epoch was answered well; whether that closed the circuit."""
        if epoch != self.epoch:
            return False
        self.failures = 0
        if self.state is CircuitState.CLOSED:
            return False
        self._go(CircuitState.CLOSED)
        self.trips = 0
        return True

    def failed(self, epoch: int) -> bool:
        """A question of this epoch got no usable answer; whether that opened the circuit."""
        if epoch != self.epoch or self.state is CircuitState.OPEN:
            return False
        self.failures += 1
        if self.state is CircuitState.CLOSED and self.failures < self.threshold:
            return False
        self._go(CircuitState.OPEN)
        self.trips += 1
        return True

    def probe(self) -> int:
        """Begin a probe; its epoch. The caller has waited for `wait_s` since it opened.

        Raises:
          RuntimeError: It is not open.
        """
        if self.state is not CircuitState.OPEN:
            raise RuntimeError(f"a probe of a circuit that is {self.state.value}")
        self._go(CircuitState.HALF_OPEN)
        return self.epoch

    @property
    def wait_s(self) -> float:
        """Seconds from the last opening to the next probe."""
        return min(self.delay_s * 2.0 ** min(self.trips - 1, 64), self.delay_max_s) if self.trips else 0.0

    def _go(self, state: CircuitState) -> None:
        self.state = state
        self.epoch += 1
