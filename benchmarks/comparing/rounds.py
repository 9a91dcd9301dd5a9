"""Measures the columns in turn.

Each column is a process of its own, with its own extensions, and only one of them works at a time. A round gives each column one
block of operations, row by row; the next round begins with the next column. The first round does not count. So what the
machine does to one column at some moment, it does to its neighbours as well.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import attrs

from comparing.programs import Program
from comparing.worker import Worker, affinity

CHAIN_N = 8
P99_SAMPLES = 100
"""With fewer there is no 99th percentile to speak of."""

Figures = dict[str, Any]
"""A row of the JSON file: `row`, `n`, `pinned`, `column`, and the figures that apply."""


@attrs.frozen
class Plan:
    """How much is measured."""

    sizes: tuple[int, ...] = (1, 8, 32, 100)
    """Extensions."""
    rounds: int = 15
    """Rounds that count; one more goes before."""
    starts: int = 7
    """Starts and stops of all N; one of a single extension goes before."""
    scale: int = 2
    """Operations in a block, as a multiple of those of a quick run."""

    def operations(self, row: str, n: int) -> int:
        """In one block of one column."""
        if row == "burst":
            return self.scale * (1000 if n == 1 else 400 if n <= 8 else 200)
        return self.scale * (50 if n == 1 else 25 if n <= 8 else 10)


QUICK = Plan(rounds=5, starts=3, scale=1)


@attrs.define
class Samples:
    """What was measured of one row and column."""

    rounds: list[list[int]] = attrs.Factory(list)
    """Nanoseconds, round by round."""
    cpu_ns: list[float] = attrs.Factory(list)
    """Processor time of one operation, or of one delivery of a burst; round by round."""
    per_s: list[float] = attrs.Factory(list)
    """Deliveries per second, round by round."""
    bytes: int | None = None

    def figures(self) -> dict[str, float]:
        """`p50_us` is the median of the rounds' medians, `cpu_us` and `per_s` are medians of the rounds, the rest is over all."""
        found: dict[str, float] = {}
        if self.rounds:
            every = sorted(ns for each in self.rounds for ns in each)
            found["p50_us"] = round(statistics.median(map(statistics.median, self.rounds)) / 1e3, 2)
            if len(every) >= P99_SAMPLES:
                found["p99_us"] = round(every[int(len(every) * 0.99)] / 1e3, 2)
            found["mean_us"] = round(statistics.fmean(every) / 1e3, 2)
        if self.per_s:
            found["per_s"] = round(statistics.median(self.per_s))
        if self.cpu_ns:
            found["cpu_us"] = round(statistics.median(self.cpu_ns) / 1e3, 3)
        if self.bytes is not None:
            found["bytes"] = self.bytes
        return found


@attrs.frozen
class Block:
    """A row of some N and the order that measures it."""

    row: str
    order: str
    n: int
    """As it is told: 0 for an event to which nobody subscribes."""

    def suits(self, program: Program) -> bool:
        """Whether the column has it."""
        return self.row in program.rows and not (program.is_in_process and self.order == "emit")


def blocks(n: int) -> Iterator[Block]:
    """What a round consists of."""
    yield Block("event", "event", n)
    yield Block("emit", "emit", n)
    if n == 1:
        yield Block("emit", "emit_none", 0)
        yield Block("interception", "intercept", n)
        yield Block("command", "command", n)
        yield Block("tool", "tool", n)
    if n == CHAIN_N:
        yield Block("interception chain", "intercept", n)
    yield Block("burst", "burst", n)


Book = dict[tuple[str, int, str], Samples]
"""By row, n and column."""


def measure(every: Sequence[Program], plan: Plan, n: int, *, pinned: bool) -> list[Figures]:
    """All rows of one N, of every column that goes so far.

    Raises:
      RuntimeError: A column failed.
    """
    book: Book = defaultdict(Samples)
    with affinity(pinned=pinned), ExitStack() as stack:
        workers = [stack.enter_context(Worker.start(each)) for each in every if n <= each.n_max]
        _measure_starts(workers, plan, n, book)
        for index in range(plan.rounds + 1):
            for block in blocks(n):
                for worker in _from(workers, index):
                    if block.suits(worker.program):
                        count = max(1, int(plan.operations(block.row, n) * worker.program.share))
                        answer = worker.ask(block.order, count)
                        if index > 0:
                            _note(book[block.row, block.n, worker.program.column], block, count, answer)
        for worker in workers:
            book["stop", n, worker.program.column].rounds.append(worker.ask("stop", n)["ns"])
    return [
        {"row": row, "n": number, "pinned": pinned, "column": column, **samples.figures()}
        for (row, number, column), samples in book.items()
    ]


def _from(workers: Sequence[Worker], index: int) -> list[Worker]:
    """All of them, each round beginning with the next."""
    turn = index % len(workers)
    return [*workers[turn:], *workers[:turn]]


def _note(samples: Samples, block: Block, count: int, answer: dict[str, Any]) -> None:
    if block.row == "burst":
        deliveries = count * block.n
        samples.per_s.append(deliveries / answer["ns"][0] * 1e9)
        samples.cpu_ns.append(answer["cpu_ns"] / deliveries)
        return
    samples.rounds.append(answer["ns"])
    if block.row != "emit":  # the processor time of that is an event's
        samples.cpu_ns.append(answer["cpu_ns"] / count)


def _measure_starts(workers: Sequence[Worker], plan: Plan, n: int, book: Book) -> None:
    """Start and stop all N, several times in turn; in the end all are left started."""
    for worker in workers:
        if worker.program.starts_max > 1:
            worker.ask("start", 1)
            worker.ask("stop", 1)
    for index in range(plan.starts):
        for worker in _from(workers, index):
            column, starts = worker.program.column, min(plan.starts, worker.program.starts_max)
            if index >= starts:
                continue
            answer = worker.ask("start", n)
            book["start", n, column].rounds.append(answer["ns"])
            if index == 0 and "memory" in worker.program.rows:
                book["memory", n, column].bytes = answer["bytes"]
            if index + 1 < starts:
                book["stop", n, column].rounds.append(worker.ask("stop", n)["ns"])
