"""What is looked at while a chaos run goes on: each verdict, each event's number, each instance, how each call ended."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trio
from chaos.answers import SECOND
from chaos.invariants import is_stored_now
from chaos.ledgers import Followed
from chaos.plan import DEADLINES, STEP_S, WARDEN, WITNESS, Plan
from chaos.rest import left_by, orphans

from trio_exthost import Host, HostInstrument, Outcome, Session, StepKind, Verdict
from trio_exthost.effects import Change
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.lifecycle import State

HEARD = ("tick", "tool_call", "tool_result")
"""What the witness subscribes to."""
ANSWERS = (StepKind.ALLOWED, StepKind.REWROTE, StepKind.ASKS, StepKind.BLOCKED)

OVER = (State.FAILED, State.STOPPED, State.WAITING, State.GAVE_UP)
"""States of what has ended; it may come again as another."""


class Watch(HostInstrument):
    """Sees everything; what must not be is kept in `faults`."""

    def __init__(self, place: Path, plan: Plan) -> None:
        self.faults: list[str] = []
        self.host: Host
        self.told: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        """Numbers of the events that the witness of a session is told, in order."""
        self.ticks: Counter[str] = Counter()
        self.results: dict[tuple[str, str], int] = {}
        """Tool calls that have been proposed, and have no result yet."""
        self.never_begun: dict[int, str] = {}
        """Numbers of calls of tools that cannot have begun, and why, as the agent was told."""
        self.screens: defaultdict[str, set[str]] = defaultdict(set)
        """Ids of the panels that the person at a session sees."""
        self.followed: defaultdict[str, Followed] = defaultdict(Followed)
        """The ledger of each session."""
        self.living: set[Instance] = set()
        self.states: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.is_leaving = False
        self._place = place
        self._priorities = {guest.name: guest.priority for guest in plan.guests}
        self._acknowledged = 0
        self._last: Counter[str] = Counter()
        self._asked: dict[str, tuple[str, str]] = {}
        self._heard: set[tuple[str, str, str]] = set()
        self._blocked: set[tuple[str, str]] = set()
        self._ended_at: dict[Instance, float] = {}

    def fault(self, what: str) -> None:
        """Keep it: the run goes on, and fails at its end."""
        if len(self.faults) < 50:
            self.faults.append(what)

    # --- HostInstrument ---

    def frame_received(self, session_id: str, extension: str, frame: Any) -> None:
        self.frames[type(frame).__name__] += 1
        about = self._asked.get(frame.id) if frame.TYPE == "event_intercept_response" else None
        if about is not None and any(frame.id in each.replies for each in self.living if each.name == extension):
            self._heard.add((*about, extension))
            if frame.block:
                self._blocked.add(about)

    def frame_queued(self, session_id: str, extension: str, data: bytes) -> None:
        """Remember which question is about which of the agent's own tool calls, for what comes back."""
        if data.startswith(b'{"type":"event_intercept"'):
            frame = json.loads(data)
            if frame.get("tool_id", "").startswith("call-"):
                self._asked[frame["id"]] = (session_id, frame["tool_id"])
                if len(self._asked) > 1000:
                    del self._asked[next(iter(self._asked))]
        elif data.startswith(b'{"type":"state_result"'):
            frame = json.loads(data)
            space, _, key = frame["id"].partition("/")
            self._acknowledged += frame["ok"]
            # One in four: a look at the disk holds everybody up.
            if frame["ok"] and space == "session" and self._acknowledged % 4 == 0:
                self.check_stored(session_id, key)

    def effects_changed(self, session_id: str, changes: Sequence[Change]) -> None:
        if wrong := self.followed[session_id].take(changes):
            self.fault(f"{session_id}: {wrong}")

    def event_emitted(
        self, session_id: str, event: str, sequence: int, payload: Mapping[str, Any], receivers: tuple[str, ...]
    ) -> None:
        if sequence <= self._last[session_id] and event != "session_start":
            self.fault(f"{event} has number {sequence}, after {self._last[session_id]}")
        self._last[session_id] = max(sequence, self._last[session_id])
        if event in HEARD and WITNESS in receivers:
            self.told[session_id].append(sequence)
        if "context" not in payload and event in ("tool_call", "tool_result"):
            self._pair(event, session_id, payload["tool_id"])

    def _pair(self, event: str, session_id: str, tool_id: str) -> None:
        """Each proposal has one result."""
        key = (session_id, tool_id)
        self.results[key] = self.results.get(key, 0) + (1 if event == "tool_call" else -1)
        if self.results[key] not in (0, 1):
            self.fault(f"tool call {tool_id} has {self.results[key]} results too few")
        if not self.results[key]:
            del self.results[key]

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:
        self.check_verdict(verdict)
        if seconds > DEADLINES.chain_s + 1.0 + STEP_S:  # a person may be asked for a moment
            self.fault(f"a chain took {seconds:.2f} s: {verdict.explain()}")
        about = (session_id, verdict.original.get("tool_id", ""))
        heard = {each for each in self._heard if each[:2] == about}
        self._heard -= heard
        if about[1].startswith("call-") and verdict.outcome is not Outcome.BLOCK:
            for name in (WITNESS, WARDEN):
                if (*about, name) not in heard:
                    self.fault(f"allowed, and {name} has answered nothing: {verdict.explain()}")
        if about in self._blocked:
            self._blocked.discard(about)
            if verdict.outcome is not Outcome.BLOCK:
                self.fault(f"somebody has blocked {about}, and it is {verdict.outcome}: {verdict.explain()}")

    def call_ended(self, session_id: str, extension: str, kind: str, name: str, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1

    def dropped(self, session_id: str, extension: str, count: int, first_sequence: int, last_sequence: int) -> None:
        self.drops[extension] += count

    def state_changed(self, session_id: str, extension: str, old: str, new: str) -> None:
        self.states[str(new)] += 1
        if extension == WITNESS and not self.is_leaving and new not in ("handshaking", "registering", "ready"):
            self.fault(f"the witness of {session_id} went from {old} to {new}, and had done nothing wrong")
        session = self.host.sessions.get(session_id)
        if session is not None:
            self.living.update(session.loader.instances(), session.loader._beside)
        self.look_at_instances()

    # --- what has to hold ---

    def check_verdict(self, verdict: Verdict) -> None:
        """A block is never lost, and who is required is never passed over."""
        self._check_steps(verdict)
        blocks = [step for step in verdict.steps if step.kind is StepKind.BLOCKED]
        if blocks and verdict.outcome is not Outcome.BLOCK:
            self.fault(f"{blocks[-1].extension} blocked {verdict.event}, and it is {verdict.outcome}")
        if verdict.event != "tool_call" or verdict.outcome is Outcome.BLOCK:
            return
        for value in (verdict.original, verdict.value):
            if value["tool_args"].get("deny"):
                self.fault(f"allowed in spite of its guards: {verdict.explain()}")
        for name in (WITNESS, WARDEN):
            kinds = [step.kind for step in verdict.steps if step.extension == name]
            if not kinds or not all(kind in ANSWERS for kind in kinds):
                self.fault(f"allowed without {name}, which is required: {verdict.explain()}")

    def _check_steps(self, verdict: Verdict) -> None:
        """Who takes precedence is asked first, and what is no answer to this question does not count."""
        ranks = [self._priorities[step.extension] for step in verdict.steps if not step.is_again]
        # Elsewhere there are request policies as well, which have an order of their own.
        if verdict.event == "tool_call" and ranks != sorted(ranks, reverse=True):
            self.fault(f"asked out of order: {verdict.explain()}")
        for step in verdict.steps:
            if step.reason == SECOND:
                self.fault(f"{step.extension} answered twice, and the second counts: {verdict.explain()}")
            is_guard = step.extension in (WITNESS, WARDEN) and verdict.event == "tool_call"
            if is_guard and step.kind is StepKind.BLOCKED and not verdict.original["tool_args"].get("deny"):
                self.fault(f"{step.extension} said that about another call: {verdict.explain()}")

    def check_stored(self, session_id: str, event_id: str) -> None:
        """What is acknowledged is on the disk by then."""
        if not is_stored_now(self._place, session_id, event_id):
            self.fault(f"{event_id} is acknowledged in {session_id}, and not on the disk yet")

    def check_questions(self, session: Session) -> None:
        """A person is asked nothing in vain."""
        for question in orphans(session):
            self.fault(f"{session.id}: nobody waits for the answer to a question of {question}")

    def look_closely(self, session: Session) -> None:
        """The ledger and all that follows it say the same, and a person sees the panels that are open."""
        if wrong := self.followed[session.id].difference(session):
            self.fault(f"{session.id}: {wrong}")
        if self.screens[session.id] != set(session.panels._open):
            self.fault(f"{session.id} shows panels {self.screens[session.id]}, open are {set(session.panels._open)}")

    def look_at_instances(self, *, is_over: bool = False, patience_s: float = STEP_S) -> None:
        """Of an instance that has ended nothing is left, once those who waited for it have had a turn."""
        now = trio.current_time()
        for instance in self.living:
            if is_over or instance.ended.is_set():
                self._ended_at.setdefault(instance, now)
        for instance in [each for each, since in self._ended_at.items() if is_over or now - since >= patience_s]:
            self.living.discard(instance)
            del self._ended_at[instance]
            left = left_by(instance)
            if not instance.ended.is_set() or instance.state not in OVER:
                self.fault(f"{instance.name} has not ended: {instance.state}")
            if left:
                self.fault(f"{instance.name} has ended, and left {left}")
