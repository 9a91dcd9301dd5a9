"""What has to hold after a chaos run: in the host when it has come to rest, on the disk, and in the operating system."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from chaos.plan import SESSIONS, STEP_S
from effects.ledger_invariants import check_invariants
from runtime.real.programs import descriptors

from trio_exthost import Host, Session
from trio_exthost.runtime.calls import PendingCall
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.outbox import Outbox
from trio_exthost.runtime.run import Run
from trio_exthost.runtime.toolcall import ToolCall
from trio_exthost.state import Checkout, Projection, SessionState, decode_batch
from trio_exthost.state.entries import EventEntry
from trio_exthost.state.sqlite import SqliteStores

MARKER = "EXTHOST_CHAOS_RUN"
"""Names a run in the environment of each of its processes."""
OURS = (Host, Session, Instance, Outbox, PendingCall, Run, ToolCall)


def check_at_rest(session: Session) -> None:
    """Everybody has stopped asking: no run, no request, no reload, nothing that was registered for one of them."""
    assert session.runs == session.requests == {}
    assert session.reload_pending == ()
    assert session.asked == set()
    assert len(session.observing.streams) == 0
    check_invariants(session.ledger)
    bound = [each for each in session.ledger._index.records.values() if each.binding.realm is not None]
    assert bound == []


def check_closed(host: Host) -> None:
    """All sessions have ended: the host's own tables are empty, and none of its tasks is left but the shared ones."""
    assert host.sessions == {}
    assert host.pump.watched == 0
    assert host.flusher.spread == []
    assert [task.name for task in host.nursery.child_tasks] == []


def check_ended(session: Session) -> None:
    """Of a session that has ended."""
    assert len(session.panels) == 0
    assert session.loader.instances() == ()
    assert session.loader._beside == set()
    assert session.ledger._index.records == {}
    check_invariants(session.ledger)


# --- what is stored ---


def lines(path: Path) -> list[dict[str, Any]]:
    """What programs have noted."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def check_state(place: Path, seen: dict[str, SessionState], told: dict[str, set[str]]) -> list[str]:
    """What was acknowledged is on the disk, nothing else than was sent is, and nothing is half there.

    Args:
      place: Where the run was.
      seen: The state of each session as the host had it when it left.
      told: What the agent was told is stored in each session.
    """
    stores = SqliteStores(place / "data" / "state")
    attempts = lines(place / "attempts")
    faults = []
    for session_id in SESSIONS:
        acknowledged = told[session_id] | {
            each["id"] for each in lines(place / "acks") if (each["session"], each["space"]) == (session_id, "session")
        }
        sent = {each["id"] for each in attempts if (each["session"], each["space"]) == (session_id, "session")}
        state = SessionState(stores.open_session(session_id))
        try:
            stored = {
                entry.event_id
                for batch in state._store.load_all()
                for entry in decode_batch(batch.body).entries
                if isinstance(entry, EventEntry)
            }
            if lost := acknowledged - stored:
                faults.append(f"acknowledged and not stored in {session_id}: {sorted(lost)[:5]}")
            if never := stored - sent:
                faults.append(f"stored in {session_id}, and never sent or refused: {sorted(never)[:5]}")
            if session_id in seen and _shown(seen[session_id]) != _shown(state):
                faults.append(f"{session_id}: the state on the disk is another than the host had")
            for name in [*state.tree.positions][-100::5]:
                state.publish(state.write([Checkout(name)]))
                faults += [f"{session_id}, {name}: {each}" for each in map(half, state.projections.values()) if each]
            faults += [f"{session_id}: {each}" for each in map(half, state.projections.values()) if each]
        finally:
            state.close()
    for name in {each["name"] for each in attempts if each["space"] == "extension"}:
        about = [each for each in attempts if (each["name"], each["space"]) == (name, "extension")]
        acks = {each["id"] for each in lines(place / "acks") if (each["name"], each["space"]) == (name, "extension")}
        projection = stores.open_extension(name).read()
        stored = set(projection.events)
        if not acks <= stored <= {each["id"] for each in about}:
            faults.append(f"shared by {name}: acknowledged {sorted(acks - stored)[:5]} is not there")
        if wrong := half(projection):
            faults.append(f"shared by {name}: {wrong}")
    return faults


def half(projection: Projection) -> str:
    """Each batch counts one up, adds an event, and sets a key to the event's id: whether that is so."""
    events = set(projection.events)
    if (projection.get("n") or 0) != len(events):
        return f"{projection.extension} has {len(events)} events and counted {projection.get('n')}"
    strange = [key for key in projection.values if key.startswith("of-") and projection.get(key) not in events]
    return f"{projection.extension} has values without their events: {strange}" if strange else ""


def _shown(state: SessionState) -> dict[str, Any]:
    found: dict[str, Any] = {"selected": state.tree.selected.name}
    for name, each in state.projections.items():
        found[name] = (dict(each.state()), list(each.events), each.revision, each.schema)
    return found


# --- the operating system ---


@attrs.frozen
class Machine:
    """What this process has."""

    descriptors: dict[int, tuple[int, int]]
    threads: set[str]
    objects: dict[str, int]

    @classmethod
    def now(cls) -> Machine:
        """As it is; garbage is collected first."""
        gc.collect()
        kinds = dict.fromkeys(OURS, 0)
        for each in gc.get_objects():
            if type(each) in kinds:
                kinds[type(each)] += 1
        # trio keeps idle workers for a while, and gives them this name; one at work has another.
        threads = {each.name for each in threading.enumerate() if not re.fullmatch(r"Trio thread \d+", each.name)}
        return cls(descriptors(), threads, {kind.__name__: count for kind, count in kinds.items()})


def anonymous_bytes() -> int:
    """Memory of this process that no file backs."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def processes(token: str) -> dict[int, str]:
    """Those of a run that are alive, whoever their parent is."""
    wanted, found = f"{MARKER}={token}\0".encode(), {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if wanted in (path / "environ").read_bytes() + b"\0":
                    stat = (path / "stat").read_text()
                    if stat.rpartition(")")[2].split()[0] not in "ZX":
                        found[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue  # it has gone meanwhile
    return found


@contextmanager
def nothing_left(place: Path, token: str, faults: list[str]) -> Iterator[None]:
    """Processes, descriptors, threads, objects and temporary files are afterwards what they were before."""
    temporary = place / "temporary"
    temporary.mkdir()
    old, tempfile.tempdir = tempfile.tempdir, str(temporary)
    before = Machine.now()
    try:
        yield
    finally:
        tempfile.tempdir = old
        escaped = {each["pid"] for each in lines(place / "escaped")}
        until = time.monotonic() + STEP_S
        while left := {pid: what for pid, what in processes(token).items() if pid not in escaped}:
            if time.monotonic() > until:
                faults.append(f"processes live on: {left}")
                break
            time.sleep(0.02)
        for pid in processes(token):  # who has left its group is promised to nobody; and ours, where we failed
            os.kill(pid, signal.SIGKILL)
    after = Machine.now()
    if after != before:
        faults.append(f"left behind: before {before}, after {after}")
    if list(temporary.iterdir()):
        faults.append(f"temporary files: {list(temporary.iterdir())}")
