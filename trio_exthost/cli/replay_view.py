"""What `exthost replay` found, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trio_exthost.cli.replay_report import COUNTED, Deed
from trio_exthost.cli.text import Output
from trio_exthost.runtime.stats_table import seconds_text

_WORDS: Mapping[str, str] = {"system_prompts": "system prompt", "calls": "tool call"}
_COLOURS: Mapping[str, str] = {
    Deed.REFUSED: "red",
    Deed.HIDDEN: "red",
    Deed.REWRITTEN: "yellow",
    Deed.ASKED: "magenta",
    Deed.NO_ANSWER: "yellow",
}
_SAID: Mapping[str, str] = {
    Deed.REFUSED: "refuses",
    Deed.HIDDEN: "hides",
    Deed.REWRITTEN: "rewrites",
    Deed.ASKED: "wants a person asked",
    Deed.NO_ANSWER: "gives no answer",
}
_PROBLEMS = 5
_KINDS = 8


def show(found: Mapping[str, Any]) -> None:
    """Print what `replay` gave: on stderr what failed, on stdout all else."""
    if found["error"] is not None:
        _show_error(Output(stderr=True), found["error"])
        return
    out = Output()
    _show_recording(out, found)
    findings: Sequence[Mapping[str, Any]] = found["findings"]
    for row in found["extensions"]:
        _show_extension(out, row)
        _show_findings(out, [each for each in findings if each["extension"] == row["name"]])
    if own := [each for each in findings if each["extension"] is None]:
        out.line("the host itself")
        _show_findings(out, own)
    if found["diagnostics"]:
        counts = ", ".join(f"{code} {count}" for code, count in found["diagnostics"].items())
        out.line(counts, first="the host noticed: ", style="yellow")
    if found["unaware"]:
        names = ", ".join(found["unaware"])
        out.line(f"asked as if it were real, and may have acted on it: {names}", style="dim")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _show_recording(out: Output, found: Mapping[str, Any]) -> None:
    counted = [
        _counted(found[word], _WORDS.get(word, word[:-1]))
        for word in COUNTED
        if found[word] and (word != "conversations" or found[word] > 1)
    ]
    out.line(f"{found['transcript']} ({found['format']}): {', '.join(counted)}; {found['seconds']:.1f} s", style="bold")
    if found["skipped"]:
        kinds = [f"{what} {count}" for what, count in found["skipped"].items()]
        more = [f"{len(kinds) - _KINDS} more kinds"] if len(kinds) > _KINDS else []
        out.line(", ".join(kinds[:_KINDS] + more), first="  skipped: ")
    if found["unpaired_results"]:
        out.line(f"{_counted(found['unpaired_results'], 'result')} of calls that nobody made", first="  left out: ")
    if found["unreadable"]:
        for problem in found["problems"][:_PROBLEMS]:
            out.line(f"{problem['at']} {problem['why']}", first="  unreadable: ", style="yellow")
        if found["unreadable"] > _PROBLEMS:
            out.line(f"{found['unreadable']} in all", first="  unreadable: ", style="yellow")


def _show_extension(out: Output, row: Mapping[str, Any]) -> None:
    title = f"{row['name']} {row['version']}".rstrip()
    times = ""
    if row["asked"]:
        p50, p99, most = (seconds_text(row[key]) for key in ("p50_s", "p99_s", "max_s"))
        times = f", p50 {p50}, p99 {p99}, longest {most}"
    out.line(f"{title}: asked {_counted(row['asked'], 'time')}{times}", style="bold")
    if row["state"] != "ready":
        out.line(f"{row['state']} in the end: {row['reason']}".rstrip(": "), first="  ", style="red")
    if row["missed"]:
        words = f"{_counted(row['missed'], 'event')} it did not get, as it reads too slowly"
        out.line(words, first="  missed: ", style="yellow")


def _show_findings(out: Output, findings: Sequence[Mapping[str, Any]]) -> None:
    for each in findings:
        what = " ".join(filter(None, [each["point"], each["tool"]]))
        head = f"{_SAID[each['deed']]} {each['count']}x {what}"
        out.line(f"{head}: {each['reason']}" if each["reason"] else head, first="  ", style=_COLOURS[each["deed"]])
        where = f"{each['at']}, {each['tool_id']}" if each["tool_id"] else each["at"]
        out.line(f"{where}: {each['example']}" if each["example"] else where, first="    first: ", style="dim")
    if not findings:
        out.line("nothing refused, hidden, rewritten or asked", first="  ")


def _show_error(out: Output, error: Mapping[str, str]) -> None:
    out.line(f"{error['extension']}: {error['message']}", style="red")
    for key, label in (("stage", "stage"), ("exit_status", "exit"), ("hint", "way out"), ("log_path", "log")):
        if error[key]:
            out.line(error[key], first=f"  {label}: ")
    if tail := error["stderr_tail"].rstrip("\r\n"):
        out.line("  the end of its stderr:")
        out.lines(tail, first="    ")
