"""The `exthost` command: a demo, a check of one extension, the catalogue, trust."""

from __future__ import annotations

import importlib
import sys

import click


class _Lazy(click.Group):
    """Each command's module is imported when the command is run: `exthost --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return ["check", "demo", "list", "trust"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = "catalogue" if cmd_name in ("list", "trust") else cmd_name
        command = getattr(importlib.import_module(f"trio_exthost.cli.{module}"), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Lazy)
@click.version_option(package_name="trio-exthost")
def exthost() -> None:
    """An extension host for agents: see it, check an extension, list what is there, trust it."""


def main() -> None:
    """Run the command; 0 when all is well, 1 when what was checked is not, 2 for a wrong call, 130 for Ctrl-C."""
    try:
        exthost.main(standalone_mode=False)
    except click.exceptions.Exit as exc:
        sys.exit(exc.exit_code)
    except click.ClickException as exc:
        exc.show()
        sys.exit(exc.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`exthost list | head`): nothing to say to anybody.
        sys.stderr.close()
        sys.exit(141)
