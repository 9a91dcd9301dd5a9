"""The extensions of the cancellation sweep, which take part everywhere, and the person who answers what they ask."""

from __future__ import annotations

import json
from typing import Any

import trio
from runtime.askers import Person
from runtime.fakes import Guest, World

from trio_exthost.hooks import DISPATCHED, LIFE_POINTS, HookClass
from trio_exthost.wire.dialect import EFFECTS

LATENCY_S = 0.125
"""Everybody answers after so long: exact in binary, so that a deadline can fall on the very moment."""
ASKED = [
    event
    for event, point in LIFE_POINTS.items()
    if event in DISPATCHED and point.default_class in (HookClass.GATE, HookClass.TRANSFORM)
]
AWAITED = [event for event, point in LIFE_POINTS.items() if point.awaited and event != "session_start"]
OBSERVED = ("message_update", "tool_execution_update", "tool_execution_end", "run_settled")
PERMISSIONS = ("tools.register", "commands.register", "session.write", "client.contribute")
OBJECT = {"type": "object"}
ANSWERED_BY = {"ask_user": "ask_user_result", "call_tool": "tool_result", "broker_call": "broker_result"}


class Actor:
    """An extension of the effect dialect that takes part at every point. All it asks for has to be answered, once."""

    def __init__(
        self, *, hooks: tuple[str, ...] = (), has_migration: bool = False, latency_s: float = LATENCY_S
    ) -> None:
        self.hooks = hooks
        self.has_migration = has_migration
        self.latency_s = latency_s
        self.pause_s = 0.0
        """So long it does not read, before each frame."""
        self.open: dict[Guest, dict[tuple[str, str], trio.Event]] = {}
        """What each process of it has asked for and waits for: (type of the answer, id)."""
        self.asked = 0
        self.section = 200
        """The number of the section that is registered."""

    async def __call__(self, guest: Guest) -> None:
        self.open[guest] = {}
        self.greet(guest)
        async with trio.open_nursery() as nursery:
            while (frame := await self.next(guest)) is not None:  # beyond `shutdown`: nothing may come then
                self.take(guest, frame, nursery)
            nursery.cancel_scope.cancel("its input has ended")
        del self.open[guest]

    async def next(self, guest: Guest) -> dict[str, Any] | None:
        """The next frame; a slow reader leaves it in the pipe for a while."""
        await trio.sleep(self.pause_s)
        return await guest.frame()

    def greet(self, guest: Guest) -> None:
        capabilities = ("effects", "gaps", "call_tool", "tool_cancel")
        guest.greet(capabilities=capabilities, ready=False, events=list(EFFECTS.events))
        number = 0
        for number, event in enumerate(self.hooks, 1):
            guest.send(type="register", registration_id=number, kind="hook", descriptor={"event": event})
        for number, event in enumerate(OBSERVED, 50):
            descriptor = {"event": event, "class": "observe"}
            guest.send(type="register", registration_id=number, kind="hook", descriptor=descriptor)
        tool = {"name": f"work-{guest.name}", "label": "x", "description": "x", "input_schema": OBJECT}
        command = {"name": f"keep-{guest.name}", "description": "x", "argument_schema": OBJECT}
        guest.send(type="register", registration_id=100, kind="tool", descriptor=tool)
        guest.send(type="register", registration_id=101, kind="command", descriptor=command)
        section = {"section_id": f"note-{guest.name}", "text": "first"}
        guest.send(type="register", registration_id=self.section, kind="prompt_section", descriptor=section)
        if self.has_migration:
            guest.send(type="register", registration_id=103, kind="migration", descriptor={})
        guest.send(type="ready")

    def take(self, guest: Guest, frame: dict[str, Any], nursery: trio.Nursery) -> None:
        if frame["type"] == "invoke":
            nursery.start_soon(self.answer, guest, frame)
        elif frame["type"] in ANSWERED_BY.values():
            key = (frame["type"], frame["id"])
            assert key in self.open[guest], f"{key} is answered, and was not asked for or was answered before"
            self.open[guest].pop(key).set()
        elif frame["type"] == "registered" and frame["registration_id"] >= 200:
            self.section = frame["registration_id"]

    async def ask(self, guest: Guest, word: str, id: str, **fields: Any) -> None:
        """Ask the host for something, and wait for its answer."""
        self.asked += 1
        key = (ANSWERED_BY[word], f"{id}-{self.asked}")
        self.open[guest][key] = answered = trio.Event()
        guest.send(type=word, id=key[1], **fields)
        await answered.wait()

    async def answer(self, guest: Guest, frame: dict[str, Any]) -> None:
        """Answer an invocation: late ones, too, as a program that does not care for `cancel`."""
        id, envelope = frame["id"], frame["envelope"]  # noqa: A001 - the wire's word
        event, payload = envelope["event"], envelope["payload"]
        await trio.sleep(self.latency_s)
        if event == "tool":
            guest.send(type="progress", id=id, text="half", fraction=0.5, output="some")
            await self.ask(guest, "ask_user", f"q{id}", invocation=id, kind="confirm", title="Sure?")
            call = {"name": "zt", "args": {}, "parent_id": id}
            await self.ask(guest, "call_tool", f"n{id}", **call)
            await self.ask(
                guest, "broker_call", f"b{id}", invocation=id, operation="memory.get", arguments={"key": "m"}
            )
            value = {"content": [{"type": "text", "text": "done"}]}
            guest.send(type="invoke_result", id=id, value=value, actions=[add("tool")])
        elif event == "command":
            await self.keep(guest, id, payload["arguments"]["n"])
        elif event == "migration":
            state = {key: value + 100 for key, value in payload["state"].items()}
            guest.send(type="invoke_result", id=id, value={"state": state})
        else:
            guest.send(type="invoke_result", id=id, **reply(event, payload, guest.name))

    async def keep(self, guest: Guest, id: str, number: int) -> None:
        """Write a number in three ways, all of which count together: state, memory, and a registration that replaces another.

        The number 0 is only counted.
        """
        if not number:
            guest.send(type="invoke_result", id=id, value={"status": "success", "data": 0}, actions=[add("plain")])
            return
        state = {"key": "k", "value": number}
        await self.ask(guest, "broker_call", f"b{id}", invocation=id, operation="set_state", arguments=state)
        memory = {"key": "m", "value": number}
        await self.ask(guest, "broker_call", f"b{id}", invocation=id, operation="memory.set", arguments=memory)
        answer = {
            "value": {"status": "success", "data": number},
            "actions": [add("command")],
            "dispose": [self.section],
        }
        guest.send(type="invoke_result", id=id, **answer)
        section = {"section_id": f"note-{guest.name}", "text": "first"}
        number = 200 + self.asked
        guest.send(type="register", registration_id=number, kind="prompt_section", descriptor=section)


