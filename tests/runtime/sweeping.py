"""The cancellation sweep: one operation is run again and again, cancelled a checkpoint later each time, until it ends by itself.

The operation runs in a task and a cancel scope of its own. A `trio.abc.Instrument` counts the steps of exactly this task
(trio runs a task from one checkpoint to the next without a pause; that is a step) and cancels the scope at the n-th:

- `Moment.WAITS`: right after the step. The task has just begun to wait at its n-th checkpoint, and is woken from there.
- `Moment.WAKES`: right before the next step. What it waited for has come, and it gets that; the cancellation meets it at
  the checkpoint after. This is the answer and the cancellation in the same moment.
- `Moment.EXPIRES`: right before the next step, too, but as a deadline that is over now: it counts from the next tick on, so
  the step may do whatever it does after an answer.
- `Moment.ANY`: right after the n-th step of whichever task runs, from the begin of the operation on. What goes on for it in
  other tasks is cut in its middle, though the operation itself waits at one checkpoint all the time.

An instrument is called inside of trio's scheduler, where nothing can be awaited, and `CancelScope.cancel` is synchronous: so
no checkpoint has to be wrapped, and what runs is the product as it is. The schedule of each run is that of its seed.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Awaitable, Callable

import attrs
import trio
import trio.testing


class Moment(enum.Enum):
    """When in the life of a checkpoint the scope is cancelled."""

    WAITS = "waits"
    WAKES = "wakes"
    EXPIRES = "expires"
    ANY = "any"


class Cutter(trio.abc.Instrument):
    """Cancels a scope at the n-th step of one task (of any, for `Moment.ANY`); counts them."""

    def __init__(self, task: trio.lowlevel.Task, scope: trio.CancelScope, at: int, moment: Moment) -> None:
        self.steps = 0
        self._task = task
        self._scope = scope
        self._at = at
        self._moment = moment

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            if self.steps == self._at and self._moment is Moment.WAKES:
                self._scope.cancel(f"as it wakes for the {self._at}. time")
            elif self.steps == self._at and self._moment is Moment.EXPIRES:
                self._scope.deadline = trio.current_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task or self._moment is Moment.ANY:
            self.steps += 1
            if self.steps == self._at and self._moment in (Moment.WAITS, Moment.ANY):
                self._scope.cancel(f"after the {self._at}. step")


@attrs.frozen
class Cut:
    """How one run of an operation ended."""

    was_reached: bool
    """Whether it came so far: if not, it ended by itself before, and the sweep is over."""
    was_cancelled: bool
    """Whether it was given up."""


NEVER = 10**9
"""A step that no operation comes to."""


async def cut(
    operation: Callable[[], Awaitable[object]],
    at: int = NEVER,
    moment: Moment = Moment.WAITS,
    *,
    after_s: float = float("inf"),
) -> Cut:
    """Run an operation in a task of its own, and cancel it.

    Args:
      operation: What is run. What it raises leaves this, in groups.
      at: At which of its checkpoints; at 0, before its first step.
      moment: When exactly.
      after_s: It has a deadline besides, so long after its begin.
    """
    ended: list[Cut] = []

    async def run() -> None:
        begun = trio.current_time()
        with trio.CancelScope(deadline=begun + after_s) as scope:
            cutter = Cutter(trio.lowlevel.current_task(), scope, at, moment)
            if at == 0:
                scope.cancel("before it begins")
            trio.lowlevel.add_instrument(cutter)
            try:
                await operation()
            finally:
                trio.lowlevel.remove_instrument(cutter)
        ended.append(Cut(cutter.steps >= at or scope.cancel_called, scope.cancelled_caught))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, name="what is swept")
    return ended[0]


def seed(number: int) -> None:
    """Make the order in which trio runs its tasks that of this number, in the next `trio.run`.

    trio draws it from one `random.Random`; its plugin for hypothesis (which pytest has loaded) makes it depend on nothing else.
    """
    trio._core._run._r.seed(number)


def sweep(run: Callable[[int], Cut], *, most: int = 400) -> int:
    """Call `run` with n = 0, 1, 2, ... until the operation ends by itself; how many checkpoints it has.

    `run` runs the operation in a world of its own, and asserts there what has to hold afterwards. In the environment,
    `EXTHOST_SWEEPS` says how often all of it is done, each time with other schedules; once if not given.
    """
    steps = 0
    for place in range(int(os.environ.get("EXTHOST_SWEEPS", "1"))):
        steps = max(steps, _sweep_once(run, most, 1000 * place))
    return steps


def _sweep_once(run: Callable[[int], Cut], most: int, first_seed: int) -> int:
    for number in range(most):
        seed(first_seed + number)
        try:
            done = run(number)
        except BaseException as exc:
            exc.add_note(f"cancelled at checkpoint {number}, with seed {first_seed + number}")
            raise
        if not done.was_reached:
            return number - 1
    raise AssertionError(f"it has more than {most} checkpoints")


def virtual(main: Callable[[], Awaitable[Cut]]) -> Cut:
    """`trio.run` on a clock that jumps over every wait. A hang is seen at once: time then jumps to this limit."""

    async def limited() -> Cut:
        with trio.fail_after(HANG_S):
            return await main()

    return trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))


HANG_S = 100_000.0
"""Virtual seconds; no deadline of a host is as far."""
