"""`exthost trust`: the facts about an extension, then the decision whether it may run."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from trio_exthost.cli.catalogue import trust_store
from trio_exthost.cli.files import files_of
from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import Output, print_error, write_json
from trio_exthost.config import HostConfig
from trio_exthost.errors import LoadError
from trio_exthost.packages import TrustStore, child_environment, load_manifest, package_digest, resolve_exec
from trio_exthost.packages.manifest import Manifest

_SHOWN_FILES = 20

EPILOG = """
Examples:
  exthost trust .exthost/extensions/guard
  exthost trust --deny --json .exthost/extensions/guard

--json prints one object and asks nothing. With a DIRECTORY:
  decision     trusted or denied
  name, version, description, directory, digest, decided_at
  exec, args   as the manifest has them; program is what would be run
  files        names, at most 1000; file_count says how many there are
  asks         {permissions, optional_permissions, overrides, env_from, env,
               ...}: what its manifest asks for and is not the default
  warnings     what to look at before it runs
With --forget: {forgotten, directory}; forgotten is a number of decisions.
Without a DIRECTORY: {decisions, problem}; decisions is [{name, decision,
directory, digest, decided_at}], oldest first; problem is null or why none
of them counts.

Exit status: 0 recorded or listed, 1 not, 2 wrong call.
"""


@click.command(
    "trust", cls=Command, short_help=COMMANDS["trust"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--deny", is_flag=True, help="Never run it, and do not ask.")
@click.option("--forget", is_flag=True, help="Take every decision about it back; it need not exist any more.")
@click.option("--yes", is_flag=True, help="Do not ask on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def trust_command(directory: Path | None, deny: bool, forget: bool, yes: bool, as_json: bool) -> int:
    """Let the extension in DIRECTORY run as it is now; without one, list the decisions.

    What it is and asks for is shown first; on a terminal you are asked then. The decision is bound to the real path and
    to the content: when a file of it changes, it is asked about again.
    """
    if deny and forget:
        raise click.UsageError(
            "--deny and --forget exclude each other: one records a no, the other no decision at all."
        )
    if directory is None and (deny or forget or yes):
        word = "--deny" if deny else "--forget" if forget else "--yes"
        raise click.UsageError(f"{word} needs the DIRECTORY of an extension.")
    store = trust_store(HostConfig())
    if directory is None:
        return _show_decisions(store, as_json=as_json)
    if forget:
        return _forget(store, directory, as_json=as_json)
    if not directory.is_dir():
        raise click.UsageError(f"Directory '{directory}' does not exist.")
    return _decide(store, directory, deny=deny, asks=not (yes or deny or as_json), as_json=as_json)


def _forget(store: TrustStore, directory: Path, *, as_json: bool) -> int:
    count = store.forget(directory)
    where = os.path.realpath(directory)
    if as_json:
        write_json({"forgotten": count, "directory": where})
    else:
        Output().line(f"forgot {count} decision{'' if count == 1 else 's'} about {where}")
    return 0


def _decide(store: TrustStore, directory: Path, *, deny: bool, asks: bool, as_json: bool) -> int:
    # The digest first: whatever changes while the rest is read and shown makes the decision void.
    digest = package_digest(directory)
    known = facts(directory, digest)
    if not as_json:
        show_facts(known)
    # A store that cannot be read is said before the question, not after it.
    if problem := store.problem:
        print_error(problem)
        return 1
    if asks and not _agreed():
        Output().line("nothing was recorded")
        return 1
    decide = store.deny if deny else store.trust
    decision = decide(directory, digest, name=known["name"], decided_at=dt.datetime.now(dt.UTC))
    word = "trusted" if decision.trusted else "denied"
    if as_json:
        write_json({"decision": word, **known, "decided_at": decision.decided_at})
    else:
        Output().line(f"{word}: {known['name']}", style="green" if decision.trusted else "yellow")
    return 0


def _agreed() -> bool:
    """Ask the person; without one at a terminal, naming the directory is the answer."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    sys.stdout.write("Let it run? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def facts(directory: Path, digest: str) -> dict[str, Any]:
    """What a person should know before they decide.

    Raises:
      ManifestError: Its manifest cannot be used.
      OSError: A directory in it cannot be read.
    """
    manifest, warnings = load_manifest(directory)
    program, problem = _program(manifest, Path(os.path.realpath(directory)))
    files = files_of(Path(os.path.realpath(directory)))
    return {
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "directory": os.path.realpath(directory),
        "digest": digest,
        "exec": manifest.exec,
        "args": list(manifest.args),
        "program": program,
        "files": list(files.names),
        "file_count": files.count,
        "asks": asks_of(manifest),
        "warnings": [*warnings, *filter(None, [problem])],
    }


