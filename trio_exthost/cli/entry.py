"""From arguments to an exit status: how each way a command can end is said, and what status it gives."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import click

from trio_exthost.cli.group import exthost
from trio_exthost.cli.streams import ReaderGone, drop_output, guarded
from trio_exthost.cli.text import print_error
from trio_exthost.errors import HostError

READER_GONE = 141
"""What a shell says for a program that SIGPIPE ended."""


def run(arguments: Sequence[str]) -> int:
    """Run the command; its exit status. Bugs of ours are raised, all else is said on stderr in a line or two.

    Raises:
      KeyboardInterrupt: Ctrl-C; everything the command had started has ended.
    """
    with guarded():
        try:
            status = _run(arguments)
            sys.stdout.flush()
        except ReaderGone:
            drop_output()
            return READER_GONE
        except OSError as exc:
            # Ours to say: the disk is full, there is no room for a temporary file, ...
            status = _fail(f"{exc.strerror or exc}" + (f": {os.fsdecode(exc.filename)}" if exc.filename else ""))
            drop_output()
        return status


def _run(arguments: Sequence[str]) -> int:
    try:
        status = exthost.main(list(arguments), prog_name="exthost", standalone_mode=False)
    except click.Abort as exc:
        raise KeyboardInterrupt from exc
    except BaseExceptionGroup as group:
        # Ctrl-C within nurseries; one that is mixed with other failures is told with them.
        if group.split(KeyboardInterrupt)[1] is None:
            raise KeyboardInterrupt from group
        raise
    except click.UsageError as exc:
        print_error(exc.format_message())
        print_error(f"{exc.ctx.command_path if exc.ctx else 'exthost'} --help", label="Try: ")
        return exc.exit_code
    except click.ClickException as exc:
        return _fail(exc.format_message(), exc.exit_code)
    except HostError as exc:
        return _fail(str(exc))
    return status if isinstance(status, int) else 0


def _fail(message: str, status: int = 1) -> int:
    with contextlib.suppress(OSError):  # stderr may be on the same full disk: the status is all that can be said then
        print_error(message)
    return status
