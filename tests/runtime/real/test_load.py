"""One of eight is stopped while much is told: the seven others get all of it, and what the host does stays within bounds."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from runtime.real.programs import SLACK_S, Place, codes_of, row_of, run_alone

from trio_exthost import Deadlines, Outcome, Session, StepKind, open_host

EVENTS, TEXT_BYTES, WINDOW = 20_000, 1024, 100
NAMES = [f"guest-{number}" for number in range(8)]
STOPPED = NAMES[3]
DEADLINES = Deadlines(ready_cap_s=30, intercept_s=0.5, stall_s=60, stop_grace_s=0.2, term_grace_s=0.2)
WIDE_S = 5
"""What a busy machine may add to a deadline."""
FRAME_BYTES = TEXT_BYTES + 256

COUNTS = """
name = os.path.basename(os.getcwd())
count, is_complete = 0, True
greet(events=["tick"], intercept=["tool_call"], commands=[name])
for frame in frames():
    if frame["type"] == "event":
        is_complete = is_complete and frame["n"] == count and len(frame["text"]) == 1024
        count += 1
    elif frame["type"] == "event_intercept":
        send(type="event_intercept_response", id=frame["id"])
    elif frame["type"] == "command_invoked":
        send(type="command_response", id=frame["id"], action="display", display=json.dumps([count, is_complete]))
"""


def anonymous_bytes() -> int:
    """Memory of this process that no file backs, now."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


async def tell(session: Session, first: int, last: int, names: list[str]) -> int:
    """Emit in windows, each read by all of these before the next; the most memory seen in between."""
    most = 0
    for begun in range(first, last, WINDOW):
        for n in range(begun, min(begun + WINDOW, last)):
            session.emit("tick", {"n": n, "text": "x" * TEXT_BYTES})
        for name in names:
            await session.run_command(name)
        most = max(most, anonymous_bytes())
    return most


async def load(place: Place) -> dict[str, Any]:
    others = [name for name in NAMES if name != STOPPED]
    settings = place.config(deadlines=DEADLINES)
    async with open_host(settings) as host:
        async with host.open_session("s", cwd=place.path) as session:
            await session.load_all()
            await tell(session, 0, 2000, NAMES)  # what is made once has been made by then
            before = anonymous_bytes()
            os.kill(row_of(session, STOPPED).pid, signal.SIGSTOP)
            most = await tell(session, 2000, 2000 + EVENTS, others)
            asked = time.monotonic()
            verdict = await session.intercept("tool_call", {"tool_id": "t", "tool_name": "bash", "tool_args": {}})
            took_s = time.monotonic() - asked
            seen = {name: json.loads((await session.run_command(name)).text) for name in others}
            codes = {name: codes_of(host, name) for name in NAMES}
            left = time.monotonic()
    return {
        "seen": seen,
        "codes": codes,
        "bytes": most - before,
        "bound_bytes": min(settings.limits.outbox_frames * FRAME_BYTES, settings.limits.outbox_bytes),
        "steps": {step.extension: step.kind.value for step in verdict.steps},
        "outcome": verdict.outcome.value,
        "took_s": took_s,
        "leaving_s": time.monotonic() - left,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process now is read from /proc")
def test_a_stopped_one_of_eight_costs_the_others_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    for name in NAMES:
        place.add(name, COUNTS)
    found = run_alone(load, place)
    others = [name for name in NAMES if name != STOPPED]
    assert found["seen"] == {name: [2000 + EVENTS, True] for name in others}
    assert [found["codes"][name] for name in others] == [[]] * 7
    assert "events_dropped" in found["codes"][STOPPED]
    assert found["bytes"] < found["bound_bytes"] + 2 * 2**20
    # Its outbox is full of events, which are dropped for others but not for a question: it need not even be waited for.
    stopped = found["steps"].pop(STOPPED)
    assert stopped in {StepKind.TIMED_OUT.value, StepKind.OVERLOADED.value}
    assert found["steps"] == dict.fromkeys(others, StepKind.ALLOWED.value)
    assert found["outcome"] == Outcome.ALLOW.value
    assert found["took_s"] < DEADLINES.intercept_s + WIDE_S
    assert found["leaving_s"] < DEADLINES.stop_total_s + SLACK_S
    assert place.alive() == []