def _program(manifest: Manifest, directory: Path) -> tuple[str, str]:
    """What would be run, or why nothing would."""
    if manifest.static:
        return "", ""
    environment = child_environment(os.environ, manifest, {})
    try:
        return resolve_exec(manifest, directory, environment.get("PATH"))[0], ""
    except LoadError as exc:
        return "", exc.message


def asks_of(manifest: Manifest) -> dict[str, Any]:
    """What its manifest asks for and is not the default. Of `env` the names only: values may be secrets."""
    section = manifest.exthost
    wanted: dict[str, Any] = {
        "permissions": list(section.permissions),
        "optional_permissions": list(section.optional_permissions),
        "overrides": list(section.overrides),
        "env_from": list(section.env_from),
        "env": list(section.env),
        "skills": list(manifest.skills),
        "priority": section.priority,
        "on_failure": section.on_failure,
        "restart": section.restart if section.restart != "never" else None,
        "startup_timeout_s": section.startup_timeout_s,
        "tool_timeout_s": section.tool_timeout_s,
        "tool_result_bytes": section.tool_result_bytes,
    }
    return {key: value for key, value in wanted.items() if value}


_LABELS = (
    ("name", "name"), ("version", "version"), ("description", "says"), ("directory", "path"), ("digest", "digest"),
    ("exec", "exec"), ("args", "args"), ("program", "program"),
)  # fmt: skip
_INDENT = 13


def show_facts(known: Mapping[str, Any]) -> None:
    """Print what `facts` gave."""
    out = Output()
    for key, label in _LABELS:
        value = known[key]
        if value:
            shown = shlex.join(value) if isinstance(value, list) else value
            out.line(shown, first=_label(label))
    if not known["exec"]:
        out.line("nothing: it holds skills or themes only", first=_label("exec"))
    more = known["file_count"] - _SHOWN_FILES
    for place, name in enumerate(known["files"][:_SHOWN_FILES]):
        out.line(name, first=_label("files" if place == 0 else ""))
    if more > 0:
        out.line(f"... and {more} more", first=_label(""))
    for place, (key, value) in enumerate(known["asks"].items()):
        shown = ", ".join(value) if isinstance(value, list) else value
        out.line(f"{key.replace('_', ' ')}: {shown}", first=_label("asks for" if place == 0 else ""))
    if not known["asks"]:
        out.line("nothing beyond running as you", first=_label("asks for"))
    for warning in known["warnings"]:
        out.line(warning, first=_label("warning"), style="yellow")


def _label(word: str) -> str:
    return f"{word + ':' if word else '':>{_INDENT}} "


def _show_decisions(store: TrustStore, *, as_json: bool) -> int:
    problem = store.problem
    entries = [
        {
            "name": entry.name,
            "decision": "trusted" if entry.trusted else "denied",
            "directory": entry.path,
            "digest": entry.digest,
            "decided_at": entry.decided_at,
        }
        for entry in store.entries()
    ]
    if as_json:
        write_json({"decisions": entries, "problem": problem})
    elif problem:
        print_error(problem)
    elif not entries:
        Output().line("no decisions")
    else:
        out = Output()
        for each in entries:
            style = "green" if each["decision"] == "trusted" else "yellow"
            out.line(f"{each['name']}  {each['decision']}  {each['decided_at']}", style=style)
            out.line(each["directory"], first="  ")
            out.line(each["digest"], first="  ", style="dim")
    return 1 if problem else 0
