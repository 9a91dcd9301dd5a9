"""What has to hold inside the host of a chaos run: of what has ended, of what has come to rest, of what is closed."""

from __future__ import annotations

import gc
from types import FrameType
from typing import Any

import trio
from chaos.ledgers import Followed
from chaos.plan import LIMITS, STEP_S
from effects.ledger_invariants import check_invariants

from trio_exthost import Host, Session
from trio_exthost.runtime.calls import PendingCall
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.toolcall import ToolCall

OF_WORK = (PendingCall, ToolCall)
"""Objects of which there is none where nothing is being done. (Runs may be kept: by a follow-up that waits, for one.)"""


def open_in(instance: Instance) -> dict[str, int]:
    """What an instance still waits for, or works on."""
    found = {
        "replies": len(instance.replies),
        "calls of tools": len(instance.nested),
        "parents": len(instance.nested._parents),
        "questions": len(instance.questions),
        "invocations": len(instance.brokers._open),
        "commits": instance.commits,
    }
    if instance._transport is not None:
        found["frames"] = instance.outbox.waiting_frames
    return {what: count for what, count in found.items() if count}


def left_by(instance: Instance) -> dict[str, int]:
    """What is left of an instance that has ended: nothing, that is."""
    found = open_in(instance)
    session, transport = instance.session, instance._transport
    found["records"] = len(session.ledger.records_for_owner(instance.owner))
    found["panels"] = sum(each.instance is instance for each in session.panels._open.values())
    found["panels in waiting"] = len(session.panels._held.get(instance, {}))
    if transport is not None:
        ours = (transport.outbox.fd, transport.stdout.fd, transport.stderr.fd, transport.process._pidfd)
        found["descriptors"] = sum(fd >= 0 for fd in ours)
    return {what: count for what, count in found.items() if count}


def overdue(session: Session, seconds: float) -> set[str]:
    """Calls that are waited for so long after their deadline."""
    now = trio.current_time()
    everybody = (*session.loader.instances(), *session.loader._beside)
    return {
        f"{each.request.what} (id {each.id}) of {instance.name}"
        for instance in everybody
        for each in instance.replies.pending()
        if now > each.patience.deadline + seconds
    }


def orphans(session: Session) -> list[str]:
    """Questions that a person is asked for an invocation that has ended."""
    return [
        f"{instance.name}: {opened.question!r}"
        for instance in (*session.loader.instances(), *session.loader._beside)
        for opened in instance.questions._open.values()
        if opened.asker not in instance.questions.invocations.values()
    ]


def check_at_rest(session: Session) -> None:
    """Everybody has stopped asking: no run, no request, no reload, nothing that was registered for one of them."""
    assert session.runs == session.requests == {}
    assert session.reload_pending == ()
    assert session.asked == set()
    assert len(session.observing.streams) == 0
    assert session.persistence.storing._scopes == set()
    if session.persistence._committer is not None:
        assert session.persistence._committer._waiting == []
    check_invariants(session.ledger)
    records = session.ledger._index.records.values()
    assert [each for each in records if each.binding.realm is not None] == []
    living = {each.owner for each in (*session.loader.instances(), *session.loader._beside)}
    assert [each for each in records if each.owner not in living] == []


def check_bounds(host: Host) -> None:
    """What a host remembers does not grow with what happens."""
    assert len(host.diagnostics) <= LIMITS.diagnostics
    assert len(host.decisions) <= LIMITS.decisions


async def check_objects(sessions: list[Session]) -> list[str]:
    """Objects that stay in memory at rest, and nobody can reach by a name: of calls none, of instances the last of each name.

    One that has ended just now is held by those who wait for it until they have had their turn.
    """
    until = trio.current_time() + STEP_S
    while (left := _unknown(sessions)) and trio.current_time() < until:
        del left
        await trio.sleep(0.2)
    del left[5:]
    return [f"{each!r} is kept in memory by {sorted(_holders(each, left))}" for each in left]


def _unknown(sessions: list[Session]) -> list[Any]:
    gc.collect()
    known: set[Any] = set()
    for session in sessions:
        loader = session.loader
        known.update(loader.instances(), loader._gone.values(), loader._beside)
    left = [each for each in gc.get_objects() if type(each) in OF_WORK or type(each) is Instance]
    return [each for each in left if each not in known]


def _holders(thing: object, besides: object) -> set[str]:
    """What refers to it, in words, for whoever has to find out."""
    found = set()
    for holder in gc.get_referrers(thing):
        if isinstance(holder, FrameType):
            if holder.f_code.co_filename != __file__:
                found.add(f"{holder.f_code.co_qualname}, line {holder.f_lineno}")
        elif holder is not besides:
            about = f" of {list(holder)[:3]}" if isinstance(holder, dict | tuple) else ""
            found.add(f"a {type(holder).__name__}{about}"[:300])
    return found


def check_closed(host: Host) -> None:
    """All sessions have ended: the host's own tables are empty, and none of its tasks is left but the shared ones."""
    assert host.sessions == {}
    assert host.pump.watched == 0
    assert host.flusher.spread == []
    assert [task.name for task in host.nursery.child_tasks] == []


def check_ended(session: Session, followed: Followed) -> None:
    """Of a session that has ended."""
    assert len(session.panels) == 0
    assert session.panels._held == {}
    assert session.loader.instances() == ()
    assert session.loader._beside == set()
    assert session.ledger._index.records == {}
    assert followed.difference(session) == ""
    check_invariants(session.ledger)
