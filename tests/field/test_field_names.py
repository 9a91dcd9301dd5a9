"""Cases from the field: two want one name, or one name twice; who gets it, and what the other is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from field.helpers_b import bash
from runtime.fakes import Guest, world
from runtime.real.programs import Place, row_of, running, text_of

from trio_exthost import Limits

OBJECT = {"type": "object"}
WANTS = """
def want(name):
    send(type="register_tool", name=name, description="", schema={"type": "object"})
greet(capabilities=CAPABILITIES, tools=["search", OWN, OWN, "bash", "a.b"], commands=["Deploy"], intercept=["tool_calls"], ready=False)
send(type="register_tool", name="no-schema")
send(type="ready")
seen = []
for frame in frames():
    seen.append(frame)
    if frame["type"] == "tool_call" and frame["args"]:
        want(frame["args"]["again"])
    if frame["type"] == "tool_call":
        result(frame["id"], json.dumps([each for each in seen if each["type"] not in ("hello_ack", "event", "tool_call")]))
"""
REFUSED = [
    ("tool", "", "required field missing"),
    ("tool", "search", "'search' is held by extension 'first'"),
    ("tool", "told", "tool 'told' is already registered by this instance"),
    ("tool", "bash", "'bash': that name is built in, and built-ins win"),
    ("tool", "a.b", "a tool's name has 1 to 64 characters"),
    ("command", "Deploy", "'deploy' is held by extension 'first'"),
    ("interception", "tool_calls", "the points are tool_call, "),
]


async def told(session: Any, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """What an extension was sent that is neither its greeting, an event nor a call."""
    return json.loads(text_of(await session.call_tool(tool, arguments)))


async def test_c62_who_loses_a_name_is_sent_a_frame_if_it_wants_to_know_and_has_a_note_in_its_row(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("first", "serve(tools=['search'], commands=['deploy'])")
    place.add("second", f"CAPABILITIES, OWN = ['register_rejected'], 'told'\n{WANTS}")
    place.add("zots", f"CAPABILITIES, OWN = [], 'other'\n{WANTS}")
    async with running(place, tools=[bash()]) as (_host, session):
        frames = await told(session, "told")
        assert {frame.pop("type") for frame in frames} == {"register_rejected"}
        assert [(frame["kind"], frame["name"]) for frame in frames] == [(kind, name) for kind, name, _ in REFUSED]
        notes = row_of(session, "second").warnings
        for frame, (_, _, why) in zip(frames, REFUSED, strict=True):
            assert why in frame["message"]
            assert any(why in note for note in notes), why
        assert await told(session, "other") == [], "zot has no such frame, and its extensions do not ask for it"
        assert len(row_of(session, "zots").warnings) == len(REFUSED)
        # The winner goes: its names are free, and go to whoever registers them again.
        await session.unload("first")
        assert [tool.name for tool in session.tools()] == ["bash", "told", "other"]
        await told(session, "other", again="search")
        assert [(tool.name, tool.extension) for tool in session.tools()][-1] == ("search", "zots")
        assert len(await told(session, "told", again="search")) == len(REFUSED)
        assert "'search' is held by extension 'zots'" in (await told(session, "told"))[-1]["message"]


@pytest.mark.parametrize("limits", [Limits(registrations=3), Limits(registration_bytes=400)])
async def test_c62_what_there_is_no_room_for_is_told_in_both_dialects(tmp_path, autojump_clock, limits) -> None:
    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=["effects", "register_rejected"])
        for number in range(1, 3):
            guest.send(type="register_tool", name=f"t{number}", schema=OBJECT)
        for number in range(1, 9):
            descriptor = {"name": f"c{number}", "description": "d", "argument_schema": OBJECT}
            guest.send(type="register", registration_id=number, kind="command", descriptor=descriptor)
        guest.send(type="register_command", name="last" * 100)
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, limits=limits) as (around, host):
        around.add("a", program, permissions=["commands.register"])
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()
            answers = [each for each in around.guests["a"].received if "registration_id" in each]
            assert sorted(each["registration_id"] for each in answers) == list(range(1, 9)), "each has its answer"
            refused = {each["code"] for each in answers if each["type"] == "rejected"}
            assert refused == {"resource_limit"}
            (last,) = [each for each in around.guests["a"].received if each["type"] == "register_rejected"]
            assert (last["kind"], last["name"]) == ("command", ("last" * 100)[:256])
            assert "it stages more than 3" in last["message"] or "more than 400 bytes" in last["message"]
