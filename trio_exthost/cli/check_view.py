"""What `exthost check` found, as text: on stdout where all is well, on stderr where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from trio_exthost.cli.check_policy import show_policy
from trio_exthost.cli.text import Output

_SHOWN = 3
"""Messages of one code; the rest is a number."""
_PARTS = {
    "stage": "stage", "exit_status": "exit", "uptime": "uptime", "in_flight": "in flight", "hint": "way out", "log_path": "log",
}  # fmt: skip
_COLOURS = {"error": "red", "warning": "yellow", "info": "dim"}


def show(found: Mapping[str, Any]) -> None:
    """Print what `examine` gave."""
    out = Output(stderr=not found["ok"])
    if found["error"] is not None and found["ready_s"] is None:
        _show_error(out, f"{found['name']}: {found['error']['message']}", found["error"])
    elif found["state"] == "static":
        title = f"{found['name']} {found['version']}".rstrip()
        out.line(f"{title}: in order; {found['reason']}, so there is nothing to run", style="green")
    else:
        _show_state(out, found)
        if found["error"] is not None:
            _show_error(out, f"  {found['error']['message']}", found["error"])
        _show_registrations(out, found)
    _show_diagnostics(out, found["diagnostics"], found["counts"])
    if found["policy"] is not None:
        show_policy(out, found["policy"])


def _show_state(out: Output, found: Mapping[str, Any]) -> None:
    title = f"{found['name']} {found['version']}".rstrip()
    how = ", taken as ready without a ready frame" if found["auto_ready"] else ""
    if found["ok"]:
        out.line(f"{title}: ready after {found['ready_s']} s{how}", style="green")
    elif found["state"] == "ready":
        out.line(f"{title}: ready again, after it had ended", style="red")
    else:
        out.line(f"{title}: {found['state']}, though it was ready after {found['ready_s']} s{how}", style="red")
    if found["reason"] and found["error"] is None:
        out.line(found["reason"], first="  reason: ")


def _show_registrations(out: Output, found: Mapping[str, Any]) -> None:
    for command in found["commands"]:
        out.line(_described(f"/{command['name']}", command["description"]), first="  command ")
    for tool in found["tools"]:
        out.line(_described(tool["name"], tool["description"]), first="  tool ")
    for word in ("events", "intercepts", "panels"):
        if found[word]:
            out.line(", ".join(found[word]), first=f"  {word}: ")
    for note in found["notes"]:
        out.line(note, first="  note ")
    if not any(found[word] for word in ("commands", "tools", "events", "intercepts")):
        out.line("  it registers nothing")


def _described(name: str, description: str) -> str:
    return f"{name}  {description}".rstrip()


def _show_error(out: Output, title: str, error: Mapping[str, Any]) -> None:
    out.line(title, style="red")
    uptime = "" if error["uptime_s"] is None else f"{error['uptime_s']:.2f} s"
    shown = {**error, "uptime": uptime, "in_flight": ", ".join(error["in_flight"])}
    for key, label in _PARTS.items():
        if shown[key]:
            out.line(shown[key], first=f"  {label}: ")
    if tail := error["stderr_tail"].rstrip("\r\n"):
        out.line("  the end of its stderr:")
        out.lines(tail, first="    ")


def _show_diagnostics(out: Output, diagnostics: Sequence[Mapping[str, str]], counts: Mapping[str, int]) -> None:
    """By code, each with its first messages, how many more there were, and what to do about them."""
    order = {code: place for place, code in enumerate(dict.fromkeys(each["code"] for each in diagnostics))}
    by_code = sorted(diagnostics, key=lambda each: order[each["code"]])
    for code, group in groupby(by_code, key=lambda each: each["code"]):
        same = list(group)
        style = _COLOURS[same[0]["severity"]]
        for each in same[:_SHOWN]:
            out.line(each["message"], first=f"  {each['severity']} {code}: ", style=style)
        if counts[code] > _SHOWN:
            out.line(f"({counts[code]} of these in all)", first="    ")
        if same[0]["hint"]:
            out.line(same[0]["hint"], first="    way out: ")
