"""Fan-out and interception: this host beside its floors and beside what one might use instead, all measured in the same run.

    python benchmarks/fanout.py [--quick] [--json FILE] [--svg FILE] [--from FILE]

`benchmarks/README.md` says what the rows and columns are, and why each is measured free and pinned to one core.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
from comparing.picture import draw
from comparing.programs import Program, programs
from comparing.report import report
from comparing.rounds import QUICK, Figures, Plan, measure

LOAD_QUIET = 0.5


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(part) for part in text.split(","))
    if min(sizes) < 1:
        raise ValueError(text)
    return sizes


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds of fewer operations: less than a minute")
    parser.add_argument("--sizes", type=_sizes, metavar="N,N", help="how many extensions (1,8,32,100)")
    parser.add_argument("--columns", metavar="NAME,NAME", help="only these columns")
    parser.add_argument(
        "--no-compiler", action="store_true", help="as if there were none: extensions and floor in Python"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows to this file")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw latency by N into this file")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="measure nothing, take the rows of --json"
    )
    return parser.parse_args()


def _busy() -> list[str]:
    """A warning, if others were at work just before."""
    load = os.getloadavg()[0]
    if load <= LOAD_QUIET:
        return []
    return [
        f"The machine is busy (load average {load:.1f} before the run): what is free suffers more than what is pinned."
    ]


def _chosen(found: Sequence[Program], names: str | None) -> list[Program]:
    if names is None:
        return list(found)
    by_name = {each.column: each for each in found}
    try:
        return [by_name[name] for name in names.split(",")]
    except KeyError as error:
        sys.exit(f"fanout.py: no column {error}; there are: {', '.join(by_name)}")


def main() -> None:
    options = _options()
    rows: list[Figures] = []
    notes: tuple[str, ...] = ()
    if options.source:
        rows = json.loads(options.source.read_text())
    else:
        plan = QUICK if options.quick else Plan()
        if options.sizes:
            plan = attrs.evolve(plan, sizes=options.sizes)
        with tempfile.TemporaryDirectory() as folder:
            found = programs(Path(folder), compiler="none" if options.no_compiler else None)
            notes = (*found.notes, *_busy())
            chosen = _chosen(found.programs, options.columns)
            for n in plan.sizes:
                for pinned in (False, True):
                    rows += measure(chosen, plan, n, pinned=pinned)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(report(rows, notes))
    if options.svg:
        options.svg.write_text(draw(rows))


if __name__ == "__main__":
    main()
