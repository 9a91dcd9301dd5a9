"""`exthost check DIR`: load one extension and say what it registers, or precisely why it fails."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import attrs
import click
import trio

from trio_exthost.cli.text import console, printable, printable_lines, write_json
from trio_exthost.config import Deadlines, HostConfig
from trio_exthost.diagnostics import Diagnostic
from trio_exthost.errors import HostError, LoadError
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.host import open_host
from trio_exthost.runtime.session import Session
from trio_exthost.wire.from_extension import PanelSpec

SETTLE_S = 0.3
"""After `ready`, so long for what comes late: notes, panels, more registrations."""


class _Listener(HostClient):
    """Keeps what the extension shows."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.panels: list[str] = []
        self.diagnostics: list[Diagnostic] = []

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:  # noqa: ARG002 - the protocol
        self.notes.append(f"{level}: {message}")

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:  # noqa: ARG002 - the protocol
        self.panels.append(panel.id)

    def diagnostic(self, session: Session | None, diagnostic: Diagnostic) -> None:  # noqa: ARG002 - the protocol
        self.diagnostics.append(diagnostic)


async def examine(directory: Path, hello_s: float | None) -> dict[str, Any]:
    """Load it in a session with nothing else; what it registers, or why it failed."""
    deadlines = Deadlines(hello_s=hello_s) if hello_s is not None else Deadlines()
    config = HostConfig(project_roots=(), user_roots=(), deadlines=deadlines)
    listener = _Listener()
    begun = time.monotonic()
    found: dict[str, Any] = {"directory": str(directory), "ok": False}
    async with open_host(config) as host, host.open_session("check", cwd=directory, client=listener) as session:
        try:
            row = await session.load(directory)
        except LoadError as exc:
            found |= {"name": exc.extension or directory.name, "error": _error(exc)}
        else:
            found |= {"name": row.name, "ok": True, "ready_s": round(time.monotonic() - begun, 3)}
            await trio.sleep(SETTLE_S)
            row = next(each for each in session.extensions() if each.name == row.name)
            found |= {"version": row.version, "auto_ready": row.auto_ready, "state": row.state}
            found |= _registrations(session)
            found["ok"] = row.state == "ready"
            if row.reason:
                found["reason"] = row.reason
    found |= {"notes": listener.notes, "panels": listener.panels}
    found["diagnostics"] = [
        {"code": each.code.value, "severity": each.severity.value, "message": each.message}
        for each in listener.diagnostics
    ]
    return found


def _error(exc: LoadError) -> dict[str, str]:
    keys = ("code", "stage", "message", "exit_status", "stderr_tail", "log_path", "hint")
    return {key: str(getattr(exc, key)) for key in keys}


def _registrations(session: Session) -> dict[str, Any]:
    return {
        "commands": [attrs.asdict(each) for each in session.commands()],
        "tools": [
            {"name": each.name, "description": each.description, "schema": each.schema} for each in session.tools()
        ],
        "events": sorted(session.views.subscribers),
        "intercepts": sorted(session.views.interceptors),
    }


@click.command("check")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--timeout", type=click.FloatRange(min=0.1), help="Seconds until hello, instead of 10.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check_command(directory: Path, timeout: float | None, as_json: bool) -> None:
    """Load the extension in DIRECTORY and say what it registers, or why it fails. Runs it: you trust it by naming it."""
    try:
        found = trio.run(examine, directory.absolute(), timeout)
    except HostError as exc:
        raise click.ClickException(printable(str(exc))) from exc
    if as_json:
        write_json(found)
    else:
        _show(found)
    raise SystemExit(0 if found["ok"] else 1)


def _show(found: dict[str, Any]) -> None:
    out = console(stderr=not found["ok"])
    name = printable(found["name"])
    if "error" in found:
        _show_error(name, found["error"])
        return
    how = ", taken as ready without a ready frame" if found["auto_ready"] else ""
    out.print(f"{name} {printable(found['version'])}: {found['state']} after {found['ready_s']} s{how}")
    if "reason" in found:
        out.print(f"  {printable(found['reason'])}")
    for command in found["commands"]:
        out.print(f"  command /{printable(command['name'])}  {printable(command['description'])}")
    for tool in found["tools"]:
        out.print(f"  tool {printable(tool['name'])}  {printable(tool['description'])}")
    for word in ("events", "intercepts", "panels"):
        if found[word]:
            out.print(f"  {word}: {printable(', '.join(found[word]))}")
    for note in found["notes"]:
        out.print(f"  note {printable(note)}")
    for each in found["diagnostics"]:
        out.print(f"  {each['severity']} {each['code']}: {printable(each['message'])}", style="yellow")


def _show_error(name: str, error: dict[str, str]) -> None:
    out = console(stderr=True)
    out.print(f"{name}: {printable(error['message'])}", style="red")
    for key, label in (("stage", "stage"), ("exit_status", "exit"), ("hint", "way out"), ("log_path", "log")):
        if error[key]:
            out.print(f"  {label}: {printable(error[key])}")
    if error["stderr_tail"]:
        out.print("  the end of its stderr:")
        for line in printable_lines(error["stderr_tail"]):
            out.print(f"    {line}")
