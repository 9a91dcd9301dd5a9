"""Confirming tool calls through the client, or by the policy where nobody is there; and what stands still meanwhile."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
from runtime.askers import Asker, Person, listen
from runtime.fakes import Guest, codes, world
from runtime.test_agent_level import Told, bash
from trio.testing import wait_all_tasks_blocked

from trio_exthost import (
    AskKind,
    Deadlines,
    ExtensionPolicy,
    HostClient,
    Policy,
    ToolStatus,
)


@asynccontextmanager
async def prompting(tmp_path, client, **options):
    """A session with the agent's bash and a tool `p` of extension p that wants each call confirmed; events in `told`."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name="p", capabilities=["effects"])
        descriptor = {"name": "p", "label": "x", "description": "x", "input_schema": {"type": "object"}}
        guest.send(type="register", registration_id=1, kind="tool", descriptor={**descriptor, "permission": "prompt"})
        guest.send(type="ready")
        while (frame := await guest.frames("invoke", "shutdown"))["type"] == "invoke":
            value = {"content": [{"type": "text", "text": "ran"}]}
            guest.send(type="invoke_result", id=frame["id"], value=value)

    told = Told()
    async with world(tmp_path, instrument=told, **options) as (around, host):
        around.add("p", program, permissions=("tools.register",))
        async with host.open_session("s", client=client, tools=[bash()]) as session:
            await session.load_all()
            with session.open_run(run_id="r") as run:
                yield run, told


def decisions(told: Told) -> list[tuple[str, str]]:
    return [(payload["decision"], payload["source"]) for payload in told.of("permission_decision")]


