"""`exthost state`: what extensions have stored, and its upkeep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import click

from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.state_export import export_command
from trio_exthost.cli.state_places import EXTENSION, find, size_text, stores_here
from trio_exthost.cli.state_show import show_command
from trio_exthost.cli.text import Output, write_json
from trio_exthost.state.store import StoredName

EPILOG = """
Examples:
  exthost state list
  exthost state show my-session
  exthost state export my-session --json

--json prints one object; `exthost state list --help`, and so on, say which.

State is in the directory state of $EXTHOST_HOME, or where your system keeps
such files; an agent may have set another one. Looking works while a host has
a session open; compacting does not.
"""


class _Group(Command, click.Group):
    """A group whose help ends as a command's does."""


@click.group(
    "state", cls=_Group, short_help=COMMANDS["state"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
    invoke_without_command=True,
)  # fmt: skip
@click.pass_context
def state_command(ctx: click.Context) -> int:
    """What extensions have stored: look at it, take it out, make it smaller."""
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return 2


LIST_EPILOG = """
Example:
  exthost state list

--json prints one object:
  directory    where it lies
  sessions     [{name, path, size_bytes, problem}], by name
  extensions   the same of what extensions share between sessions
    problem    null, or why the file cannot be read; name is that of the file
               then

Exit status: 0 listed, 1 it cannot be, 2 wrong call.
"""


@click.command("list", cls=Command, epilog=LIST_EPILOG, context_settings=HELP_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def list_command(as_json: bool) -> None:
    """List the sessions and extensions that have stored something, with the size of their files."""
    stores = stores_here()
    sessions, extensions = stores.sessions(), stores.extensions()
    if as_json:
        write_json(
            {
                "directory": str(stores.directory),
                "sessions": _rows(sessions),
                "extensions": _rows(extensions),
            }
        )
        return
    if not sessions and not extensions:
        Output().line(f"nothing is stored in {stores.directory}")
    _tell("sessions", sessions)
    _tell("shared by extensions", extensions)


def _rows(names: Sequence[StoredName]) -> list[dict[str, Any]]:
    return [{**attrs.asdict(each), "problem": each.problem or None} for each in names]


def _tell(title: str, names: Sequence[StoredName]) -> None:
    out = Output()
    if names:
        out.line(title, style="bold")
    for each in names:
        out.line(f"{each.name}  {size_text(each.size_bytes)}", first="  ", style="yellow" if each.problem else "")
        if each.problem:
            out.line(each.path, first="    ", style="dim")
            out.line(each.problem, first="    ")


COMPACT_EPILOG = """
Example:
  exthost state compact my-session

Every position keeps its state and its revisions. A session that a host has
open is refused; the host has `session.compact_state()`.

--json prints one object:
  name                           the session's
  batches_before, batches_after  how many batches are stored
  bytes_before, bytes_after      bytes of their texts
  problem                        null, or why what is free in the file now
                                 could not be given back to the file system

Exit status: 0 compacted, 1 not, 2 wrong call.
"""


@click.command("compact", cls=Command, epilog=COMPACT_EPILOG, context_settings=HELP_OPTIONS)
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def compact_command(name: str, as_json: bool) -> None:
    """Drop what no position of the session NAME needs any more."""
    stores = stores_here()
    if find(stores, name, is_extension=False).kind == EXTENSION:
        raise click.ClickException(
            f"{name!r} is an extension; what it shares has no history, so there is nothing to compact"
        )
    store = stores.open_session(name)
    try:
        done = store.compact()
    finally:
        store.close()
    if as_json:
        write_json({"name": name, **attrs.asdict(done), "problem": done.problem or None})
        return
    Output().line(
        f"{done.batches_before} batches, {size_text(done.bytes_before)}; "
        f"now {done.batches_after} batches, {size_text(done.bytes_after)}"
    )
    if done.problem:
        Output(stderr=True).line(done.problem, first="warning: ", style="yellow")


for each in (list_command, show_command, export_command, compact_command):
    state_command.add_command(each)
