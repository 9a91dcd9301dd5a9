"""`exthost list` and `exthost trust`: what is there, and what may run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from trio_exthost.cli.text import console, printable, write_json
from trio_exthost.config import HostConfig
from trio_exthost.errors import HostError
from trio_exthost.packages import Candidate, TrustStore, discover, load_manifest, package_digest


def trust_store(config: HostConfig) -> TrustStore:
    """The user's decisions."""
    return TrustStore(config.data_dir / "trust.json")


def row(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON."""
    return {
        "name": candidate.name,
        "status": candidate.status.value,
        "code": candidate.code,
        "reason": candidate.reason,
        "origin": candidate.origin.value,
        "directory": os.fspath(candidate.directory),
        "version": candidate.manifest.version if candidate.manifest else "",
        "warnings": list(candidate.warnings),
    }


@click.command("list")
@click.option(
    "--cwd", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="The project's directory."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_command(cwd: Path, as_json: bool) -> None:
    """Every extension there is, with its state and the reason for it. Starts nothing."""
    config = HostConfig()
    store = trust_store(config)
    rows = [row(candidate) for candidate in discover(config, cwd.absolute(), trust=store)]
    if as_json:
        write_json({"extensions": rows, "trust_problem": store.problem})
        return
    out = console()
    if store.problem:
        console(stderr=True).print(printable(store.problem))
    if not rows:
        out.print("no extensions")
    for each in rows:
        out.print(f"{printable(each['name'])} {printable(each['version'])}".rstrip(), end="  ")
        out.print(f"{each['status']}  ({each['origin']})", style="green" if each["status"] == "effective" else "yellow")
        out.print(f"  {printable(each['directory'])}", style="dim")
        for line in [each["reason"], *each["warnings"]]:
            if line:
                out.print(f"  {printable(line)}")


@click.command("trust")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--deny", is_flag=True, help="Never run it, and do not ask.")
@click.option("--forget", is_flag=True, help="Take every decision about it back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def trust_command(directory: Path | None, deny: bool, forget: bool, as_json: bool) -> None:
    """Let the extension in DIRECTORY run as it is now; without one, list the decisions.

    The decision is bound to the real path and to the content: when a file of it changes, it is asked about again.
    """
    store = trust_store(HostConfig())
    try:
        if directory is None:
            _show_decisions(store, as_json=as_json)
        elif forget:
            count = store.forget(directory)
            _say({"forgotten": count, "directory": os.fspath(directory.resolve())}, as_json=as_json)
        else:
            _decide(store, directory, deny=deny, as_json=as_json)
    except HostError as exc:
        raise click.ClickException(printable(str(exc))) from exc


def _decide(store: TrustStore, directory: Path, *, deny: bool, as_json: bool) -> None:
    manifest, warnings = load_manifest(directory)
    digest = package_digest(directory)
    decide = store.deny if deny else store.trust
    decision = decide(directory, digest, name=manifest.name)
    section = manifest.exthost
    _say(
        {
            "name": manifest.name,
            "decision": "trusted" if decision.trusted else "denied",
            "directory": decision.path,
            "digest": digest,
            "runs": " ".join([manifest.exec, *manifest.args]),
            "permissions": [*section.permissions, *section.optional_permissions],
            "env_from": list(section.env_from),
            "warnings": list(warnings),
        },
        as_json=as_json,
    )


def _show_decisions(store: TrustStore, *, as_json: bool) -> None:
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
        write_json({"decisions": entries, "problem": store.problem})
        return
    if store.problem:
        console(stderr=True).print(printable(store.problem))
    if not entries:
        console().print("no decisions")
    for entry in entries:
        _say(entry, as_json=False)


def _say(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_json(facts)
        return
    out = console()
    for key, value in facts.items():
        if value not in ("", []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            out.print(f"{key:>12}: {printable(shown)}")