def add(key: str) -> dict[str, Any]:
    """One more in what is stored under a key."""
    return {"kind": "add_state", "key": key, "by": 1}


def reply(event: str, payload: dict[str, Any], name: str) -> dict[str, Any]:
    """What a hook answers: transforms change the value and store something, gates that are told to ask do."""
    actions: list[dict[str, Any]] = [add(event)]
    if event in AWAITED:
        return {}
    if "ask" in json.dumps(payload) and LIFE_POINTS[event].default_class is HookClass.GATE:
        return {"decision": {"kind": "ask", "message": "a person should know"}, "actions": actions}
    if event == "input":
        actions.append({"kind": "replace_input", "message": {"role": "user", "content": f"changed by {name}"}})
    elif event == "message_delta":
        return {"actions": [{"kind": "replace_text", "text": payload["text"].upper(), "hold": 0}]}
    elif event == "message_end":
        actions.append({"kind": "replace_message", "message": {**payload["message"], "content": "changed"}})
    elif event == "context":
        actions.append(
            {"kind": "replace_context", "messages": [*payload["messages"], {"role": "user", "content": name}]}
        )
    return {"actions": actions}


class ZotActor(Actor):
    """One of zot's dialect: intercepts all it can, is told every event, has a tool and a command that opens a panel."""

    def greet(self, guest: Guest) -> None:
        points = list(EFFECTS.interceptions)
        guest.greet(capabilities=("call_tool",), ready=False, events=list(EFFECTS.events), intercept=points)
        guest.send(type="register_tool", name="zt", schema=OBJECT)
        guest.send(type="register_command", name="zc")
        guest.send(type="ready")

    def take(self, guest: Guest, frame: dict[str, Any], nursery: trio.Nursery) -> None:
        if frame["type"] in ("tool_call", "command_invoked", "event_intercept"):
            nursery.start_soon(self.answer, guest, frame)

    async def answer(self, guest: Guest, frame: dict[str, Any]) -> None:
        await trio.sleep(self.latency_s)
        if frame["type"] == "tool_call":
            guest.send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "zot"}])
        elif frame["type"] == "command_invoked":
            panel = {"id": "p", "title": "P", "lines": ["a"]}
            guest.send(type="command_response", id=frame["id"], action="open_panel", open_panel=panel)
        else:
            guest.send(type="event_intercept_response", id=frame["id"], block=False)


class Everybody(World):
    """Keeps each process there ever was."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery)
        self.every: list[Guest] = []

    def spawn(self, argv: Any, **options: Any) -> Guest:
        guest = super().spawn(argv, **options)
        self.every.append(guest)
        return guest


class LatePerson(Person):
    """Says yes to everything, after a while."""

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(lambda question: nursery.start_soon(self._answer, question))

    @staticmethod
    async def _answer(question: Any) -> None:
        await trio.sleep(LATENCY_S)
        question.answer(True)  # False where it was withdrawn meanwhile


def add_actors(around: Everybody, names: tuple[str, ...]) -> None:
    """The extensions: `e` has hooks everywhere, `z` speaks zot's dialect, `m` has old state, `f` has hooks about its life."""
    if "e" in names:
        around.add("e", Actor(hooks=tuple(ASKED)), permissions=PERMISSIONS, state_schema=1)
    if "z" in names:
        around.add("z", ZotActor())
    if "m" in names:
        around.add("m", Actor(hooks=tuple(AWAITED), has_migration=True), permissions=PERMISSIONS, state_schema=2)
