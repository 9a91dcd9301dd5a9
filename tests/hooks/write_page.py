"""Writes the table of points into docs/hooks.md: `python tests/hooks/write_page.py`."""

from __future__ import annotations

from pathlib import Path

from trio_exthost.hooks.page import with_points

PAGE = Path(__file__).parents[2] / "docs/hooks.md"

if __name__ == "__main__":
    PAGE.write_text(with_points(PAGE.read_text()))
