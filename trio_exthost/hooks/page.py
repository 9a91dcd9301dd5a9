"""The table of life-cycle points, as docs/hooks.md has it.

`python -m trio_exthost.hooks.page docs/hooks.md` writes it into the page anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trio_exthost.hooks.contract import Contract, classes_of, contract_of
from trio_exthost.hooks.events import Delivery
from trio_exthost.hooks.life_points import LIFE_POINTS, LifePoint

BEGIN = "<!-- points: written by python -m trio_exthost.hooks.page docs/hooks.md -->"
"""The line before the table."""
END = "<!-- end of points -->"
"""The line after it."""

_HEAD = ("point", "class", "payload", "actions of its own", "deadline", "if it fails", "in zot's words")


def points_table() -> str:
    """The table, in Markdown, a line for each point."""
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(point) for point in LIFE_POINTS.values())]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in rows)


def with_table(page: str) -> str:
    """A page with the table between its two markers as it should be.

    Raises:
      ValueError: It has not each marker once, in their order.
    """
    before, begin, rest = page.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end or END in before + after or BEGIN in after:
        raise ValueError(f"the page must hold {BEGIN!r} and {END!r} once each, in this order, on lines of their own")
    return f"{before}{BEGIN}\n{points_table()}{END}{after}"


def _row(point: LifePoint) -> tuple[str, ...]:
    contract = contract_of(point.event, point.default_class)
    assert contract is not None  # every point has one for its default class
    name = f"`{point.event.value}`" + ("" if point.dispatched else "; never dispatched")
    also = [each.value for each in classes_of(point.event)[1:] if each.value != "observe"]
    return (
        name,
        ", ".join([point.default_class.value, *also]) + (", waited for" if point.awaited else ""),
        _keys(point),
        ", ".join(f"`{kind}`" for kind in contract.primary),
        contract.deadline.value,
        _failure(contract),
        _in_zot(point),
    )


def _keys(point: LifePoint) -> str:
    schema = point.payload_schema
    return ", ".join(f"`{key}`" + ("" if key in schema["required"] else "?") for key in schema["properties"])


def _failure(contract: Contract) -> str:
    coalesced = contract.delivery is Delivery.BOUNDED_COALESCING
    return f"`{contract.failure.value}`" + ("; the newest only" if coalesced else "")


def _in_zot(point: LifePoint) -> str:
    words = [(point.zot_event, "event"), (point.interception, "interception")]
    return ", ".join(f"{what} `{word}`" for word, what in words if word)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_table(target.read_text(encoding="utf-8")), encoding="utf-8")
