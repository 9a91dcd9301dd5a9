"""`exthost check DIR`: load one extension and say what it registers, or precisely why it fails."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
import trio

from trio_exthost.cli.check_policy import declared, policy_facts, read_policy
from trio_exthost.cli.check_view import show
from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import write_json
from trio_exthost.config import Deadlines, HostConfig
from trio_exthost.diagnostics import Code, Diagnostic, DiagnosticLog
from trio_exthost.errors import LoadError, ManifestError
from trio_exthost.packages import Manifest, load_manifest
from trio_exthost.policy import Policy
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.host import open_host
from trio_exthost.runtime.next_steps import HINTS
from trio_exthost.runtime.session import Session
from trio_exthost.wire.from_extension import PanelSpec

SETTLE_S = 0.3
"""After `ready`, so long for what comes late: notes, panels, more registrations."""


class _Listener(HostClient):
    """Keeps what the extension shows."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.panels: list[str] = []

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:  # noqa: ARG002 - the protocol
        self.notes.append(f"{level}: {message}")

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:  # noqa: ARG002 - the protocol
        self.panels.append(panel.id)


async def examine(
    directory: Path, hello_s: float | None = None, policy: Policy | None = None, policy_path: Path = Path()
) -> dict[str, Any]:
    """Load it in a session with nothing else; what it registers, or why it failed. Its process has ended on return.

    Args:
      directory: Absolute.
      hello_s: Seconds until `hello`; None for the default. A manifest that asks for more or less wins.
      policy: Under which it is loaded; None for one that says nothing.
      policy_path: Where the policy is from.
    """
    deadlines = Deadlines(hello_s=hello_s) if hello_s is not None else Deadlines()
    config = HostConfig(project_roots=(), user_roots=(), deadlines=deadlines)
    listener = _Listener()
    begun = time.monotonic()
    found: dict[str, Any] = {
        "directory": str(directory), "name": directory.name, "ok": False, "state": "failed", "error": None,
        "reason": "", "version": "", "ready_s": None, "auto_ready": False,
        "commands": [], "tools": [], "events": [], "intercepts": [], "policy": None,
    }  # fmt: skip
    async with (
        open_host(config, policy=policy) as host,
        host.open_session("check", cwd=directory, client=listener) as session,
    ):
        try:
            row = await session.load(directory)
        except LoadError as exc:
            found |= {"name": exc.extension or directory.name, **_failure(exc, directory)}
            told = (str(exc), exc.message)
        else:
            found["ready_s"] = round(time.monotonic() - begun, 3)
            await trio.sleep(SETTLE_S)
            row = next(each for each in session.extensions() if each.name == row.name)
            found |= {"name": row.name, "version": row.version, "state": row.state}
            found |= {"auto_ready": row.auto_ready, **_registrations(session)}
            # One that crashes is not in order, though a policy or its manifest has it started again.
            restarts = [each.message for each in host.diagnostics if each.code is Code.RESTARTING]
            found |= {"ok": row.state == "ready" and not restarts, "reason": row.reason or "".join(restarts[:1])}
            told = ("", "")
            if row.error is not None:
                found |= _failure(row.error, directory)
                told = (str(row.error), row.error.message)
    # Read only now: that it had to be killed is worth knowing, too.
    found |= {"notes": listener.notes, "panels": listener.panels, **_diagnostics(host.diagnostics, told)}
    if policy is not None:
        names = [each["name"] for each in (*found["commands"], *found["tools"])]
        said = declared(_manifest(directory), found["intercepts"])
        found["policy"] = policy_facts(policy_path, policy, found["name"], said, config, names)
    return found


def _failure(exc: LoadError, directory: Path) -> dict[str, Any]:
    """Why it does not run, with a way out. One that has nothing to run is in order."""
    manifest = _manifest(directory)
    if exc.stage == "discovery" and manifest is not None and manifest.static and manifest.enabled:
        return {"ok": True, "state": "static", "version": manifest.version, "reason": "it holds skills or themes only"}
    keys = ("code", "stage", "message", "exit_status", "stderr_tail", "log_path", "hint")
    error: dict[str, Any] = {key: str(getattr(exc, key)) for key in keys}
    error["uptime_s"] = None if exc.uptime_s is None else round(exc.uptime_s, 3)
    error["in_flight"] = list(exc.in_flight)
    return {"error": error}


def _manifest(directory: Path) -> Manifest | None:
    try:
        return load_manifest(directory)[0]
    except ManifestError:  # said already, by the load
        return None


def _registrations(session: Session) -> dict[str, Any]:
    return {
        "commands": [{"name": each.name, "description": each.description} for each in session.commands()],
        "tools": [
            {"name": each.name, "description": each.description, "schema": each.schema} for each in session.tools()
        ],
        "events": sorted({*session.views.subscribers, *session.views.observers}),
        "intercepts": sorted({*session.views.interceptors, *session.views.awaited}),
    }


def _diagnostics(log: DiagnosticLog, told: Collection[str]) -> dict[str, Any]:
    """Every one that was kept but the failure itself, which is `error` already; and how often each code came up."""
    kept = [each for each in log if each.message not in told]
    counts = {code.value: count for code, count in log.counts.items() if any(each.code is code for each in kept)}
    return {"diagnostics": [_one(each) for each in kept], "counts": counts}


def _one(each: Diagnostic) -> dict[str, str]:
    return {
        "code": each.code.value,
        "severity": each.severity.value,
        "message": each.message,
        "hint": HINTS.get(each.code, ""),
    }


EPILOG = """
Examples:
  exthost check ./my-extension --timeout 3
  exthost check ./my-extension --policy policy.toml

--json prints one object:
  ok           true when it became ready, and still was a moment later; or
               when it has nothing to run (skills or themes only)
  name, version, directory
  state        ready, static, failed, ...; reason says why it is not ready
  ready_s      seconds until it was ready, or null
  auto_ready   true when its silence was taken for ready
  commands     [{name, description}]
  tools        [{name, description, schema}]
  events, intercepts, panels, notes
               lists of text
  error        null, or {code, stage, message, exit_status, uptime_s,
               in_flight, stderr_tail, log_path, hint}; uptime_s is null and
               log_path empty where no process was started
  diagnostics  [{code, severity, message, hint}], oldest first
  counts       how often each of these codes came up: {code: number}
  policy       null without --policy, or {file, named, rows, others}; named:
               does it speak of this extension; others: names of further ones
    rows       [{extension, point, setting, value, rule, where}]: what is in
               force for all (extension is empty) and for this one, the rule
               that decides and the key that says so

Exit status: 0 ok, 1 not ok, 2 wrong call.
"""


@click.command(
    "check", cls=Command, short_help=COMMANDS["check"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=86_400),
    metavar="SECONDS",
    help="Until its hello, instead of 10; exthost.startup_timeout_s of its manifest wins.",
)
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Load it under this policy, and show which of its settings are in force.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def check_command(directory: Path, timeout: float | None, policy: Path | None, as_json: bool) -> int:
    """Load the extension in DIRECTORY and say what it registers, or why it fails.

    It is run: by naming it you trust it.
    """
    read = None if policy is None else read_policy(policy)
    found = trio.run(examine, directory.absolute(), timeout, read, policy or Path())
    if as_json:
        write_json(found)
    else:
        show(found)
    return 0 if found["ok"] else 1
