"""The `exthost` command: a demo, a check of one extension, the catalogue, trust.

Nothing is imported here but `sys`: what takes long to import is imported inside `main`, where Ctrl-C is a status already.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""What a shell says for a program that Ctrl-C ended."""


def main() -> None:
    """Run the command and exit: 0 all is well, 1 it is not, 2 wrong call, 130 Ctrl-C, 141 nobody reads the output."""
    try:
        from trio_exthost.cli.entry import run  # noqa: PLC0415 - see above

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
        if sys.stderr is not None:
            sys.stderr.write("interrupted\n")
    sys.exit(status)
