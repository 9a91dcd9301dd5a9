"""`exthost why`: what was decided about a tool call, by whom and why, from a log of decisions."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import Output, cells, columns, printable, write_json
from trio_exthost.policy.decision import Decision, kept_id
from trio_exthost.runtime.decisions import DecisionReading, read_decisions

_PROBLEMS = 5

EPILOG = """
Example:
  exthost why decisions.jsonl call-1

The files it was rotated to (decisions.jsonl.1, ...) are read, too.

--json prints one object:
  tool_id      the id that was asked for
  decisions    [{time, session_id, run_id, event, tool_id, tool_name, outcome,
               code, reason, hint, by, steps, seconds}], oldest first; what is
               at its default is left out; time is in seconds since 1970
  unreadable   how many lines of the log cannot be read
  problems     the first 100 of them, each with its place

Exit status: 0 found, 1 nothing was decided about it, 2 wrong call.
"""


@click.command(
    "why", cls=Command, short_help=COMMANDS["why"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("tool_id")
@click.option("--session", "session_id", help="Only in this session: ids may repeat in others.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def why_command(log: Path, tool_id: str, session_id: str | None, as_json: bool) -> int:
    """Explain each decision in LOG about the tool call TOOL_ID, oldest first.

    Secrets were masked when the log was written.
    """
    reading = read_decisions(log)
    found = [
        each
        for each in reading.decisions
        if each.tool_id == kept_id(tool_id) and (session_id is None or each.session_id == kept_id(session_id))
    ]
    if as_json:
        write_json({"tool_id": tool_id, "decisions": [each.to_json() for each in found], **problems_json(reading)})
        return 0 if found else 1
    tell_problems(reading)
    if not found:
        where = f" of session {session_id!r}" if session_id is not None else ""
        raise click.ClickException(
            f"nothing was decided about a tool call {tool_id!r}{where}; {log} has {counted(len(reading.decisions))}"
        )
    for each in found:
        _show(each)
    return 0


def problems_json(reading: DecisionReading) -> dict[str, object]:
    """What could not be read, for JSON."""
    return {"unreadable": reading.unreadable, "problems": [str(each) for each in reading.problems]}


def tell_problems(reading: DecisionReading) -> None:
    """Warn on stderr of lines that cannot be read; of many only the first."""
    out = Output(stderr=True)
    for each in reading.problems[:_PROBLEMS]:
        out.line(each, first="warning: ", style="yellow")
    if reading.unreadable > _PROBLEMS:
        out.line(f"{reading.unreadable - _PROBLEMS} more lines cannot be read", first="warning: ", style="yellow")


def counted(decisions: int) -> str:
    """So many decisions, in words."""
    return f"{decisions} decision{'' if decisions == 1 else 's'}"


def time_text(seconds: float) -> str:
    """A time in seconds since the epoch, as a date in UTC."""
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s since 1970"


def _show(decision: Decision) -> None:
    words = [time_text(decision.time), f"session {decision.session_id}"]
    words += [f"run {decision.run_id}"] if decision.run_id else []
    words += [f"tool {decision.tool_name}"] if decision.tool_name else []
    out = Output()
    _line(out, "", ", ".join(words))
    for line in decision.explain().split("\n"):
        text = line.lstrip()
        _line(out, "  " + " " * (len(line) - len(text)), text)


def _line(out: Output, first: str, text: str) -> None:
    """A line in which no word is too long: values that were rewritten need not have spaces."""
    room = columns(sys.stdout.isatty()) - len(first)
    out.line(" ".join(piece for word in printable(text).split(" ") for piece in _pieces(word, room)), first=first)


def _pieces(word: str, room: int) -> Iterator[str]:
    while cells(word) > room:
        end = room
        while cells(word[:end]) > room:
            end -= 1
        yield word[:end]
        word = word[end:]
    yield word