@pytest.mark.parametrize("tool", ["bash", "p"])
@pytest.mark.parametrize(
    ("say", "decision", "shown"),
    [
        (lambda q: q.answer(True), "approved", "ran"),
        (lambda q: q.answer(False), "denied", "the user did not allow this call"),
        (lambda q: q.decline(), "denied", "the user did not allow this call"),
        (lambda q: q.cancel(), "cancelled", "the user did not allow this call"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_the_client_is_asked(tmp_path, autojump_clock, tool, say, decision, shown, at_once: bool) -> None:
    person = Person(say if at_once else None)
    async with prompting(tmp_path, person) as (run, told), trio.open_nursery() as nursery:

        async def answer_later() -> None:
            await trio.sleep(100_000)
            for question in person.questions:
                say(question)

        if not at_once:
            nursery.start_soon(answer_later)
        async with run.tool_call("c", tool, {"command": "x\n\x1b[31m"}) as call:
            assert await call.confirm() is (decision == "approved")
            result = await call.execute()
        assert result.text.startswith(shown)
        assert decisions(told) == [(decision, "user")]
        assert len(told.of("tool_confirmation_requested")) == 1
        assert [event for event, _ in told.events if "conf" in event or "perm" in event] == [
            "tool_confirmation_requested",
            "permission_decision",
        ]
        (question,) = person.questions
        assert (question.extension, question.kind, question.title) == (None, AskKind.CONFIRM, f"Run {tool}?")
        assert (question.run_id, question.tool_call_id) == ("r", "c")
        reason = "\np: tool 'p' wants each call confirmed" if tool == "p" else ""
        assert question.message == '{"command":"x\\n\\u001b[31m"}' + reason
    assert person.withdrawn == []


async def test_long_arguments_are_cut_and_it_says_so(tmp_path, autojump_clock) -> None:
    person = Person(lambda question: question.answer(True))
    async with prompting(tmp_path, person) as (run, _):
        async with run.tool_call("c", "bash", {"command": "x" * 20_000}) as call:
            await call.confirm()
    assert person.questions[0].message.endswith("xxx... (3630 more characters)")


async def test_a_call_that_is_given_up_withdraws_its_question(tmp_path, autojump_clock) -> None:
    person = Person()
    async with prompting(tmp_path, person) as (run, told):
        with trio.move_on_after(5):
            async with run.tool_call("c", "bash", {"command": "x"}) as call:
                await call.confirm()
        assert call.confirmed is False
        assert decisions(told) == [("cancelled", "user")]
        assert [payload["status"] for payload in told.of("tool_result")] == ["cancelled"]
    assert person.withdrawn == person.questions
    assert person.withdrawn[0].answer(True) is False
    assert person.withdrawn[0].withdrawn == "the tool call was given up"


async def test_a_session_that_ends_withdraws_the_question_of_a_call_that_outlives_it(tmp_path, autojump_clock) -> None:
    person = Person()
    confirmed: list[bool] = []

    async def hold() -> None:
        async with session.tool_call("c", "bash", {"command": "x"}) as call:
            confirmed.append(await call.confirm())
            confirmed.append(await call.confirm())
            assert (await call.execute()).text == "the user did not allow this call"

    async with world(tmp_path) as (_, host), trio.open_nursery() as nursery:
        async with host.open_session("s", client=person, tools=[bash()]) as session:
            nursery.start_soon(hold)
            await wait_all_tasks_blocked()
            assert len(session.asked) == 1
    assert confirmed == [False, False]
    assert len(person.questions) == 1
    assert person.withdrawn == person.questions
    assert person.withdrawn[0].withdrawn == "the session has ended"
    assert not session.asked


class Broken(HostClient):
    def ask_user(self, session, question) -> None:
        raise LookupError("no screen")


ALLOW, BLOCK = {"headless_ask": "allow"}, {"headless_ask": "block"}


@pytest.mark.parametrize("client", [None, HostClient(), object(), Broken()])
@pytest.mark.parametrize(
    ("policy", "runs", "rule"),
    [
        (Policy(), False, "headless_ask = block [built_in]"),
        (Policy(**ALLOW), True, "headless_ask = allow [default: defaults.headless_ask]"),
        (Policy(**ALLOW, extensions={"p": ExtensionPolicy(**BLOCK)}), False, "= block [extension: extensions.p.headless_ask]"),
        (Policy(**BLOCK, extensions={"p": ExtensionPolicy(**ALLOW)}), True, "= allow [extension: extensions.p.headless_ask]"),
    ],
)  # fmt: skip
async def test_where_nobody_is_there_the_policy_decides_what_should_be_asked(
    tmp_path, autojump_clock, client, policy, runs: bool, rule: str
) -> None:
    async with prompting(tmp_path, client, policy=policy) as (run, told):
        async with run.tool_call("c", "p", {}) as call:
            assert await call.confirm() is runs
            result = await call.execute()
        async with run.tool_call("d", "bash", {"command": "x"}) as call:
            assert await call.confirm() is True
            assert (await call.execute()).text == "ran x"
        assert decisions(told) == [("approved" if runs else "denied", "policy"), ("approved", "policy")]
        assert told.of("tool_confirmation_requested") == []
        assert rule in told.of("permission_decision")[0]["reason"]
        assert codes(run.session.host) == ["callback_failed"] * 2 * isinstance(client, Broken)
    if runs:
        assert result.text == "ran"
    else:
        assert result.status is ToolStatus.BLOCKED
        assert result.text.startswith("extension 'p' wants a person asked about this call, and nobody is there")
        assert rule in result.text
        assert 'let the policy say headless_ask = "allow"' in result.text


@pytest.mark.parametrize(("client", "ruled"), [(None, True), (Person(), False)])
@pytest.mark.parametrize("policy", [Policy(), Policy(**ALLOW)])
async def test_executing_what_nobody_confirmed(tmp_path, autojump_clock, client, ruled: bool, policy) -> None:
    async with prompting(tmp_path, client, policy=policy) as (run, told):
        async with run.tool_call("c", "p", {}) as call:
            result = await call.execute()
        if not ruled:
            assert result.text == "an extension wants the user asked about this call, and nobody was"
            assert decisions(told) == []
        elif policy.headless_ask is None:
            assert "headless_ask = block [built_in]" in result.text
            assert decisions(told) == [("denied", "policy")]
        else:
            assert result.text == "ran"
            assert decisions(told) == [("approved", "policy")]


async def test_a_person_who_denies_after_the_policy_did_is_named(tmp_path, autojump_clock) -> None:
    async def deny(call) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    async with prompting(tmp_path, None) as (run, _):
        async with run.tool_call("c", "p", {}) as call:
            await call.confirm()
            await call.confirm(deny)
            assert (await call.execute()).text == "the user did not allow this call"


@asynccontextmanager
async def calling(tmp_path, person: Person, tool: str):
    """Extension a, whose tool runs; extension b beside it, and the agent's bash. Afterwards a's tool has answered."""
    async with world(tmp_path, deadlines=Deadlines(tool_s=60, nested_call_s=50)) as (around, host):
        for each in "ab":
            around.add(each, listen, permissions=("tools.register",))
        async with host.open_session("s", client=person, tools=[bash()]) as session, trio.open_nursery() as nursery:
            await session.load_all()
            one, other = (Asker(session, around.guests[each]) for each in "ab")
            results: list[str] = []

            async def call() -> None:
                results.append((await session.call_tool(tool, {})).text)

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            parent = one.guest.received[-1]["id"]
            yield one, other, parent
            answer = {"content": [{"type": "text", "text": "outer"}]}
            if tool == "a":
                await one.send(type="invoke_result", id=parent, value=answer)
            else:
                await one.send(type="tool_result", id=parent, **answer)
        assert results == ["outer"]


def answer_to(one: Asker, id: str) -> list[str]:
    """What its own call has brought, if it has ended."""
    return [
        frame["content"][0]["text"]
        for frame in one.guest.received
        if frame["type"] == "tool_result" and frame["id"] == id
    ]


@pytest.mark.parametrize("tool", ["a", "a-zot"])
async def test_what_waits_for_a_confirmation_in_a_nested_call_stands_still(tmp_path, autojump_clock, tool) -> None:
    person = Person()
    async with calling(tmp_path, person, tool) as (one, _, parent):
        await one.send(type="call_tool", id="n", name="bash", args={"command": "x"}, parent_id=parent)
        (question,) = person.questions
        assert "called by the extension a" in question.message
        await trio.sleep(10_000)
        assert answer_to(one, "n") == []
        question.answer(True)
        await wait_all_tasks_blocked()
        assert answer_to(one, "n") == ["ran x"]
        await trio.sleep(59)


@pytest.mark.parametrize("tool", ["a", "a-zot"])
async def test_a_question_in_a_tool_that_an_extension_called_holds_up_the_whole_chain(
    tmp_path, autojump_clock, tool
) -> None:
    person = Person(lambda question: question.answer(True) if question.extension is None else None)
    async with calling(tmp_path, person, tool) as (one, other, parent):
        await one.send(type="call_tool", id="n", name="b", args={}, parent_id=parent)
        inner = await other.invoked()
        await trio.sleep(40)
        await other.ask(inner)
        await trio.sleep(10_000)
        assert answer_to(one, "n") == []
        person.questions[-1].answer(True)
        await trio.sleep(9)
        await other.finish(inner, "inner")
        assert other.told() == [("q", "answered", True)]
        assert answer_to(one, "n") == ["inner"]
        await trio.sleep(10)


async def test_the_limit_of_a_nested_call_goes_on_after_a_question_in_it(tmp_path, autojump_clock) -> None:
    person = Person(lambda question: question.answer(True) if question.extension is None else None)
    async with calling(tmp_path, person, "a") as (one, other, parent):
        await one.send(type="call_tool", id="n", name="b", args={}, parent_id=parent)
        inner = await other.invoked()
        await trio.sleep(40)
        await other.ask(inner)
        await trio.sleep(10_000)
        person.questions[-1].answer(True)
        await other.ask(inner, "open when the limit comes", timeout_ms=1000)
        await trio.sleep(11.5)  # one of them with the clock standing still
        assert answer_to(one, "n") == ["no result within 50 s"]
        assert other.told()[1:] == [("open when the limit comes", "cancelled", None)]
        assert [frame["type"] for frame in other.guest.received[-2:]] == ["ask_user_result", "cancel"]


async def test_a_nested_call_that_ends_with_its_parent_withdraws_its_confirmation(tmp_path, autojump_clock) -> None:
    person = Person()
    async with calling(tmp_path, person, "a") as (one, _, parent):
        await one.send(type="call_tool", id="n", name="bash", args={"command": "x"}, parent_id=parent)
        assert person.questions[0].is_open
    assert person.withdrawn == person.questions
