"""The goals, as data, and what a run says of them.

All but two are ratios between two columns of the same run, so they carry from one machine to the next better than the figures do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import attrs

from comparing.programs import ASYNCIO, FLOOR, HOST, LOOP, MCP, PRACTICAL
from comparing.rounds import Figures

Figure = Literal["p50_us", "cpu_us", "per_s", "bytes"]


@attrs.frozen
class Goal:
    """What the host's figure may be at most, or must be at least: as a multiple of another column's, or by itself."""

    row: str
    n: int
    figure: Figure
    bound: float
    against: str | None
    """The other column; None: the bound is in the figure's unit."""
    pinned: bool | None = None
    """Pinned or free; None: both."""
    is_least: bool = False


GOALS = (
    Goal("event", 100, "p50_us", 1.6, FLOOR, pinned=False),
    Goal("event", 100, "p50_us", 1.8, FLOOR, pinned=True),
    Goal("event", 100, "p50_us", 1.25, PRACTICAL),
    Goal("event", 8, "p50_us", 1.8, FLOOR, pinned=False),
    Goal("event", 8, "p50_us", 1.3, PRACTICAL),
    Goal("interception", 1, "p50_us", 1.6, FLOOR, pinned=False),
    Goal("interception", 1, "cpu_us", 1.6, PRACTICAL),
    Goal("emit", 8, "p50_us", 2, PRACTICAL),
    Goal("emit", 100, "p50_us", 2, PRACTICAL),
    Goal("emit", 0, "p50_us", 1, None),
    Goal("burst", 100, "per_s", 3, FLOOR, is_least=True),
    Goal("start", 100, "p50_us", 1.5, LOOP),
    Goal("memory", 100, "bytes", 48 * 1024, None),
)
PEERS = (ASYNCIO, MCP)
"""What a user might choose instead: the host is to be ahead of them in every row they can do."""


@attrs.frozen
class Result:
    """One goal in one run."""

    goal: Goal
    pinned: bool
    value: float
    """The ratio, or the figure where there is no other column."""

    @property
    def is_met(self) -> bool:
        return self.value >= self.goal.bound if self.goal.is_least else self.value <= self.goal.bound

    def __str__(self) -> str:
        goal = self.goal
        where = f"{goal.row} N={goal.n} {'pinned' if self.pinned else 'free'}, {goal.figure}"
        beside = f" times {goal.against}" if goal.against else ""
        wanted = "at least" if goal.is_least else "at most"
        return f"{'met   ' if self.is_met else 'MISSED'} {where}: {self.value:.4g}{beside} ({wanted} {goal.bound:g})"


class Table:
    """The rows of the JSON file, found by what they are about."""

    def __init__(self, rows: Iterable[Figures]) -> None:
        self._rows = {(row["row"], row["n"], row["pinned"], row["column"]): row for row in rows}

    def figure(self, row: str, n: int, pinned: bool, column: str, figure: str) -> float | None:
        """None where it was not measured."""
        return self._rows.get((row, n, pinned, column), {}).get(figure)

    def ratio(self, row: str, n: int, pinned: bool, other: str, figure: str) -> float | None:
        """The host's figure by the other column's; None where either was not measured."""
        mine, theirs = (self.figure(row, n, pinned, column, figure) for column in (HOST, other))
        return mine / theirs if mine is not None and theirs else None

    def places(self) -> list[tuple[str, int, bool]]:
        """Row, n and pinned of everything measured, in order of measuring."""
        return list(dict.fromkeys((row, n, pinned) for row, n, pinned, _ in self._rows))


def judge(table: Table, goals: Sequence[Goal] = GOALS) -> Iterator[Result]:
    """Each goal for which this run has the figures."""
    for goal in goals:
        for pinned in (False, True) if goal.pinned is None else (goal.pinned,):
            place = (goal.row, goal.n, pinned)
            if goal.against is None:
                value = table.figure(*place, HOST, goal.figure)
            else:
                value = table.ratio(*place, goal.against, goal.figure)
                if value is None and goal.against == LOOP:  # without a compiler the plain loop is the floor
                    value = table.ratio(*place, FLOOR, goal.figure)
            if value is not None:
                yield Result(goal, pinned, value)


@attrs.frozen
class Peer:
    """How the host stands to a peer."""

    column: str
    ahead: int
    """Rows in which the host is at least as good."""
    behind: tuple[str, ...]
    """The others, each with the ratio; above 1 is worse."""

    def __str__(self) -> str:
        count = self.ahead + len(self.behind)
        if not self.behind:
            return f"met    ahead of {self.column} in all {count} rows"
        return f"MISSED ahead of {self.column} in {self.ahead} of {count} rows; behind in: {'; '.join(self.behind)}"


def judge_peers(table: Table) -> Iterator[Peer]:
    """Each peer that was measured."""
    for column in PEERS:
        ahead, behind = 0, []
        for row, n, pinned in table.places():
            figure = {"burst": "per_s", "memory": "bytes"}.get(row, "p50_us")
            ratio = table.ratio(row, n, pinned, column, figure)
            if ratio is None:
                continue
            worse = 1 / ratio if row == "burst" else ratio
            if worse <= 1:
                ahead += 1
            else:
                behind.append(f"{row} N={n} {'pinned' if pinned else 'free'} {worse:.2f}")
        if ahead or behind:
            yield Peer(column, ahead, tuple(behind))
