"""What an extension of a chaos run does wrong: families of moves, thrown dice for; and its answers, right and wrong."""

from __future__ import annotations

import json
import os
import signal
import time

from answers import Answers  # these are beside it in the extension's directory
from offers import Offers

FATAL = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGINT)
MOVES = {
    "stall": ("nap", "nap", "stop_for_a_while", "stop", "never_read"),
    "die": ("leave_now", "be_killed", "die_in_a_frame", "die_talking"),
    "flood": ("flood_notes", "flood_stderr", "flood_stray", "flood_panels", "flood_large", "flood_blank", "flood_submit"),
    "answer": ("answer_unasked", "answer_unasked", "say_nonsense", "too_long_a_line"),
    "close": ("close_stdout", "close_stdin", "close_both", "close_stderr"),
    "leave": ("leave_child", "leave_stubborn", "leave_escaped", "leave_talker"),
    "register": ("register_one", "register_one", "dispose_one", "update_one", "register_wrong", "subscribe_more"),
    "store": ("commit", "commit", "commit_shared", "commit_wrong"),
    "ask": ("call_a_tool", "call_a_tool", "cancel_a_call", "ask_nobody"),
}  # fmt: skip


class Mischief(Offers):
    def __init__(self, guest):
        self.guest = guest
        self.dice = guest.dice
        self.closed = set()
        self.children = 0
        self.answers = Answers(guest, self)
        self.answer = self.answers.answer

    def something(self):
        """One move of one of its families."""
        family = self.dice.choice(self.guest.families)
        if self.guest.is_guard and self.dice.random() < 0.7:
            return
        getattr(self, self.dice.choice(MOVES[family]))()

    # --- the beginning and the end ---

    def at_the_start(self):
        roll = self.dice.random()
        if self.guest.is_hushed:
            return
        if "die" in self.guest.families and roll < 0.2:
            self.guest.put(b'{"type": "hel' if roll < 0.1 else b"")
            self.leave_now()
        if "stall" in self.guest.families and roll < 0.1:
            time.sleep(30)
        if "answer" in self.guest.families and roll < 0.3:
            self.guest.put(b"Welcome!\n\xff\xfe\n" if roll < 0.2 else b'{"type": "ready"}\n')
        if "close" in self.guest.families and roll < 0.1:
            self.close_stdout()

    def gets_ready(self):
        """Whether it says that it is ready, or leaves that to be guessed."""
        return self.guest.is_hushed or self.dice.random() < 0.8

    def ignores_shutdown(self):
        return "stall" in self.guest.families and self.dice.random() < 0.5

    # --- stalling ---

    def nap(self):
        time.sleep(self.dice.uniform(0.1, 1.5))

    def stop_for_a_while(self):
        seconds, us = self.dice.uniform(0.1, 1.5), os.getpid()

        def wake():
            time.sleep(seconds)
            os.kill(us, signal.SIGCONT)

        self._fork(wake)
        self.stop()

    def stop(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    def never_read(self):
        while True:
            time.sleep(1)

    # --- dying ---

    def leave_now(self):
        os._exit(self.dice.choice((0, 1, 3)))

    def be_killed(self):
        number = self.dice.choice(FATAL)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def die_in_a_frame(self):
        self.guest.put(b'{"type": "notify", "message": "I am ab')
        self.leave_now()

    def die_talking(self):
        self._repeat(50, type="notify", level="info", message="x" * 500)
        self.leave_now()

    # --- flooding ---

    def _repeat(self, times, **frame):
        self.guest.put((json.dumps(frame).encode() + b"\n") * times)

    def flood_notes(self):
        self._repeat(self.dice.randint(200, 3000), type="notify", level="info", message="all is well")

    def flood_stderr(self):
        if 2 not in self.closed:
            for _ in range(self.dice.randint(1, 16)):
                os.write(2, b"a line of a log\n" * 4096)

    def flood_stray(self):
        self.guest.put(b"gar\xffbage\n" * self.dice.randint(100, 5000))

    def flood_panels(self):
        for number in range(30):
            self.guest.send(type="open_panel", panel={"id": f"p{number}", "title": self.guest.name})
        self._repeat(300, type="panel_render", panel_id="p1", lines=["x"] * 20)
        self.guest.send(type="panel_close", panel_id="p1")

    def flood_large(self):
        self._repeat(self.dice.randint(1, 20), type="notify", level="info", message="x" * 200_000)

    def flood_blank(self):
        self.guest.put(b"\n" * 60_000)

    def flood_submit(self):
        self._repeat(300, type="submit", text="do it")
        self._repeat(300, type="clear_notes")

    # --- speaking out of turn ---

    def answer_unasked(self):
        key = self.dice.choice([*self.guest.recent, "1", "999999", "x"])
        kind = self.dice.choice(("tool_result", "command_response", "event_intercept_response", "invoke_result"))
        self.guest.send(type=kind, id=key)

    def say_nonsense(self):
        self.guest.put(
            self.dice.choice(
                (b"{\n", b"[1]\n", b'{"type": 7}\n', b'{"type": "who"}\n', b'"\xff"\n', b"[" * 500 + b"\n")
            )
        )

    def too_long_a_line(self):
        size = self.dice.choice((300_000, 300_000, 300_000, 6_000_000))
        self.guest.put(b'{"type": "notify", "message": "' + b"x" * size + b'"}\n')

    # --- closing ---

    def _close(self, *numbers):
        for number in numbers:
            if number not in self.closed:
                self.closed.add(number)
                os.close(number)

    def close_stdout(self):
        self._close(1)

    def close_stdin(self):
        self._close(0)

    def close_both(self):
        self._close(0, 1)

    def close_stderr(self):
        self._close(2)

    # --- leaving others behind ---

    def _fork(self, what, *, hold=True):
        if self.children >= 4:
            return
        self.children += 1
        if os.fork() == 0:
            try:
                if not hold:
                    os.closerange(0, 3)
                what()
            finally:
                os._exit(0)

    def leave_child(self):
        self._fork(lambda: time.sleep(100), hold=self.dice.random() < 0.7)

    def leave_stubborn(self):
        def stay():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(100)

        self._fork(stay)

    def leave_escaped(self):
        def escape():
            os.setsid()
            self.guest.note("escaped", pid=os.getpid())
            time.sleep(20)

        self._fork(escape)

    def leave_talker(self):
        def talk():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for _ in range(200):
                os.write(1, b'{"type": "notify", "message": "from below"}\n')
                time.sleep(0.02)

        self._fork(talk)
