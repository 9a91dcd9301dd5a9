"""The commands by name. A command's module is imported when it is run: `exthost --help` needs none of them."""

from __future__ import annotations

import importlib
from typing import NoReturn

import click

COMMANDS = {
    "check": ("check", "Load one extension and say what it registers, or why it fails."),
    "demo": ("demo", "See it: an agent and five extensions at work. Works offline."),
    "dev": ("dev", "Work on one extension: it is reloaded whenever its files change."),
    "list": ("catalogue", "Every extension there is, with its state and the reason."),
    "logs": ("logs", "What an extension wrote to its stderr, and what the host noted."),
    "replay": ("replay", "What extensions would have done to a recorded conversation."),
    "state": ("state", "What extensions have stored: list, show, export, compact."),
    "stats": ("stats", "How often extensions were asked, and how long they took; from a log."),
    "trust": ("trust", "Let an extension of a project run; or deny, forget, list."),
    "why": ("why", "What was decided about a tool call, by whom and why; from a log."),
}
"""Name: the module that has it, and what it does in a line."""

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class Command(click.Command):
    """A command whose help ends with examples and the form of its JSON, printed as they stand."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The epilog without click's wrapping."""
        if self.epilog:
            formatter.write(f"\n{self.epilog.strip()}\n")


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"trio_exthost.cli.{COMMANDS[cmd_name][0]}"), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            _unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _unknown(ctx: click.Context, word: str) -> NoReturn:
    import difflib  # noqa: PLC0415 - only for a mistake

    close = difflib.get_close_matches(word.lower(), COMMANDS, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else f"The commands are {', '.join(COMMANDS)}."
    ctx.fail(f"No such command '{word}'. {hint}")


@click.group(cls=_Group, invoke_without_command=True, context_settings=HELP_OPTIONS)
@click.version_option(package_name="trio-exthost")
@click.pass_context
def exthost(ctx: click.Context) -> int:
    """An extension host for agents: see it, check an extension, list what is there, trust it.

    For example: exthost check ./my-extension
    """
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return 2
