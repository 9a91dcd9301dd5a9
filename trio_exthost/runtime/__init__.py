"""The trio side: shared I/O tasks, instances, sessions and runs. The public names are in `trio_exthost`."""
