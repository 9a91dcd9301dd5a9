"""Ten extensions, most of which do everything wrong, and an agent with two sessions that does everything at once."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest
import trio
from chaos.heard import check_heard
from chaos.invariants import check_logs, check_never_begun, check_state, lines, nothing_left
from chaos.plan import SESSIONS, how_to_run_again, make_plan, seconds_to_run, seeds_to_run
from chaos.run import Chaos

GROWTH_BYTES = 32 * 2**20
"""What may be added after the first third: bounded logs fill up, and memory is not always given back at once."""


@pytest.mark.skipif(sys.platform != "linux", reason="processes and memory are read from /proc")
@pytest.mark.parametrize("seed", seeds_to_run())
def test_whatever_they_do_every_call_ends_once_and_nothing_is_left(tmp_path: Path, seed: int) -> None:
    plan = make_plan(seed, seconds_to_run())
    faults: list[str] = []
    token = uuid.uuid4().hex
    try:
        with nothing_left(tmp_path, token, faults):
            faults += play(tmp_path, plan, token)
    except BaseException as exc:
        exc.add_note(f"{how_to_run_again(plan)}\n{faults}")
        raise
    assert not faults, "\n".join([how_to_run_again(plan), *faults])


def play(place: Path, plan, token: str) -> list[str]:
    """Run it; what did not hold. A function of its own, so that nothing of the run is alive when it has returned."""
    chaos = Chaos(place, plan, token)
    faults = chaos.watch.faults
    try:
        trio.run(chaos.run)
    except BaseException as exc:
        exc.add_note("\n".join([*faults, *chaos.tally.journal]))
        raise
    faults += [str(each) for each in lines(place / "faults")]
    faults += check_state(place, chaos.states, chaos.stored)
    faults += check_logs(place)
    faults += check_never_begun(place, chaos.watch.never_begun)
    for session_id in SESSIONS:
        told = chaos.watch.told[session_id]
        if wrong := check_heard(place / f"heard-{session_id}", told, is_whole=not plan.is_abrupt):
            faults.append(f"the witness of {session_id}: {wrong}")
    if chaos.memory[1] - chaos.memory[0] > GROWTH_BYTES:
        faults.append(f"memory grew by {(chaos.memory[1] - chaos.memory[0]) / 2**20:.0f} MiB")
    print(summary(chaos))
    return faults


def summary(chaos: Chaos) -> str:
    """What went on, for whoever runs it by hand (`pytest -s`)."""
    tally, watch = chaos.tally, chaos.watch
    ways: dict[str, int] = {}
    for (_, how), count in sorted(tally.ended.items()):
        ways[how] = ways.get(how, 0) + count
    about = {
        "calls": sum(tally.begun.values()),
        "ways": ways,
        "outcomes": dict(watch.outcomes),
        "ticks": dict(watch.ticks),
        "states": dict(watch.states),
        "frames": sum(watch.frames.values()),
        "dropped": dict(watch.drops),
        "stored": {name: len(each) for name, each in chaos.stored.items()},
        "memory": [each >> 20 for each in chaos.memory],
        "never begun": len(watch.never_begun),
        "lag_s": round(tally.lag_s, 2),
    }
    return f"seed {chaos.plan.seed}: {about}"
