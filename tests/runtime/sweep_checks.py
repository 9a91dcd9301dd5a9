"""What has to hold after each cut of the cancellation sweep: tables are empty, frames are whole, everybody has left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio
from runtime.fakes import Guest
from runtime.sweep_actors import Everybody
from runtime.sweeping import HANG_S

from trio_exthost import Host, Session
from trio_exthost.runtime.instance import Instance
from trio_exthost.wire.dialect import EFFECTS


def descriptors() -> int:
    """How many files this process has open; 0 where the system does not say."""
    place = Path("/proc/self/fd")
    return sum(1 for _ in place.iterdir()) if place.is_dir() else 0


def everybody_has_left(around: Everybody) -> None:
    """Each was asked to go, went, and was reaped; and each line it was sent is a whole frame that is legal."""
    for guest in around.every:
        assert guest.reaped
        assert not guest.signals, f"{guest.name} had to be made to go: {guest.signals}"
        check_frames(guest)


def check_frames(guest: Guest) -> None:
    """What an extension has received, as it came (each line was JSON, else its program had failed)."""
    assert guest._rest == b"", f"a frame for {guest.name} is cut: {guest._rest[:80]!r}"
    known: set[str] = set()
    begun: Counter[str] = Counter()
    sequences = []
    for place, frame in enumerate(guest.received):
        word = frame["type"]
        assert word in EFFECTS.outbound
        if word == "shutdown":
            assert place == len(guest.received) - 1
        if word in ("invoke", "tool_call", "command_invoked", "event_intercept"):
            assert frame["id"] not in known
            known.add(frame["id"])
        if word in ("cancel", "tool_cancel"):
            assert frame["id"] in known, "a call is cancelled that was never sent"
        if word == "event":
            sequences.append(frame["sequence"])
            if frame["event"] in ("tool_call", "tool_result") and "tool_id" in frame:
                begun[frame["tool_id"]] += 1 if frame["event"] == "tool_call" else -1
    assert sequences == sorted(set(sequences))
    if guest.received and guest.received[-1]["type"] == "shutdown":
        assert not +begun, f"calls without a result: {begun}"
        assert not -begun, f"calls with more than one result: {begun}"


def check_tables(session: Session) -> None:
    """Nothing of any call is left in a table."""
    loader = session.loader
    for instance in loader.instances():
        if not instance.is_ending:  # what it is told at its end is not the caller's
            check_instance(instance)
    assert not session.asked
    assert len(session.observing.streams) == 0
    assert not session.requests
    assert not session.host.flusher.spread
    committer = session.persistence._committer
    assert committer is None or not committer._waiting
    assert not session.persistence._opening.locked()


def check_instance(instance: Instance) -> None:
    """Nothing of any call of an instance is left."""
    assert len(instance.replies) == 0
    assert instance.replies.strays == 0, "an answer came to a call that it did not know as given up"
    assert len(instance.questions) == 0
    assert not instance.questions.invocations
    assert not instance.brokers._open
    assert not instance.nested._parents
    assert len(instance.nested) == 0
    assert instance.registering._holds == 0, instance.registering._holds
    assert instance.commits == 0
    last = instance.brokers.turns._last.values()
    assert all(each.is_set() for each in last), "the turn of a batch has not ended: the next one waits for ever"
    assert instance.outbox.waiting_frames == 0


def check_tasks(host: Host, session: Session) -> None:
    """Nobody works for a call that is over, and nothing is due: no task, no deadline."""
    names = [task.name.split()[0] for task in host.nursery.child_tasks]
    assert set(names) <= {"services", "extension", "committer"}, names
    for instance in session.loader.instances():
        tasks = [task.name for task in instance.nursery.child_tasks]
        assert sorted(tasks) == sorted([f"exit of {instance.name}", f"writer of {instance.name}"]), tasks
    until = trio.current_time() + trio.lowlevel.current_statistics().seconds_to_next_deadline
    assert until == pytest.approx(HANG_S), f"something is due at {until}"
