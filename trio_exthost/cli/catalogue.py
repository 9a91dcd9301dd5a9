"""`exthost list`: what there is, and what becomes of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import Output, write_json
from trio_exthost.config import HostConfig
from trio_exthost.packages import Candidate, TrustStore, discover
from trio_exthost.runtime.next_steps import way_to_start


def trust_store(config: HostConfig) -> TrustStore:
    """The user's decisions."""
    return TrustStore(config.data_dir.absolute() / "trust.json")


def row(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON."""
    return {
        "name": candidate.name,
        "status": candidate.status.value,
        "code": candidate.code,
        "reason": candidate.reason,
        "way_out": way_to_start(candidate),
        "origin": candidate.origin.value,
        "directory": os.fspath(candidate.directory),
        "version": candidate.manifest.version if candidate.manifest else "",
        "warnings": list(candidate.warnings),
    }


EPILOG = """
Example:
  exthost list --cwd ~/src/my-project

--json prints one object:
  extensions     [{name, status, code, reason, way_out, origin, directory,
                 version, warnings}], in the order that settles who gets a name
    status       effective, static, shadowed, rejected, blocked or disabled
    origin       explicit, project or user
  trust_problem  null, or why no decision about trust counts
"""


@click.command(
    "list", cls=Command, short_help=COMMANDS["list"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The project's directory, instead of this one.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def list_command(cwd: Path, as_json: bool) -> None:
    """List every extension there is, with its state and the reason for it.

    Looked for in the project's .exthost/extensions and in the user's own directory. Nothing is started.
    """
    config = HostConfig()
    store = trust_store(config)
    problem = store.problem
    rows = [row(candidate) for candidate in discover(config, cwd.absolute(), trust=store)]
    if as_json:
        write_json({"extensions": rows, "trust_problem": problem})
        return
    if problem:
        Output(stderr=True).line(f"{problem}", first="warning: ", style="yellow")
    out = Output()
    if not rows:
        roots = [cwd.absolute() / root for root in config.project_roots]
        roots += [config.data_dir / "extensions"] if config.user_roots is None else config.user_roots
        out.line("no extensions; looked in")
        for root in roots:
            out.line(root, first="  ")
    for each in rows:
        colour = "green" if each["status"] in ("effective", "static") else "yellow"
        title = f"{each['name']} {each['version']}".rstrip()
        out.line(f"{title}  {each['status']}  ({each['origin']})", style=colour)
        out.line(each["directory"], first="  ", style="dim")
        if each["reason"]:
            out.line(each["reason"], first="  ")
        if each["way_out"]:
            out.line(each["way_out"], first="  way out: ")
        for line in each["warnings"]:
            out.line(line, first="  ")
