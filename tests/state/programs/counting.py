"""Adds to a counter that all share, and sets keys of its own: `counting.py DIRECTORY NAME TIMES`."""

import sys
from pathlib import Path

from trio_exthost.state import read_actions
from trio_exthost.state.sqlite import SqliteStores

directory, name, times = sys.argv[1:]
store = SqliteStores(Path(directory)).open_extension("counter")
for number in range(int(times)):
    raw = [
        {"kind": "add_state", "key": "n", "by": 1},
        {"kind": "set_state", "key": f"{name} {number}", "value": number, "if_revision": None},
    ]
    store.commit(read_actions(raw, extension="counter"), schema=1)
print("done", flush=True)
