"""Commits in a loop and prints the number of each batch that was acknowledged: `committing.py DIRECTORY session|extension`.

Begins after what is there. Each number is a batch of two keys and an event; a session also gets positions, groups of batches of
several extensions, and compactions.
"""

import itertools
import sys
from pathlib import Path

from trio_exthost.errors import StateError
from trio_exthost.state import Advance, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores


def batch(number, extension):
    raw = [
        {"kind": "set_state", "key": "first", "value": number},
        {"kind": "append_custom_event", "event_id": f"event {number}", "custom_type": "tick", "payload": "x" * 300},
        {"kind": "set_state", "key": "second", "value": number},
    ]
    return read_actions(raw, extension=extension)


def in_session(stores):
    state = SessionState(stores.open_session("session"))
    for number in itertools.count(state.projection("one").get("second", 0) + 1):
        todo = [
            Commit(extension=name, schema=1, actions=batch(number, name), sequence=number) for name in ("one", "two")
        ]
        if number % 5 == 0:
            todo.insert(1, Advance(f"entry {number}"))
        written = state.write(todo)
        assert not any(isinstance(each, StateError) for each in written.outcomes), written.outcomes
        state.publish(written)
        if number % 7 == 0:
            state.compact()
        yield number


def in_extension(stores):
    store = stores.open_extension("one")
    for number in itertools.count(store.read().get("second", 0) + 1):
        store.commit(batch(number, "one"), schema=1, sequence=number)
        yield number


stores = SqliteStores(Path(sys.argv[1]))
for acknowledged in (in_session if sys.argv[2] == "session" else in_extension)(stores):
    print(acknowledged, flush=True)
