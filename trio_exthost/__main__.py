"""`python -m trio_exthost`: the `exthost` command."""

from trio_exthost.cli import main

main()
