"""The extension of a chaos run: one program, standard library only, whose plan says what it is up to; see `mischief.py`.

It runs in a directory of its own with `plan.json`; beside it lie what all of them write down for the test:

- `faults`: a frame that was cut, or events out of order: the host's fault, whatever the program did before.
- `attempts`, `acks`: what was sent to be stored, and what the host said is stored.
- `escaped`: processes that left their group, which no host promises to end.
- `hush`: once it is there, everybody is well-behaved.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import select
import sys
import time
from pathlib import Path

from mischief import Mischief  # beside it in the extension's directory

ANSWERED = {
    "call_tool": "tool_result",
    "ask_user": "ask_user_result",
    "broker_call": "broker_result",
    "state_commit": "state_result",
}
"""What the host answers, and with what; once each."""


class Guest:
    """One incarnation: reads what comes, answers, and gets up to mischief in between."""

    def __init__(self, plan):
        self.name = plan["name"]
        self.families = plan["families"]
        self.effects = plan["effects"]
        self.is_good = self.name == "witness"
        self.is_guard = self.name in ("witness", "warden")
        self.incarnation = self._count_starts()
        self.dice = random.Random(f"{plan['seed']}/{self.name}/{self.incarnation}")
        self.session = ""
        self.due = []  # (when, number, function)
        self.numbers = itertools.count(1)
        self.open = {}  # invocations and calls that await our answer
        self.recent = ["0"]  # ids of requests, newest last
        self.runs = ["nowhere"]
        self.registered = []
        self.waiting = {}  # ids of commits, what they store
        self.last = {}  # the newest sequence of each event that is told in order
        self.newest = 0  # id of the newest request
        self.asked = set()  # what we have asked the host for, and it has not answered
        self.report = None
        self.mischief = Mischief(self)

    def _count_starts(self):
        number = 0
        while True:
            try:
                os.close(os.open(f"../starts-{self.name}-{number}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                number += 1
            else:
                return number

    # --- speaking ---

    def put(self, data):
        data = memoryview(data)
        while data:
            data = data[os.write(1, data) :]

    def send(self, **frame):
        if frame["type"] in ANSWERED:
            self.asked.add((ANSWERED[frame["type"]], frame["id"]))
        self.put(json.dumps(frame).encode() + b"\n")

    def note(self, file, **about):
        """Tell the test, in one write."""
        fd = os.open(f"../{file}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(fd, json.dumps({"name": self.name, "session": self.session, **about}).encode() + b"\n")
        os.close(fd)

    def later(self, seconds, function):
        heapq.heappush(self.due, (time.monotonic() + seconds, next(self.numbers), function))

    @property
    def is_hushed(self):
        return Path("../hush").exists()

    # --- beginning ---

    def greet(self):
        words = ["gaps", "tool_cancel", "call_tool"]
        if not self.is_good:
            words = self.dice.sample(words, self.dice.randint(0, 3))
        if self.effects:
            words.append("effects")
        self.send(type="hello", name=self.name, capabilities=words)
        self.send(type="register_tool", name=f"t-{self.name}", description="", schema={"type": "object"})
        self.send(type="register_command", name=f"c-{self.name}", description="")
        if self.is_guard:
            events = ["tick", "tool_call", "tool_result"] if self.is_good else []
            self.send(type="subscribe", events=events, intercept=["tool_call"])
        else:
            self.send(type="register_tool", name="shared", description="", schema={"type": "object"})
            points = ["tool_call", "turn_start", "assistant_message", "before_agent_start"]
            self.send(type="subscribe", events=["tick", "turn_end"], intercept=self.dice.sample(points, 2))
        if self.effects and not self.is_guard:
            self.mischief.register_all()

    # --- living ---

    def live(self):
        rest = b""
        is_read = True
        self.later(self.dice.uniform(0.05, 0.8), self._doze if self.is_good else self._be_up_to_something)
        while True:
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                heapq.heappop(self.due)[2]()
            wait = max(0.0, self.due[0][0] - time.monotonic()) if self.due else None
            if is_read and 0 not in self.mischief.closed:
                ready, _, _ = select.select([0], [], [], wait)
                if not ready:
                    continue
                data = os.read(0, 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if not self._take(line):
                        return
            else:
                time.sleep(0.05 if wait is None else min(wait, 0.05))

    def _be_up_to_something(self):
        if not self.is_hushed:
            self.mischief.something()
        self.later(self.dice.uniform(0.05, 0.6), self._be_up_to_something)

    def _doze(self):
        """Also who does everything right is busy at times; what does not fit into its pipe and its outbox then is dropped."""
        if not self.is_hushed:
            time.sleep(self.dice.uniform(0.1, 0.4))
        self.later(self.dice.uniform(0.5, 2), self._doze)

    def _take(self, line):
        """Handle a frame; False at the end."""
        try:
            frame = json.loads(line)
        except ValueError:
            self.note("faults", what="a frame was cut", line=line[:300].decode(errors="replace"))
            return False
        kind = frame["type"]
        if kind == "shutdown":
            return bool(self.mischief.ignores_shutdown())
        if kind == "hello_ack":
            self.session = frame.get("dialect", {}).get("session_id", "")
        elif kind in ("event", "events_dropped"):
            self._hear(frame)
        elif kind in ("tool_call", "command_invoked", "event_intercept", "invoke"):
            self._check_order(frame)
            self.recent = [*self.recent[-20:], frame["id"]]
            self.mischief.answer(frame)
        elif kind == "cancel" and self.dice.random() < 0.5:
            self.send(type="invoke_result", id=frame["id"], error={"code": "given_up", "message": "as you like"})
        elif kind in ANSWERED.values():
            self._check_answer(frame)
            if kind == "state_result" and frame["ok"] and frame["id"] in self.waiting:
                self.note("acks", **self.waiting.pop(frame["id"]))
        return True

    def _check_order(self, frame):
        """Requests come in the order in which they were made, each once."""
        if int(frame["id"]) <= self.newest:
            self.note("faults", what="requests out of order", frame=frame, after=self.newest)
        self.newest = int(frame["id"])

    def _check_answer(self, frame):
        """Whatever was asked for is answered once."""
        about = (frame["type"], frame["id"])
        if about not in self.asked:
            self.note("faults", what="an answer to nothing, or a second one", frame=frame)
        self.asked.discard(about)

    def _hear(self, frame):
        """Events of one kind come in the order in which they were emitted."""
        if self.is_good:
            self._write_down(frame)
        if frame["type"] == "event" and frame["event"] == "tick":
            if frame["sequence"] <= self.last.get("tick", 0):
                self.note("faults", what="events out of order", sequence=frame["sequence"], after=self.last["tick"])
            self.last["tick"] = frame["sequence"]

    def _write_down(self, frame):
        if self.report is None:
            self.report = os.open(f"../heard-{self.session}", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        if frame["type"] == "events_dropped":
            line = ["gap", frame["count"], frame["first_sequence"], frame["last_sequence"]]
        elif frame["event"] == "tick":
            line = ["tick", frame["sequence"], frame["n"]]
        else:
            line = [frame["event"], frame["sequence"], frame["tool_id"]]
        os.write(self.report, json.dumps(line).encode() + b"\n")


def main():
    guest = Guest(json.loads(Path("plan.json").read_text()))
    if not guest.is_guard:
        guest.mischief.at_the_start()
    guest.greet()
    if guest.is_guard or guest.mischief.gets_ready():
        guest.send(type="ready")
    guest.live()


if __name__ == "__main__":
    try:
        main()
    except OSError:
        sys.exit(1)  # a pipe is closed, by us or by the host
