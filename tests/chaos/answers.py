"""How an extension of a chaos run answers what it is asked: the right answer, and what may become of it."""

from __future__ import annotations

import os

WAYS = ("late", "late", "twice", "unknown", "wrong_kind", "broken", "no_text", "too_long", "never", "fails", "dies",
        "wrong_fields", "progress")  # fmt: skip
SECOND = "a second answer"
"""Stands in whatever an extension answers when it has answered already."""


class Answers:
    def __init__(self, guest, mischief):
        self.guest = guest
        self.mischief = mischief
        self.dice = guest.dice

    def answer(self, frame):
        """Answer it in one way or another."""
        guest, good = self.guest, self.right(frame)
        self._note_begun(frame)
        share = 0.5 if "answer" in guest.families else 0.05
        if frame["type"] == "invoke":
            run = frame["envelope"].get("context", {}).get("scope", {}).get("run_id")
            if run:
                guest.runs = [*guest.runs[-3:], run]
            guest.open = {**dict(list(guest.open.items())[-20:]), frame["id"]: None}
            if "store" in guest.families and self.dice.random() < 0.5:
                self._broker(frame["id"])
        if "ask" in guest.families and not guest.is_hushed and self.dice.random() < 0.3:
            self._ask_first(frame, good)
            return
        if guest.is_good or guest.is_hushed or self.dice.random() > share:
            self.give(good)
            return
        getattr(self, self.dice.choice(WAYS))(frame, good)

    def _note_begun(self, frame):
        """Tell the test which calls of tools were begun."""
        number = self._number(frame)
        if number is not None:
            self.guest.note("begun", n=number)

    @staticmethod
    def _number(frame):
        """The agent's number of this call of a tool, which the answer has to say, too; None where there is none."""
        if frame["type"] == "tool_call":
            return frame["args"].get("n")
        if frame["type"] == "invoke" and frame["envelope"]["event"] == "tool":
            return frame["envelope"]["payload"]["arguments"].get("n")
        return None

    def _broker(self, invocation):
        """Read and write while it works; what it writes is stored with the answer, if that is."""
        guest = self.guest
        wants = [
            ("state.get", {"key": "n"}),
            ("set_state", {"key": "b", "value": invocation}),
            ("memory.get", {"key": "m"}),
        ]
        for operation, arguments in self.dice.sample(wants, 2):
            key = str(next(guest.numbers))
            guest.send(type="broker_call", id=key, invocation=invocation, operation=operation, arguments=arguments)

    def give(self, good):
        self.guest.open.pop(good["id"], None)
        self.guest.send(**good)

    def _ask_first(self, frame, good):
        if frame["type"] == "invoke" and self.dice.random() < 0.5:
            self.guest.send(
                type="ask_user", id=f"q{frame['id']}", invocation=frame["id"], kind="confirm", title="Really?"
            )
        else:
            self.mischief.call_a_tool()
        self.guest.later(self.dice.uniform(0, 0.3), lambda: self.give(good))

    # --- right ones ---

    def right(self, frame):
        kind, key = frame["type"], frame["id"]
        if kind == "tool_call":
            return {"type": "tool_result", "id": key, "content": [self._done(frame)]}
        if kind == "command_invoked":
            about = {"action": self.dice.choice(("display", "noop", "insert", "prompt")), "display": "d", "prompt": "p"}
            return {"type": "command_response", "id": key, "insert": "i", **about}
        if kind == "event_intercept":
            return {"type": "event_intercept_response", "id": key, **self._view(frame)}
        return {"type": "invoke_result", "id": key, **self._invoked(frame)}

    def _view(self, frame):
        """What an interceptor says: guards refuse exactly what is to be refused."""
        arguments = frame.get("tool_args", {})
        if self.guest.is_guard:
            return {"block": True, "reason": "denied"} if arguments.get("deny") else {}
        roll = self.dice.random()
        if roll < 0.06:
            return {"block": True, "reason": "I do not like it"}
        if roll > 0.3:
            return {}
        if frame["event"] == "tool_call":
            return {"modified_args": {**arguments, "by": self.guest.name}}
        return (
            {"replace_text": "other words"} if frame["event"] == "assistant_message" else {"system_prompt": "Be brief."}
        )

    def _invoked(self, frame):
        envelope = frame["envelope"]
        event, payload = envelope["event"], envelope["payload"]
        if event in ("tool", "command"):
            return self._worked(event, frame)
        if event == "migration":
            return {"value": {"state": payload["state"]}}
        if event == "tool_call":
            roll = self.dice.random()
            if roll < 0.1:
                return {
                    "actions": [{"kind": "replace_arguments", "arguments": {**payload["args"], "by": self.guest.name}}]
                }
            return {"decision": {"kind": "ask" if roll < 0.15 else "allow"}}
        if event.startswith("before_") and event not in ("before_run", "before_model_request"):
            return {"decision": {"kind": self.dice.choice(("allow", "abstain", "allow", "allow", "ask"))}}
        follow_up = {"kind": "enqueue_follow_up", "follow_up_id": f"{self.guest.name}-{next(self.guest.numbers)}"}
        replaced = {
            "context": [{"kind": "replace_context", "messages": [{"role": "user", "content": "shorter"}]}],
            "input": [{"kind": "replace_input", "message": {"role": "user", "content": "nicer"}}],
            "message_delta": [{"kind": "replace_text", "text": payload.get("text", "").upper(), "hold": 0}],
            "before_run": [{**follow_up, "message": {"role": "user", "content": "and then"}}],
        }.get(event)
        return {"actions": replaced} if replaced is not None and self.dice.random() < 0.5 else {}

    def _done(self, frame):
        return {"type": "text", "text": f"done {self._number(frame)}"}

    def _worked(self, event, frame):
        """A tool or a command of the effect dialect is done; it may have stored something."""
        stored, actions = None, []
        if "store" in self.guest.families:
            stored, actions = self.mischief.things_to_store("session")
        about = {"stored": stored, "name": self.guest.name}
        if event == "tool":
            return {
                "value": {"content": [self._done(frame)], "structured_content": about},
                "actions": actions,
            }
        return {"value": {"status": "success", "message": "done", "data": about}, "actions": actions}

    # --- what may become of them ---

    def late(self, frame, good):
        self.guest.later(self.dice.uniform(0.1, 1.5), lambda: self.give(good))

    def twice(self, frame, good):
        self.give(good)
        second = {"content": [{"type": "text", "text": SECOND}]}
        others = {
            "tool_result": second,
            "event_intercept_response": {"block": True, "reason": SECOND},
            "invoke_result": {"value": second},
        }
        self.give({**good, **others.get(good["type"], {})})

    def unknown(self, frame, good):
        ids = ["0", "no such id"]
        if not self.guest.is_guard:  # it would say of one call what it thinks of another
            ids.append(str(int(frame["id"]) + 1))
        lie = {"content": [{"type": "text", "text": "a lie"}]} if good["type"] == "tool_result" else {}
        self.give({**good, **lie, "id": self.dice.choice(ids)})

    def wrong_kind(self, frame, good):
        kinds = {"tool_result", "command_response", "event_intercept_response", "invoke_result"} - {good["type"]}
        self.guest.send(type=self.dice.choice(sorted(kinds)), id=frame["id"])

    def broken(self, frame, good):
        self.guest.put(f'{{"type": "{good["type"]}", "id": "{frame["id"]}", oops}}\n'.encode())

    def no_text(self, frame, good):
        self.guest.put(f'{{"type": "{good["type"]}", "id": "{frame["id"]}", "reason": "'.encode() + b'\xff\xfe"}\n')

    def too_long(self, frame, good):
        self.guest.put(f'{{"type": "{good["type"]}", "id": "{frame["id"]}", "x": "{"x" * 300_000}"}}\n'.encode())

    def never(self, frame, good):
        pass

    def fails(self, frame, good):
        failed = (
            {"error": {"code": "no", "message": "it failed"}} if good["type"] == "invoke_result" else {"is_error": True}
        )
        self.give({**good, **failed})

    def dies(self, frame, good):
        self.guest.put(f'{{"type": "{good["type"]}", "id": "{frame["id"]}"'.encode())
        os._exit(5)

    def wrong_fields(self, frame, good):
        self.guest.send(type=good["type"], id=frame["id"], content=7, action=[], block="maybe", value=7, actions="x")

    def progress(self, frame, good):
        for number in range(20):
            self.guest.send(type="progress", id=frame["id"], output=f"{number}\n", fraction=number / 20)
        self.late(frame, good)
