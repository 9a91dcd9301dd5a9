"""A whole host in one process, one of whose extensions sends whatever it likes, while calls await its answers.

What must hold: the host goes on; nothing but our own errors reaches who calls; the neighbour serves as before; in the end
nothing of the hostile one is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import trio
import trio.testing
from fuzz.choices import Choices
from fuzz.hostile import changed, spoiled, write
from fuzz.scratch import scratch
from fuzz.seeds import FRAMES, HELLO, WORDS
from hooks.hook_samples import PAYLOADS, REQUEST, USER
from runtime.askers import Person
from runtime.fakes import Guest, World, assert_nothing_left, world
from runtime.puppets import ALL

from trio_exthost import Deadlines, Display, ExtensionPolicy, Host, HostError, Limits, Policy, Session, SimpleTool
from trio_exthost.hooks import HookClass, contract_of
from trio_exthost.runtime.questions import Question
from trio_exthost.runtime.session_points import SessionTarget

LIMITS = Limits(frame_bytes=8192, oversize_stop_bytes=200_000, outbox_frames=64, pending_calls=16, waiting_work=4)
DEADLINES = Deadlines(
    hello_s=1, intercept_s=1, transform_s=1, chain_s=1.5, command_s=2, tool_s=2, nested_call_s=1, stall_s=1.5, life_cycle_s=0.5,
    commit_s=1, stop_grace_s=0.5, term_grace_s=0.5, stop_total_s=2, circuit_delay_s=0.5, reload_total_s=3, reload_grace_s=1,
)  # fmt: skip
POLICY = Policy(extensions={"bad": ExtensionPolicy(grant=["tools.override:bash", "session.write"], restart="on_crash")})
HOOKS = [
    {"event": event.value, "class": each.value}
    for event in PAYLOADS
    for each in HookClass
    if contract_of(event, each) is not None
]
DICTIONARY = tuple(write(word) for word in WORDS)
ENOUGH_S = 1000
"""Of the host's clock: all deadlines together, and a person who lets it wait each time, take less."""
_NEARLY_FULL = ("id", "name", "invocation", "panel_id", "text", "message", "title", "parent_id")
_FOLDER = scratch()


def seeds() -> Iterator[bytes]:
    for number in range(len(FRAMES)):
        yield bytes([number % 4, number % 7, 3, 4, 5, 6, *[number, 0, 0, 0, 0, 0] * 3])
    yield from (bytes([2, number, number + 1, number + 2, *range(number, number + 60)]) for number in range(0, 190, 6))


