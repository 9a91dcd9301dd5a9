"""Questions of extensions that nobody is asked: each is answered all the same, once, with a diagnostic."""

from __future__ import annotations

import pytest
import trio
from runtime.askers import Person, asker
from runtime.fakes import Guest, codes, world
from trio.testing import wait_all_tasks_blocked

from trio_exthost import Deadlines, Limits, ToolResult


async def test_no_question_is_taken_of_an_invocation_that_was_given_up(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person, deadlines=Deadlines(tool_s=10)) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        await trio.sleep(10.5)  # `cancel` came, and a second of grace runs
        await one.ask(invocation)
        await one.finish(invocation, "part")
        assert one.told() == [("q", "cancelled", None)]
    assert person.questions == []
    (result,) = one.results
    assert isinstance(result, ToolResult)
    assert result.text == "part"


async def test_each_frame_is_answered_once_also_where_it_is_refused(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person, limits=Limits(waiting_work=2)) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        nursery.start_soon(one.session.call_tool, "a-zot", {})
        await wait_all_tasks_blocked()
        zot = one.guest.received[-1]["id"]
        await one.ask("999", "unknown")
        await one.ask(zot, "of another dialect")
        await one.ask(invocation, "no options", kind="select")
        await one.ask(invocation, "many options", kind="select", options=["x"] * 257)
        await one.ask(invocation, "long option", kind="select", options=["x" * 16385])
        await one.ask(invocation, "malformed", kind="dance")
        refused = ["unknown", "of another dialect", "no options", "many options", "long option", "malformed"]
        assert one.told() == [(each, "cancelled", None) for each in refused]
        assert person.questions == []
        assert codes(one.session.host) == ["frame_illegal"] * 2 + ["frame_invalid"] * 4
        await one.ask(invocation, "odd default", default="yes")
        await one.ask(invocation, "odd default", kind="input")  # its id is open: an answer would be the first one's
        await one.ask(invocation, "odd default", kind="dance")
        await one.ask(invocation, "second")
        await one.ask(invocation, "third")
        assert one.told()[6:] == [("third", "cancelled", None)]
        assert [question.default for question in person.questions] == [None, None]
        assert codes(one.session.host)[6:] == ["frame_invalid", "frame_illegal", "frame_invalid", "overloaded"]
        one.guest.send(type="tool_result", id=zot)
        await one.finish(invocation)
    assert len(one.told()) == 6 + 1 + 2
    assert len({each[0] for each in one.told()}) == 6 + 1 + 2


@pytest.mark.parametrize("more", [{}, {"invocation": "x", "kind": "confirm", "title": "Sure?"}])
async def test_an_id_that_leaves_no_room_for_an_answer_is_ignored(tmp_path, autojump_clock, more) -> None:
    person = Person()
    async with asker(tmp_path, person, limits=Limits(frame_bytes=8192)) as one:
        await one.send(type="ask_user", id="x" * 8060, **more)
        assert codes(one.session.host) == ["frame_invalid"]
        await one.ask("x", "y" * 1024)
        assert one.told() == [("y" * 1024, "cancelled", None)]


async def test_no_question_is_taken_in_one_breath_with_the_answer(tmp_path, autojump_clock) -> None:
    person = Person()
    async with asker(tmp_path, person) as one, trio.open_nursery() as nursery:
        nursery.start_soon(one.call)
        invocation = await one.invoked()
        one.guest.send(type="invoke_result", id=invocation, value={"content": []})
        await one.ask(invocation)
        assert one.told() == [("q", "cancelled", None)]
    assert person.questions == []


async def test_what_is_asked_in_one_breath_with_hello_is_answered_after_hello_ack(tmp_path, autojump_clock) -> None:
    async def early(guest: Guest) -> None:
        guest.send(type="hello", name="early", capabilities=["effects", "call_tool"])
        guest.send(type="call_tool", id="1", name="x", args={})
        guest.send(type="ask_user", id="2", invocation="x", kind="confirm", title="Sure?")
        guest.send(type="broker_call", id="3", invocation="x", operation="spawn")
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("early", early)
        async with host.open_session("s", client=Person()) as session:
            assert (await session.load_all()).ready == ("early",)
        types = [(frame["type"], frame.get("id")) for frame in around.guests["early"].received]
        assert types[:4] == [
            ("hello_ack", None),
            ("tool_result", "1"),
            ("ask_user_result", "2"),
            ("broker_result", "3"),
        ]


async def test_a_question_that_comes_while_the_extension_stops_is_a_diagnostic(tmp_path, autojump_clock) -> None:
    async def late(guest: Guest) -> None:
        guest.greet(capabilities=["effects"])
        await guest.until_shutdown()
        guest.send(type="ask_user", id="late", invocation="x", kind="confirm", title="Sure?")
        await trio.sleep(1)
        codes_seen.extend(codes(host))

    codes_seen: list[str] = []
    async with world(tmp_path) as (around, host):
        around.add("late", late)
        async with host.open_session("s", client=Person()) as session:
            await session.load_all()
    assert codes_seen == ["frame_illegal"]
