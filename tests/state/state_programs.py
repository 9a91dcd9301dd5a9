"""Programs that store state, for tests to kill, to starve and to set against each other.

python state_programs.py WORD DIRECTORY ARGUMENT... ; each acknowledged step is a line on stdout, written at once.
"""

import json
import os
import resource
import sys
from pathlib import Path

from trio_exthost.errors import StateError
from trio_exthost.state import Advance, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

EXTENSIONS = ("todo", "audit", "clock")


def say(*words):
    os.write(1, (json.dumps(words) + "\n").encode())


def actions(*raw):
    return read_actions(raw, extension="todo")


def whole_batch(number):
    """Three values and an event that belong together."""
    values = [{"kind": "set_state", "key": f"k{each}", "value": [number, "x" * 500]} for each in range(3)]
    event = {"kind": "append_custom_event", "event_id": str(number), "custom_type": "tick", "payload": number}
    return actions(*values, event)


def commit(directory, first):
    """Commit for ever: groups of three extensions' batches, some with a new position, some followed by a compaction."""
    state = SessionState(SqliteStores(directory).open_session("s"))
    number = int(first)
    while True:
        todo = [Commit(extension=each, schema=1, actions=whole_batch(number)) for each in EXTENSIONS]
        if number % 5 == 0:
            todo.append(Advance(f"entry {number}"))
        written = state.write(todo)
        state.publish(written)
        if any(isinstance(each, StateError) for each in written.outcomes):
            say("failed", str(written.outcomes))
            return
        say(number)
        if number % 40 == 0:
            state.compact()
        number += 1


def count(directory, times):
    """Add one to a counter that all share, and write a key of this process's own, so often (0: for ever)."""
    store = SqliteStores(directory).open_extension("todo")
    number = 0
    while number < int(times) or times == "0":
        number += 1
        done = store.commit(
            actions(
                {"kind": "add_state", "key": "n", "by": 1},
                {"kind": "set_state", "key": f"{os.getpid()}.{number}", "value": number},
            ),
            schema=1,
        )
        say(number, done.values["n"])


def hold(directory):
    """Hold a session open until stdin ends."""
    store = SqliteStores(directory).open_session("s")
    say("open")
    sys.stdin.read()
    store.close()


def starve(directory, limit_bytes):
    """Store until no file may grow any more, then again when they may."""
    stores = SqliteStores(directory)
    state = SessionState(stores.open_session("s"))
    shared = stores.open_extension("todo")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), hard))
    kept = starve_session(state, 0)
    kept_shared = starve_shared(shared, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    written = state.write([event_batch(kept)])
    state.publish(written)
    say("again", written.outcomes[0].changed, shared.commit(event_batch(kept_shared).actions, schema=1).changed)
    state.close()


def starve_session(state, number):
    while True:
        (outcome, moved) = state.write([event_batch(number), Advance(f"entry {number}")]).outcomes
        if isinstance(outcome, StateError):
            say("session", number, type(outcome).__name__, str(outcome), type(moved).__name__)
            return number
        number += 1


def starve_shared(store, number):
    while True:
        try:
            store.commit(event_batch(number).actions, schema=1)
        except StateError as exc:
            say("shared", number, type(exc).__name__, str(exc))
            return number
        number += 1


def event_batch(number):
    event = {"kind": "append_custom_event", "event_id": str(number), "custom_type": "t", "payload": "x" * 3000}
    return Commit(extension="todo", schema=1, actions=actions(event))


def unprivileged(directory):
    """Try everything as somebody who may not write here."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    stores = SqliteStores(directory)
    commit_one = event_batch(0).actions
    for name, attempt in [
        ("open", lambda: stores.open_session("s")),
        ("new", lambda: stores.open_session("new")),
        ("shared", lambda: stores.open_extension("todo").commit(commit_one, schema=1)),
        ("elsewhere", lambda: SqliteStores(directory / "below").open_session("s")),
    ]:
        try:
            attempt()
        except StateError as exc:
            say(name, type(exc).__name__, exc.code, str(exc))
        else:
            say(name, "done")


if __name__ == "__main__":
    word, place, *rest = sys.argv[1:]
    {each.__name__: each for each in (commit, count, hold, starve, unprivileged)}[word](Path(place), *rest)
