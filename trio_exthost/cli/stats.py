"""`exthost stats`: how often each extension was asked, and how long it took, from a log of decisions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import Output, write_json
from trio_exthost.cli.why import counted, problems_json, tell_problems, time_text
from trio_exthost.policy import Outcome
from trio_exthost.runtime.decisions import read_decisions
from trio_exthost.runtime.stats import Stats

EPILOG = """
Example:
  exthost stats decisions.jsonl

The files it was rotated to (decisions.jsonl.1, ...) are read, too.

--json prints one object:
  decisions    how many there are; first and last: when, in seconds since 1970
  outcomes     {allow, ask, block}: how many of each
  points       [{extension, kind, name, count, p50_s, p95_s, max_s, timeouts,
               failures}]; p50_s and p95_s are off by at most 2 %
  unreadable   how many lines of the log cannot be read
  problems     the first 100 of them, each with its place

Exit status: 0 read, 1 it cannot be read, 2 wrong call.
"""


@click.command(
    "stats", cls=Command, short_help=COMMANDS["stats"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def stats_command(log: Path, as_json: bool) -> int:
    """Count what extensions were asked for, in a LOG of decisions: how often, how long, how often in vain.

    A running host says the same of commands and tools, too, and of dropped events: `host.stats()`.
    """
    reading = read_decisions(log)
    stats = Stats()
    for each in reading.decisions:
        stats.add_decision(each)
    outcomes = Counter(each.outcome for each in reading.decisions)
    times = [each.time for each in reading.decisions]
    if as_json:
        write_json(
            {
                "decisions": len(times),
                "first": min(times, default=None),
                "last": max(times, default=None),
                "outcomes": {each.value: outcomes[each] for each in Outcome},
                "points": stats.snapshot().to_json()["points"],
                **problems_json(reading),
            }
        )
        return 0
    tell_problems(reading)
    out = Output()
    words = ", ".join(f"{each.value} {outcomes[each]}" for each in Outcome if outcomes[each])
    out.line(f"{counted(len(times))}{': ' if words else ''}{words}")
    if times:
        out.line(f"{time_text(min(times))} to {time_text(max(times))}")
        out.lines(stats.snapshot().explain())
    return 0
