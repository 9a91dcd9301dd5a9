"""What is looked at while a chaos run goes on: each verdict, each event's number, each instance, how each call ended."""

from __future__ import annotations

import gc
import json
import time
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import trio
from chaos.plan import GUESTS, SESSIONS, STEP_S, WARDEN, WITNESS

from trio_exthost import Host, HostError, HostInstrument, Outcome, StepKind, Verdict
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.lifecycle import State

HEARD = ("tick", "tool_call", "tool_result")
"""What the witness subscribes to."""
ANSWERS = (StepKind.ALLOWED, StepKind.REWROTE, StepKind.ASKS, StepKind.BLOCKED)

OVER = (State.FAILED, State.STOPPED, State.WAITING, State.GAVE_UP)
"""States of what has ended; it may come again as another."""


class Watch(HostInstrument):
    """Sees everything; what must not be is kept in `faults`."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.host: Host
        self.told: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        """Numbers of the events that the witness of a session is told, in order."""
        self.ticks: Counter[str] = Counter()
        self.results: dict[tuple[str, str], int] = {}
        """Tool calls that have been proposed, and have no result yet."""
        self.living: set[Instance] = set()
        self.states: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.is_leaving = False
        self.kept = 0
        """Instances in memory when all had come to rest."""
        self._last: Counter[str] = Counter()
        self._asked: dict[str, tuple[str, str]] = {}
        self._blocked: set[tuple[str, str]] = set()
        self._ended_at: dict[Instance, float] = {}

    def fault(self, what: str) -> None:
        """Keep it: the run goes on, and fails at its end."""
        if len(self.faults) < 50:
            self.faults.append(what)

    # --- HostInstrument ---

    def frame_received(self, session_id: str, extension: str, frame: Any) -> None:
        self.frames[type(frame).__name__] += 1
        about = self._asked.get(frame.id) if getattr(frame, "block", False) else None
        if about is not None and any(frame.id in each.replies for each in self.living if each.name == extension):
            self._blocked.add(about)

    def frame_queued(self, session_id: str, extension: str, data: bytes) -> None:
        """Remember which question is about which of the agent's own tool calls, for what comes back."""
        if data.startswith(b'{"type":"event_intercept"'):
            frame = json.loads(data)
            if frame.get("tool_id", "").startswith("call-"):
                self._asked[frame["id"]] = (session_id, frame["tool_id"])
                if len(self._asked) > 1000:
                    del self._asked[next(iter(self._asked))]

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
        about = (session_id, verdict.original.get("tool_id", ""))
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

    def look_at_instances(self, *, is_over: bool = False) -> None:
        """Of an instance that has ended nothing is left, once those who waited for it have had a turn."""
        now = trio.current_time()
        for instance in self.living:
            if is_over or instance.ended.is_set():
                self._ended_at.setdefault(instance, now)
        for instance in [each for each, since in self._ended_at.items() if is_over or now - since > STEP_S]:
            self.living.discard(instance)
            del self._ended_at[instance]
            left = open_in(instance)
            if not instance.ended.is_set() or instance.state not in OVER:
                self.fault(f"{instance.name} has not ended: {instance.state}")
            if left:
                self.fault(f"{instance.name} has ended, and left {left}")

    def instances_alive(self) -> int:
        """Objects, not processes: what ended long ago must not be kept, but for a moment here."""
        gc.collect()
        return sum(type(each) is Instance and each not in self._ended_at for each in gc.get_objects())

    @property
    def most_instances(self) -> int:
        """For each name in each session: one that runs, and the last that ended."""
        return 2 * len(SESSIONS) * (len(GUESTS) + 2)


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


class Tally:
    """Every call of the agent's, and how it ended."""

    def __init__(self, watch: Watch) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.open: dict[int, str] = {}
        self.journal: deque[str] = deque(maxlen=40)
        """The newest, for whoever has to find out."""
        self.lag_s = 0.0
        """How long the agent was held up so far, the machine's other work included."""
        self._watch = watch
        self._number = 0

    async def use(
        self, kind: str, limit_s: float, operation: Callable[[], Awaitable[Any]], give_up_after: float = float("inf")
    ) -> Any:
        """Make a call, and give it up after a while; what it gave, or None. It ends within its limit and a step."""
        self._number += 1
        number, begun, lag = self._number, trio.current_time(), self.lag_s
        self.begun[kind] += 1
        self.open[number] = kind
        how = "bug"
        try:
            with trio.move_on_after(give_up_after) as scope:
                value = await operation()
                how = "answer"
                return value
            assert scope.cancelled_caught
            how = "given up"
        except HostError as exc:
            how = exc.code
        except trio.Cancelled:
            how = "cancelled"
            raise
        finally:
            del self.open[number]
            self.ended[kind, how] += 1
            took = trio.current_time() - begun
            self.journal.append(f"{kind}: {how} after {took:.2f} s")
            if took > min(limit_s, give_up_after) + STEP_S + self.lag_s - lag:
                self._watch.fault(
                    f"{kind} took {took:.2f} s, its limit is {limit_s:g} s, given up at {give_up_after:g} s"
                )
        return None

    async def beat(self) -> None:
        """How long the agent is held up. By other processes is no fault of the host's; by its own work is."""
        while True:
            begun, worked = time.monotonic(), time.thread_time()
            await trio.sleep(0.02)
            late, busy = time.monotonic() - begun - 0.02, time.thread_time() - worked
            if late > 0.1:
                self.lag_s += late
            if busy > 1.5:
                self._watch.fault(f"the agent had no turn for {late:.2f} s, {busy:.2f} s of them the host's own work")

    def check(self) -> None:
        """Each has ended, in exactly one way, and none by a bug."""
        ways: Counter[str] = Counter()
        for (kind, how), count in self.ended.items():
            ways[kind] += count
            if how == "bug":
                self._watch.fault(f"{kind} raised what is no error of the host's")
        if self.open or ways != self.begun:
            self._watch.fault(f"begun {dict(self.begun)}, ended {dict(ways)}, open {list(self.open.values())}")


def check_heard(path: Path, told: array[int], *, is_whole: bool) -> str:
    """What is wrong with what the witness has written down; nothing if it has heard all, in order, gaps declared."""
    place, gaps, ticks = 0, [], -1
    for line in path.read_text().splitlines():
        what, *about = json.loads(line)
        if what == "gap":
            gaps.append(about)
            continue
        number = about[0]
        begun = place
        while place < len(told) and told[place] < number:
            place += 1
        if place == len(told) or told[place] != number:
            return f"it heard {what} {number}, which was not told then"
        missing = told[begun:place]
        if len(missing) != sum(count for count, _, _ in gaps):
            return f"before {number} it missed {len(missing)}, and was told of {gaps}"
        if any(not any(first <= each <= last for _, first, last in gaps) for each in missing):
            return f"before {number} it missed {list(missing)}, and was told of {gaps}"
        gaps = []
        place += 1
        if what == "tick":
            if about[1] <= ticks:
                return f"tick {about[1]} came after {ticks}"
            ticks = about[1]
    if is_whole and place != len(told) and not gaps:
        return f"it heard nothing of the last {len(told) - place} of {len(told)}"
    return ""
