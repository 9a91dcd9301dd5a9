"""Latency by N as SVG: free and pinned side by side, both axes logarithmic, readable on light and on dark ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from comparing.programs import ASYNCIO, FLOOR, HOST, MCP, PLUGGY, PRACTICAL
from comparing.rounds import Figures

ROW = "event"
TITLE = "One event to N extensions and an echo from each: median by N"
LINES = (HOST, FLOOR, PRACTICAL, ASYNCIO, MCP, PLUGGY)
WIDTH, HEIGHT = 890, 400
TOP, BOTTOM, PANEL, LABELS, LEFT = 62, 352, 250, 110, 58
LINE_HEIGHT = 14
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 14px; font-weight: 600 }
  .axis { fill: #59636e }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  path { fill: none; stroke-width: 1.6 }
  .host { stroke: #0969da } circle.host, text.host { fill: #0969da; font-weight: 600 } path.host { stroke-width: 3 }
  .floor { stroke: #59636e } circle.floor, text.floor { fill: #59636e }
  .practical { stroke: #1a7f37 } circle.practical, text.practical { fill: #1a7f37 }
  .asyncio { stroke: #9a6700 } circle.asyncio, text.asyncio { fill: #9a6700 }
  .mcp { stroke: #cf222e } circle.mcp, text.mcp { fill: #cf222e }
  .pluggy { stroke: #8250df } circle.pluggy, text.pluggy { fill: #8250df }
  text { stroke: none !important }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .axis { fill: #9198a1 } .grid { stroke: #3d444d }
    .host { stroke: #4493f8 } circle.host, text.host { fill: #4493f8 }
    .floor { stroke: #9198a1 } circle.floor, text.floor { fill: #9198a1 }
    .practical { stroke: #3fb950 } circle.practical, text.practical { fill: #3fb950 }
    .asyncio { stroke: #d29922 } circle.asyncio, text.asyncio { fill: #d29922 }
    .mcp { stroke: #f85149 } circle.mcp, text.mcp { fill: #f85149 }
    .pluggy { stroke: #ab7df8 } circle.pluggy, text.pluggy { fill: #ab7df8 }
  }
"""
CLASSES = dict(zip(LINES, ("host", "floor", "practical", "asyncio", "mcp", "pluggy"), strict=True))

Series = dict[str, list[tuple[int, float]]]
"""By column: N and median in microseconds, by N."""


def draw(rows: Sequence[Figures]) -> str:
    """The picture of the rows of a JSON file.

    Raises:
      ValueError: There is no event row among them.
    """
    shown = [row for row in rows if row["row"] == ROW and row["column"] in LINES]
    if not shown:
        raise ValueError(f"no row {ROW!r} to draw; measure first, or name a file that was written by --json")
    low = 10 ** math.floor(math.log10(min(row["p50_us"] for row in shown)))
    high = 10 ** math.ceil(math.log10(max(row["p50_us"] for row in shown)))
    sizes = sorted({row["n"] for row in shown})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{TITLE}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="20">{TITLE}</text>',
    ]
    for pinned in (False, True):
        series: Series = {}
        for row in sorted(shown, key=lambda row: row["n"]):
            if row["pinned"] is pinned:
                series.setdefault(row["column"], []).append((row["n"], row["p50_us"]))
        left = LEFT + (PANEL + LABELS + 60 if pinned else 0)
        parts += _panel("pinned to one core" if pinned else "free on all cores", left, series, sizes, (low, high))
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, left: int, series: Series, sizes: list[int], ends: tuple[float, float]) -> list[str]:
    span_n = math.log(sizes[-1] / sizes[0]) or 1.0
    span_us = math.log(ends[1] / ends[0]) or 1.0

    def across(n: int) -> float:
        return left + PANEL * math.log(n / sizes[0]) / span_n

    def up(us: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * math.log(us / ends[0]) / span_us

    parts = [f'<text class="axis" x="{left}" y="{TOP - 16}">{escape(title)}</text>']
    decades = round(math.log10(ends[1] / ends[0]))
    for us in (ends[0] * 10**power for power in range(decades + 1)):
        y = up(us)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{left + PANEL}"/>')
        parts.append(f'<text class="axis" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_time(us)}</text>')
    parts += [
        f'<text class="axis" x="{across(n):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{n}</text>' for n in sizes
    ]
    parts.append(
        f'<text class="axis" x="{left + PANEL / 2:.1f}" y="{BOTTOM + 36}" text-anchor="middle">extensions</text>'
    )
    labels = []
    for column, points in series.items():
        name = CLASSES[column]
        places = [(across(n), up(us)) for n, us in points]
        parts.append(f'<path class="{name}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in places)}"/>')
        parts += [f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
        labels.append((places[-1][1], places[-1][0], column))
    return parts + _labels(labels)


def _labels(ends: list[tuple[float, float, str]]) -> list[str]:
    """The names at the ends of the lines, from the top down, none over another."""
    parts, lowest = [], -math.inf
    for y, x, column in sorted(ends):
        lowest = max(y, lowest + LINE_HEIGHT)
        parts.append(f'<text class="{CLASSES[column]}" x="{x + 8:.1f}" y="{lowest + 4:.1f}">{escape(column)}</text>')
    return parts


def _time(us: float) -> str:
    return f"{us:g} µs" if us < 1000 else f"{us / 1000:g} ms" if us < 1_000_000 else f"{us / 1_000_000:g} s"
