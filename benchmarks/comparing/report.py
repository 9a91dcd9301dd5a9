"""The table: the columns side by side, the host's ratios to both floors, and the goals."""

from __future__ import annotations

from collections.abc import Sequence

from comparing.goals import Table, judge, judge_peers
from comparing.programs import ASYNCIO, FLOOR, HOST, LOOP, MCP, PLUGGY, PRACTICAL
from comparing.rounds import Figures

COLUMNS = (HOST, FLOOR, LOOP, PRACTICAL, ASYNCIO, MCP, PLUGGY)
KINDS = (
    ("p50_us", "median, us (the host's 99th percentile beside it)", None),
    ("cpu_us", "processor time of the host's process, us for one operation; in a burst, for one delivery", None),
    ("per_s", "deliveries per second", ("burst",)),
    ("bytes", "memory of the host's process for one more idle extension, bytes", ("memory",)),
)
"""A figure, what it is, and the rows it is shown for if not all."""


def report(rows: Sequence[Figures], notes: Sequence[str] = ()) -> str:
    """All there is to say of a run, as text of some 140 characters a line."""
    table = Table(rows)
    lines = list(notes)
    for figure, title, only in KINDS:
        shown = [place for place in table.places() if only is None or place[0] in only]
        body = [line for place in shown if (line := _line(table, *place, figure))]
        if body:
            lines += ["", title, _heading(), *body]
    lines += ["", "goals (ratios of this run)", *map(str, judge(table)), *map(str, judge_peers(table))]
    return "\n".join(lines)


def _heading() -> str:
    heads = "".join(f"{column:>16}" for column in COLUMNS[1:])
    return f"{'row':18} {'N':>3} {'':6}{COLUMNS[0]:>14}{'p99':>10}{'/floor':>8}{'/pract.':>8}{heads}"


def _line(table: Table, row: str, n: int, pinned: bool, figure: str) -> str:
    """Empty where the host has no such figure."""
    place = (row, n, pinned)
    mine = table.figure(*place, HOST, figure)
    if mine is None:
        return ""
    p99 = table.figure(*place, HOST, "p99_us") if figure == "p50_us" else None
    beside = "".join(f"{_number(table.figure(*place, column, figure)):>16}" for column in COLUMNS[1:])
    ratios = "".join(f"{_number(table.ratio(*place, other, figure)):>8}" for other in (FLOOR, PRACTICAL))
    return f"{row:18} {n:>3} {'pinned' if pinned else 'free':6}{_number(mine):>14}{_number(p99):>10}{ratios}{beside}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
