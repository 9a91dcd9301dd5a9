"""A program that commits is killed at random moments: what it said is stored is there, and nothing is half there.

`EXTHOST_CRASHES` says how often (20 by default, half for each kind of file); `EXTHOST_SEED` repeats a run.
"""

import os
import random

import pytest
from running import program

from trio_exthost.state import SessionState
from trio_exthost.state.sqlite import SqliteStores

CRASHES = int(os.environ.get("EXTHOST_CRASHES", "20")) // 2
SEED = int(os.environ.get("EXTHOST_SEED", "1"))


def check(projection, least):
    """Batches 1 to n are there, wholly, and n is at least what was acknowledged."""
    number = projection.get("second", 0)
    assert number >= least
    assert projection.get("first", 0) == number
    assert list(projection.events) == [f"event {each}" for each in range(1, number + 1)]
    assert projection.revision == number
    return number


@pytest.mark.parametrize("space", ["session", "extension"])
def test_what_was_acknowledged_is_there_after_kill_9_and_nothing_is_half_there(space, tmp_path):
    rng = random.Random(SEED)
    stores = SqliteStores(tmp_path)
    stored = 0
    for crash in range(CRASHES):
        with program("committing.py", tmp_path, space) as process:
            acknowledged = [process.stdout.readline() for _ in range(rng.randrange(1, 25))]
            for _ in range(rng.randrange(30_000)):  # a moment somewhere in its next batches
                pass
            process.kill()
            acknowledged += process.stdout.readlines()
        least = max(int(line) for line in acknowledged if line.endswith("\n"))
        if space == "extension":
            stored = check(stores.open_extension("one").read(), least)
            continue
        state = SessionState(stores.open_session("session"))
        first, second = (check(state.projection(name), least) for name in ("one", "two"))
        assert first == second, f"half a group, in crash {crash}"
        stored = first
        assert len(state.tree.positions) == 1 + stored // 5
        state.close()
    assert stored > CRASHES
