"""What tests of questions share: a client with a person behind it, and an extension that a test speaks for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from runtime.fakes import Client, Guest, assert_nothing_left, world
from trio.testing import wait_all_tasks_blocked

from trio_exthost import CallError, Question, Session, ToolResult


class Person(Client):
    """Keeps what it is asked; `react` may answer at once."""

    def __init__(self, react: Callable[[Question], object] | None = None) -> None:
        super().__init__()
        self.react = react
        self.questions: list[Question] = []
        self.withdrawn: list[Question] = []

    def ask_user(self, session, question) -> None:
        self.questions.append(question)
        if self.react is not None:
            self.react(question)

    def withdraw_question(self, session, question) -> None:
        self.withdrawn.append(question)


async def listen(guest: Guest) -> None:
    """Registers a tool named as the extension, then only reads: the test sends what it is to send."""
    guest.send(type="hello", name=guest.name, capabilities=["effects", "call_tool"])
    descriptor = {"name": guest.name, "label": "x", "description": "x", "input_schema": {"type": "object"}}
    guest.send(type="register", registration_id=1, kind="tool", descriptor=descriptor)
    guest.send(type="register_tool", name=f"{guest.name}-zot", schema={"type": "object"})
    guest.send(type="ready")
    await guest.until_shutdown()


class Asker:
    """One extension of a session, and what a test does with it."""

    def __init__(self, session: Session, guest: Guest) -> None:
        self.session = session
        self.guest = guest
        self.results: list[ToolResult | CallError] = []

    @property
    def instance(self):
        return self.session.loader.running(self.guest.name)

    async def call(self, tool_id: str = "c", **more: Any) -> None:
        """Call its tool, and keep what comes of that."""
        try:
            self.results.append(await self.session.call_tool(self.guest.name, {}, tool_id=tool_id, **more))
        except CallError as exc:
            self.results.append(exc)

    async def invoked(self) -> str:
        """The id of the last `invoke` it was sent."""
        await wait_all_tasks_blocked()
        return [frame["id"] for frame in self.guest.received if frame["type"] == "invoke"][-1]

    async def send(self, **frame: Any) -> None:
        """Send a frame and wait until the host has dealt with it."""
        self.guest.send(**frame)
        await wait_all_tasks_blocked()

    async def ask(self, invocation: str, id: str = "q", **more: Any) -> None:
        frame = {"type": "ask_user", "id": id, "invocation": invocation, "kind": "confirm", "title": "Sure?"}
        await self.send(**frame | more)

    async def finish(self, invocation: str, text: str = "done") -> None:
        await self.send(type="invoke_result", id=invocation, value={"content": [{"type": "text", "text": text}]})

    def told(self) -> list[tuple[str, str, Any]]:
        """The answers it got to its questions: id, outcome, value."""
        return [
            (frame["id"], frame["outcome"], frame.get("value"))
            for frame in self.guest.received
            if frame["type"] == "ask_user_result"
        ]


@asynccontextmanager
async def asker(
    tmp_path, person: object | None, *, section: dict[str, Any] | None = None, **options
) -> AsyncIterator[Asker]:
    """A session with one such extension, named a; nothing may be left of its questions."""
    async with world(tmp_path, **options) as (around, host):
        around.add("a", listen, permissions=("tools.register",), **(section or {}))
        async with host.open_session("s", client=person) as session:
            await session.load_all()
            one = Asker(session, around.guests["a"])
            instance = one.instance
            yield one
        assert_nothing_left(session)
        assert len(instance.questions) == 0
        assert not instance.questions.invocations
