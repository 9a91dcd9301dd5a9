"""What an extension of a chaos run registers, stores and asks for, at the right moment and at the wrong one."""

from __future__ import annotations

import os

POINTS = ("input", "before_run", "context", "before_model_request", "message_delta", "message_end", "tool_call",
          "tool_result", "before_compaction", "before_session_switch", "before_model_selection")  # fmt: skip
OBSERVED = ("session_start", "run_started", "run_ended", "run_settled", "message_update", "extension_load",
            "session_shutdown", "extension_unload", "tool_execution_update")  # fmt: skip
OBJECT = {"type": "object"}


class Offers:
    # --- registering ---

    def register_all(self):
        """What it has from its beginning."""
        if self.guest.name == "guest0":
            tool = {"name": "bash", "label": "b", "description": "sandboxed", "input_schema": OBJECT, "override": True}
            self.guest.send(type="register", registration_id=next(self.guest.numbers), kind="tool", descriptor=tool)
        for _ in range(self.dice.randint(2, 6)):
            self.register_one()

    def _descriptor(self):
        name = self.guest.name
        kind = self.dice.choice(
            ("tool", "command", "hook", "hook", "hook", "prompt_section", "request_policy", "contribution")
        )
        if kind == "tool":
            return kind, {"name": f"e-{name}", "label": "l", "description": "d", "input_schema": OBJECT}
        if kind == "command":
            return kind, {"name": f"ec-{name}", "label": "l", "description": "d", "argument_schema": OBJECT}
        if kind == "hook":
            if self.dice.random() < 0.4:
                return kind, {"event": self.dice.choice(OBSERVED), "class": "observe"}
            return kind, {"event": self.dice.choice(POINTS)}
        if kind == "prompt_section":
            return kind, {"section_id": f"s-{name}", "text": "Be kind.", "priority": self.dice.randint(-5, 5)}
        if kind == "request_policy":
            return kind, {"policy_id": f"p-{name}", "priority": 1}
        return kind, {"contribution_id": f"k-{name}", "contribution": {"a": 1}}

    def register_one(self):
        if not self.guest.effects:
            self.guest.send(type="register_tool", name=f"late-{self.guest.name}", description="", schema=OBJECT)
            return
        kind, descriptor = self._descriptor()
        number = next(self.guest.numbers)
        frame = {"registration_id": number, "kind": kind, "descriptor": descriptor}
        if kind in ("tool", "command") and self.dice.random() < 0.5:
            frame["descriptor"] = {**descriptor, "scope": "run"}
            frame["binding"] = {"scope": "run", "id": self.dice.choice(self.guest.runs)}
        self.guest.send(type="register", **frame)
        self.guest.registered = [*self.guest.registered[-50:], (number, descriptor)]

    def dispose_one(self):
        number = self.dice.choice([each for each, _ in self.guest.registered] or [7])
        self.guest.send(type="dispose", registration_id=number)

    def update_one(self):
        if self.guest.registered:
            number, descriptor = self.dice.choice(self.guest.registered)
            self.guest.send(type="update", registration_id=number, descriptor=descriptor)

    def register_wrong(self):
        descriptor = self.dice.choice(
            ({}, {"name": 7}, {"name": "bash", "label": "x", "override": True}, {"event": "no"})
        )
        number = self.dice.choice((1, 2, 3, next(self.guest.numbers)))
        self.guest.send(
            type="register", registration_id=number, kind=self.dice.choice(("tool", "hook", "?")), descriptor=descriptor
        )

    def subscribe_more(self):
        self.guest.send(type="subscribe", events=["tool_result"], intercept=["tool_call", "no_such_point"])

    # --- storing ---

    def things_to_store(self, space):
        """A batch that shows afterwards whether all of it is there, and what it is called."""
        key = f"{self.guest.name}-{os.getpid()}-{next(self.guest.numbers)}"
        self.guest.note("attempts", id=key, space=space)
        return key, [
            {"kind": "append_custom_event", "event_id": key, "custom_type": "chaos", "payload": {"id": key}},
            {"kind": "add_state", "key": "n", "by": 1},
            {"kind": "set_state", "key": f"of-{self.dice.randint(0, 9)}", "value": key},
        ]

    def commit(self, space="session"):
        if self.guest.effects and self.guest.session:
            for _ in range(self.dice.randint(1, 5)):
                key, actions = self.things_to_store(space)
                self.guest.waiting[f"{space}/{key}"] = {"id": key, "space": space}
                self.guest.send(type="state_commit", id=f"{space}/{key}", space=space, actions=actions)

    def commit_shared(self):
        self.commit("extension")

    def commit_wrong(self):
        """One bad action, or one that comes too late, and nothing of all may be stored."""
        key, actions = self.things_to_store("never")
        bad = self.dice.choice(({"key": ""}, {"key": "n", "value": 0, "if_revision": 1_000_000}))
        self.guest.send(type="state_commit", id=key, space="session", actions=[*actions, {"kind": "set_state", **bad}])

    # --- asking ---

    def call_a_tool(self):
        key = str(next(self.guest.numbers))
        name = self.dice.choice(("vault", "bash", "t-witness", "shared", "t-guest3", "e-guest1", "nobody"))
        arguments = {"deny": True} if self.dice.random() < 0.3 else {}
        parent = {"parent_id": self.dice.choice(self.guest.recent)} if self.dice.random() < 0.5 else {}
        self.guest.send(type="call_tool", id=key, name=name, args=arguments, **parent)

    def cancel_a_call(self):
        self.guest.send(type="call_tool_cancel", id=str(self.dice.randint(1, 100)))

    def ask_nobody(self):
        invocation = self.dice.choice([*self.guest.open, *self.guest.recent])
        self.guest.send(
            type="ask_user", id=str(next(self.guest.numbers)), invocation=invocation, kind="confirm", title="Well?"
        )
