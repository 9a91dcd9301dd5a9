"""Where the cancellation sweep plays: extensions that take part everywhere, a person, and what has to hold afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from runtime.askers import Person
from runtime.fakes import Guest, World, assert_nothing_left
from runtime.sweeping import HANG_S

from trio_exthost import Deadlines, Host, HostConfig, Limits, Run, Session, SimpleTool, open_host
from trio_exthost.hooks import DISPATCHED, LIFE_POINTS, HookClass
from trio_exthost.runtime.instance import Instance
from trio_exthost.state import Advance, Checkout, Commit, SessionState, read_actions
from trio_exthost.state.memory import MemoryStores
from trio_exthost.wire.dialect import EFFECTS

LATENCY_S = 0.125
"""Everybody answers after so long: exact in binary, so that a deadline can fall on the very moment."""
QUIET_S = 20.0
"""After so long everything that was begun has ended: above each grace and deadline of a stop."""
ASKED = [
    event
    for event, point in LIFE_POINTS.items()
    if event in DISPATCHED and point.default_class in (HookClass.GATE, HookClass.TRANSFORM)
]
AWAITED = [event for event, point in LIFE_POINTS.items() if point.awaited and event != "session_start"]
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
        self.open: dict[Guest, dict[tuple[str, str], trio.Event]] = {}
        """What each process of it has asked for and waits for: (type of the answer, id)."""
        self.asked = 0
        self.section = 200
        """The number of the section that is registered."""

    async def __call__(self, guest: Guest) -> None:
        self.open[guest] = {}
        self.greet(guest)
        async with trio.open_nursery() as nursery:
            while (frame := await guest.frame()) is not None:  # beyond `shutdown`: nothing may come then
                self.take(guest, frame, nursery)
            nursery.cancel_scope.cancel("its input has ended")
        del self.open[guest]

    def greet(self, guest: Guest) -> None:
        capabilities = ("effects", "gaps", "call_tool", "tool_cancel")
        guest.greet(capabilities=capabilities, ready=False, events=list(EFFECTS.events))
        number = 0
        for number, event in enumerate(self.hooks, 1):
            guest.send(type="register", registration_id=number, kind="hook", descriptor={"event": event})
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
        """Write a number in three ways, all of which count together: state, memory, and a registration that replaces another."""
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


def stored(schema: int = 1) -> MemoryStores:
    """Stores in which `m` has state in an old schema on the branch `old`, and none where the session stands."""
    stores = MemoryStores()
    raw = [{"kind": "set_state", "key": "k", "value": 1}]
    actions = read_actions(raw, extension="m")
    state = SessionState(stores.open_session("s"))
    operations = [
        Advance("old"), Commit(extension="m", schema=schema, actions=actions, sequence=1), Checkout(""), Advance("new"),
    ]  # fmt: skip
    state.publish(state.write(operations))
    state.close()
    stores.open_extension("m").commit(actions, schema=schema, sequence=1)
    return stores


@attrs.define(eq=False)
class Stage:
    """A session with everybody in it."""

    around: Everybody
    host: Host
    session: Session
    person: LatePerson
    stores: MemoryStores
    nursery: trio.Nursery
    """For what goes on beside what is swept."""
    run: Run | None = None
    notes: dict[str, Any] = attrs.field(factory=dict)
    """What a scenario remembers for its own look afterwards."""

    def actors(self) -> list[Actor]:
        return [program for program in self.around.programs.values() if isinstance(program, Actor)]

    def value(self, extension: str, key: str) -> Any:
        """What is stored."""
        return self.session.persistence.projection(extension).get(key)


DEADLINES = Deadlines()
TIGHT = attrs.evolve(
    DEADLINES,
    intercept_s=LATENCY_S,
    transform_s=LATENCY_S,
    life_cycle_s=LATENCY_S,
    command_s=LATENCY_S,
    tool_s=LATENCY_S,
)
"""Each time-out falls on the very moment of the answer."""


async def host_tool(arguments: dict[str, Any], context: Any) -> str:
    """The agent's own tool."""
    await trio.sleep(LATENCY_S)
    return "own"


@asynccontextmanager
async def staged(
    directory: Path, *, loaded: tuple[str, ...] = ("e", "z"), tight: bool = False, present: tuple[str, ...] = ("e", "z")
) -> AsyncIterator[Stage]:
    """A host with these extensions present and these loaded; leaving asserts that nothing of it is left anywhere."""
    before = descriptors()
    async with trio.open_nursery() as nursery:
        around = Everybody(nursery)
        add_actors(around, present)
        deadlines = TIGHT if tight else DEADLINES
        limits = Limits(circuit_failures=10**6)  # whoever is out of service is told nothing
        config = HostConfig(deadlines=deadlines, limits=limits, data_dir=directory)
        person, stores = LatePerson(nursery), stored()
        async with open_host(config, spawn=around.spawn, catalogue=around.catalogue, state=stores, secrets=()) as host:
            async with host.open_session(
                "s", client=person, tools=[SimpleTool("own", "x", OBJECT, host_tool)]
            ) as session:
                stage = Stage(around, host, session, person, stores, nursery)
                for candidate in around.candidates:
                    if candidate.name in loaded:
                        await session.load(candidate)
                session.start()
                yield stage
                left_at = trio.current_time()
            assert trio.current_time() - left_at <= deadlines.stop_total_s
            assert_nothing_left(session)
        assert host.pump.watched == 0
    everybody_has_left(around)
    assert descriptors() == before


def descriptors() -> int:
    """How many files this process has open; 0 where the system does not say."""
    place = Path("/proc/self/fd")
    return sum(1 for _ in place.iterdir()) if place.is_dir() else 0


def add_actors(around: Everybody, names: tuple[str, ...]) -> None:
    """The extensions: `e` has hooks everywhere, `z` speaks zot's dialect, `m` has old state, `f` has hooks about its life."""
    if "e" in names:
        around.add("e", Actor(hooks=tuple(ASKED)), permissions=PERMISSIONS, state_schema=1)
    if "z" in names:
        around.add("z", ZotActor())
    if "m" in names:
        around.add("m", Actor(hooks=tuple(AWAITED), has_migration=True), permissions=PERMISSIONS, state_schema=2)


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


def check_tasks(stage: Stage) -> None:
    """Nobody works for a call that is over, and nothing is due: no task, no deadline."""
    names = [task.name.split()[0] for task in stage.host.nursery.child_tasks]
    assert set(names) <= {"services", "extension", "committer"}, names
    for instance in stage.session.loader.instances():
        tasks = [task.name for task in instance.nursery.child_tasks]
        assert sorted(tasks) == sorted([f"exit of {instance.name}", f"writer of {instance.name}"]), tasks
    until = trio.current_time() + trio.lowlevel.current_statistics().seconds_to_next_deadline
    assert until == pytest.approx(HANG_S), f"something is due at {until}"


async def quiet(stage: Stage, *, at_once: bool = True) -> None:
    """Look at once, while answers are on their way; then wait until all that was late has come, and look again."""
    session = stage.session
    await trio.testing.wait_all_tasks_blocked()
    if at_once:
        check_tables(session)
    await trio.sleep(QUIET_S)
    check_tables(session)
    assert not session.loader._beside
    assert not session.loader.boundary._waiting
    assert session._reloader._current is None
    check_tasks(stage)
    assert all(not question.is_open for question in stage.person.questions)
    assert not any(asked for actor in stage.actors() for asked in actor.open.values()), (
        "it waits for an answer for ever"
    )
