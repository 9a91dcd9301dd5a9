"""Stores until no file may grow any more, as on a full disk: `filling.py DIRECTORY session|extension BYTES`.

Prints the number of each batch that was acknowledged, then what refused the next one, then what is readable after it.
"""

import itertools
import resource
import signal
import sys
from pathlib import Path

from trio_exthost.errors import StateError, StoreFailed
from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

stores = SqliteStores(Path(sys.argv[1]))
in_session = sys.argv[2] == "session"
limit = int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write that would make a file too large fails
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def actions(number):
    raw = [{"kind": "set_state", "key": f"key {number}", "value": "x" * 5_000}]
    return read_actions(raw, extension="one")


def commit_to_session(state, number):
    (outcome,) = state.write([Commit(extension="one", schema=1, actions=actions(number))]).outcomes
    if isinstance(outcome, StateError):
        raise outcome


try:
    state = SessionState(stores.open_session("session")) if in_session else None
    shared = stores.open_extension("one")
    for number in itertools.count(1):
        if state is not None:
            commit_to_session(state, number)
        else:
            shared.commit(actions(number), schema=1)
        print(number, flush=True)
except StoreFailed as exc:
    print("refused", exc.code, exc.path, str(exc).replace("\n", " "), sep="\t", flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if state is not None:
        commit_to_session(state, number)  # there is room again
    else:
        shared.commit(actions(number), schema=1)
    print("again", number, sep="\t", flush=True)