class Hostile:
    """The extension: what it registers first, then lines as they come, and answers to what it was asked."""

    def __init__(self, data: bytes) -> None:
        self.choices = Choices(data)
        self.ids = ["1", "2", "0"]
        self.hooks = [self.choices.pick(HOOKS) for _ in range(self.choices.below(5))]
        self.kind = self.choices.below(6)

    async def __call__(self, guest: Guest) -> None:
        await self.write(guest, b"".join(self.greeting()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.read, guest)
            while not self.choices.is_over:
                burst = b"".join(self.line() for _ in range(1 + self.choices.below(4)))
                await self.write(guest, burst)
                if self.choices.below(3) == 0:
                    await trio.sleep(self.choices.below(20) / 10)
            if self.choices.below(8) == 7:
                guest.exit(self.choices.byte())
            await trio.sleep(self.choices.below(3))
            nursery.cancel_scope.cancel("it has sent all")
        if self.kind != 5:
            await guest.until_shutdown()

    def greeting(self) -> Iterator[bytes]:
        if self.kind == 0:
            return  # its plan may begin with a hello, or not
        yield (
            write(
                {**HELLO, "capabilities": ["call_tool", "tool_cancel", *(["effects", "gaps"] if self.kind > 1 else [])]}
            )
            + b"\n"
        )
        if self.kind == 2:
            return
        yield b'{"type":"register_command","name":"zc"}\n{"type":"register_tool","name":"zt","schema":{"type":"object"}}\n'
        yield b'{"type":"subscribe","events":["tick","turn_start","tool_call"],'
        yield b'"intercept":["tool_call","turn_start","assistant_message","before_agent_start"]}\n'
        if self.kind > 1:
            for number, hook in enumerate(self.hooks, 20):
                yield write({"type": "register", "registration_id": number, "kind": "hook", "descriptor": hook}) + b"\n"
            for frame in FRAMES:
                if frame["type"] == "register" and frame["kind"] in (
                    "tool",
                    "command",
                    "prompt_section",
                    "request_policy",
                ):
                    yield write(frame) + b"\n"
        yield b'{"type":"ready"}\n'

    def line(self) -> bytes:
        choices = self.choices
        frame: Any = dict(choices.pick(FRAMES))
        for key in ("id", "invocation", "parent_id"):
            if key in frame:
                frame[key] = choices.pick(self.ids[-20:])
        if "registration_id" in frame:
            frame["registration_id"] = 1 + choices.below(26)
        if choices.below(16) == 15:
            frame[choices.pick(_NEARLY_FULL)] = "i" * (8192 - len(write(frame)) - choices.below(120))
        for _ in range(choices.below(4)):
            frame = changed(frame, choices, WORDS, FRAMES)
        line = write(frame)
        return (spoiled(line, choices) if choices.one_in(16) else line) + choices.pick(
            (b"\n", b"\n", b"\n", b"\r\n", b"")
        )

    async def read(self, guest: Guest) -> None:
        while (frame := await guest.frame()) is not None:
            if isinstance(frame.get("id"), str):
                self.ids.append(frame["id"])
            if self.kind == 4 and frame["type"] == "shutdown":
                return

    async def write(self, guest: Guest, data: bytes) -> None:
        """As a program writes: it waits where the pipe is full."""
        for at in range(0, len(data), 4096):
            piece = data[at : at + 4096]
            while True:
                try:
                    guest.write(piece)
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(guest._stdout)
                else:
                    break


async def neighbour(guest: Guest) -> None:
    guest.send(type="hello", name="good")
    guest.send(type="register_command", name="fine")
    guest.send(type="ready")
    while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
        if frame["type"] == "command_invoked":
            guest.send(type="command_response", id=frame["id"], action="display", display="fine")


async def bash(_arguments: dict[str, Any]) -> str:
    await trio.lowlevel.checkpoint()
    return "done"


def fuzz_one(data: bytes) -> None:
    trio.run(play, data, clock=trio.testing.MockClock(autojump_threshold=0))


def react(choices: Choices, question: Question) -> None:
    (question.decline, question.cancel, question.unavailable, lambda: None)[choices.below(4)]()


async def play(data: bytes) -> None:
    choices = Choices(data[:6])
    hostile = Hostile(data[6:])
    person = Person(partial(react, choices))
    tool = SimpleTool("bash", "Run", {"type": "object"}, bash)
    async with world(_FOLDER, limits=LIMITS, deadlines=DEADLINES, policy=POLICY) as (around, host):
        around.add("bad", hostile, permissions=ALL, state_schema=1)
        around.add("good", neighbour)
        async with host.open_session("s", client=person, tools=[tool]) as session:
            await session.load_all()
            with trio.fail_after(ENOUGH_S):
                async with trio.open_nursery() as around_them:
                    around_them.start_soon(come_back, person)
                    async with trio.open_nursery() as nursery:
                        for act in acts(session, around):
                            nursery.start_soon(only_ours, act)
                        nursery.start_soon(only_ours, partial(come_and_go, session, around, choices))
                    around_them.cancel_scope.cancel("all has been done")
            outcome = await session.run_command("fine")
            assert isinstance(outcome, Display)
            assert outcome.text == "fine"
            check(host)
    assert_nothing_left(session)


async def come_back(person: Person) -> None:
    """The person who was asked and did not answer at once does so later: the host waits for people without end."""
    while True:
        await trio.sleep(20)
        for question in person.questions:
            if question.is_open:
                question.decline()


def check(host: Host) -> None:
    for each in host.diagnostics:
        each.message.encode()
        assert each.extension != "good", each
        assert len(each.message) <= 4000


async def only_ours(act: Callable[[], Awaitable[object]]) -> None:
    try:
        await act()
    except HostError as exc:
        str(exc).encode()


def acts(session: Session, around: World) -> Iterator[Callable[[], Awaitable[object]]]:
    """What the agent does meanwhile."""
    yield partial(session.intercept, "tool_call", {"tool_name": "bash", "tool_args": {}})
    yield partial(one_run, session)
    yield partial(every_command, session)
    yield partial(every_tool, session)
    yield partial(session.before_switch, SessionTarget("s2"))
    yield partial(tell, session)


async def tell(session: Session) -> None:
    for number in range(70):
        session.emit("tick", {"number": number})
    await trio.lowlevel.checkpoint()
    session.emit("tick", {"pad": "x" * 6000})


async def every_command(session: Session) -> None:
    for each in session.commands():
        await only_ours(partial(session.run_command, each.name, "x"))


async def every_tool(session: Session) -> None:
    for each in session.tools():
        with trio.move_on_after(30):  # one that says it is interactive may take for ever
            await only_ours(partial(session.call_tool, each.name, {"a": 1}))


async def one_run(session: Session) -> None:
    with session.open_run() as run:
        await only_ours(partial(run.input, "hello"))
        await only_ours(partial(run.system_prompt, "base"))
        await only_ours(partial(run.turn_start, 1))
        await only_ours(partial(run.context, [USER]))
        with run.open_request():
            await only_ours(partial(run.model_request, REQUEST))
        await only_ours(partial(talk, run))
        await only_ours(partial(call, run))
        run.turn_end()


async def talk(run: Any) -> None:
    async with run.assistant_text("m1") as text:
        for piece in ("one ", "two ", "x" * 3000):
            await text.feed(piece)


async def call(run: Any) -> None:
    async with run.tool_call("c1", "bash", {"command": "ls"}) as one:
        if not one.verdict.blocked:
            await one.confirm()
        await one.execute()


async def come_and_go(session: Session, around: World, choices: Choices) -> None:
    how = choices.below(6)
    await trio.sleep(choices.below(20) / 10)
    if how == 0:
        await session.unload("bad")
    elif how == 1:
        await session.reload("bad")
    elif how == 2:
        await session.advance("e1")
        await session.checkout("e1")
