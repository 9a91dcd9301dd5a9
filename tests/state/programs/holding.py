"""Opens a session, says so, and holds it until its input ends: `holding.py DIRECTORY`."""

import sys
from pathlib import Path

from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

state = SessionState(SqliteStores(Path(sys.argv[1])).open_session("session"))
actions = read_actions([{"kind": "set_state", "key": "held", "value": True}], extension="todo")
state.publish(state.write([Commit(extension="todo", schema=1, actions=actions)]))
print("open", flush=True)
sys.stdin.read()
