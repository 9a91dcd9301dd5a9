"""What has to hold after a chaos run: on the disk, and in the operating system."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
from chaos.plan import LIMITS, SESSIONS, STEP_S
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


def is_stored_now(place: Path, session_id: str, event_id: str) -> bool:
    """Whether an event is among the newest on the disk of a session that is open."""
    path = place / "data" / "state" / "sessions" / f"{session_id}.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        query = "SELECT count(*) FROM (SELECT body FROM batches ORDER BY row DESC LIMIT 300) WHERE instr(body, ?)"
        return bool(connection.execute(query, (event_id.encode(),)).fetchone()[0])


def check_logs(place: Path) -> list[str]:
    """Logs are files of bounded size, and so many of each."""
    paths = [*(place / "data" / "logs").iterdir(), *place.glob("decisions.jsonl*")]
    kept = Counter(path.name.partition(".")[0] for path in paths)
    faults = [f"{path.name} has {size} bytes" for path in paths if (size := path.stat().st_size) > LIMITS.log_bytes]
    return faults + [f"{count} logs of {name}" for name, count in kept.items() if count > LIMITS.log_files]


def check_never_begun(place: Path, never: Mapping[int, str]) -> list[str]:
    """Calls whose caller was told that they cannot have begun, and that an extension was given all the same."""
    begun = {each["n"]: each["name"] for each in lines(place / "begun")}
    return [f"call {n} was begun by {begun[n]}; its caller was told: {why}" for n, why in never.items() if n in begun]


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
