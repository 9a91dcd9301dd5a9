"""Opens a session, stores so many batches, says so, and holds it until its input ends: `holding.py DIRECTORY [BATCHES]`."""

import sys
from pathlib import Path

from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

state = SessionState(SqliteStores(Path(sys.argv[1])).open_session("session"))
for number in range(1, int(sys.argv[2] if len(sys.argv) > 2 else 1) + 1):
    actions = read_actions([{"kind": "set_state", "key": "held", "value": number}], extension="todo")
    state.publish(state.write([Commit(extension="todo", schema=1, actions=actions)]))
print("open", flush=True)
sys.stdin.read()
