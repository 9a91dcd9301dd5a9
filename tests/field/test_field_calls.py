"""Cases from the field: calls of tools and commands, their answers, deadlines, sizes, and who has a name."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from field.helpers_b import bash, named, offers, say
from runtime.fakes import Guest, world
from runtime.real.programs import SLACK_S, Place, codes_of, row_of, running, text_of, until_state

from trio_exthost import CallTimedOut, Deadlines, Limits, UnknownTool

OBJECT = {"type": "object"}


async def test_c53_a_late_answer_is_nobody_elses(tmp_path) -> None:
    place = Place(tmp_path)
    answers = "\n".join(
        (
            "calls = []",
            "def answer(frame):",
            "    calls.append(frame['id'])",
            "    if len(calls) == 2:",
            "        result(calls[0], 'first'); result(calls[1], 'second'); result(calls[1], 'again')",
            "serve(answer, tools=['t'])",
        )
    )
    place.add("a", answers)
    async with running(place, deadlines=Deadlines(ready_cap_s=30, tool_s=0.3)) as (host, session):
        with pytest.raises(CallTimedOut):
            await session.call_tool("t", {})
        assert text_of(await session.call_tool("t", {})) == "second"
        with pytest.raises(CallTimedOut):  # what was sent before this call's answer has been read by its end
            await session.call_tool("t", {})
        told = [code for code in codes_of(host, "a") if code.startswith("reply")]
        assert told == ["reply_late", "reply_unknown"]


async def test_c53_the_id_of_another_extensions_call_is_refused_and_none_comes_twice(tmp_path, autojump_clock) -> None:
    ids: list[str] = []

    async def slow(guest: Guest, frame: dict[str, Any]) -> None:
        ids.append(frame["id"])
        await trio.sleep(1)
        say(guest, frame, "mine")

    async def steal(guest: Guest, frame: dict[str, Any]) -> None:
        say(guest, {"id": ids[-1]}, "stolen")
        await named(guest, frame)

    async with world(tmp_path) as (around, host):
        around.add("a", offers("t", on_call=slow))
        around.add("thief", offers("steal", on_call=steal))
        async with host.open_session("s") as session:
            await session.load_all()
            for _ in range(3):
                async with trio.open_nursery() as nursery:

                    async def call() -> None:
                        assert text_of(await session.call_tool("t", {})) == "mine"

                    nursery.start_soon(call)
                    await trio.testing.wait_all_tasks_blocked()
                    await session.call_tool("steal", {})
                await session.reload("a")
            assert codes_of(host, "thief") == ["reply_unknown"] * 3
            assert len(set(ids)) == 3


STUBBORN = {
    "cancels": "if frame['type'] == 'tool_cancel': result(frame['id'], 'late')",
    "ignores cancel": "wait_for('go'); result(frame['id'], 'late')",
    "does not read": "os.close(0); hang()",
}


@pytest.mark.parametrize("way", STUBBORN)
async def test_c59_a_cancelled_call_frees_its_caller_at_once_and_the_extension_is_told(tmp_path, way) -> None:
    place = Place(tmp_path)
    source = "\n".join(
        (
            "send(type='hello', name='a', capabilities=['tool_cancel'])",
            "send(type='register_tool', name='t', schema={'type': 'object'})",
            "send(type='ready')",
            "for frame in frames('tool_call', 'tool_cancel'):",
            "    if frame.get('args'): result(frame['id'], 'mine'); continue",
            "    open('../' + frame['type'] + frame['id'], 'w').close()",
            f"    if frame['type'] == 'tool_call' or {way == 'cancels'}:",
            f"        {STUBBORN[way]}",
        )
    )
    place.add("a", source)
    async with running(place, limits=Limits(pending_calls=1)) as (host, session):
        with trio.fail_after(1 + SLACK_S):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(session.call_tool, "t", {})
                    await until_file(tmp_path, "tool_call*")
                    scope.cancel("the user presses stop")
            assert scope.cancelled_caught
            if way == "cancels":
                await until_file(tmp_path, "tool_cancel*")
        place.signal("go")
        if way != "does not read":
            assert text_of(await session.call_tool("t", {"whose": "mine"})) == "mine", "its slot is free"
            assert codes_of(host, "a") == ["reply_late"], "what it said too late is nobody's"


async def until_file(path: Any, pattern: str) -> None:
    """Wait until a program has made such a file."""
    while not list(path.glob(pattern)):
        await trio.lowlevel.checkpoint()


async def test_c60_a_slow_tool_has_what_its_manifest_asks_for_up_to_the_operators_maximum(
    tmp_path, autojump_clock
) -> None:
    def lasting(seconds: float) -> Any:
        async def work(guest: Guest, frame: dict[str, Any]) -> None:
            await trio.sleep(seconds)
            say(guest, frame, "done")

        return work

    async with world(tmp_path, deadlines=Deadlines(tool_maximum_s=100)) as (around, host):
        around.add("asks", offers("long", on_call=lasting(80)), tool_timeout_s=90)
        around.add("does-not", offers("short", on_call=lasting(80)))
        around.add("asks-too-much", offers("longest", on_call=lasting(200)), tool_timeout_s=300)
        async with host.open_session("s") as session:
            await session.load_all()
            assert text_of(await session.call_tool("long", {})) == "done"
            with pytest.raises(CallTimedOut, match=r"60 s.*tool_timeout_s in its manifest"):
                await session.call_tool("short", {})
            with pytest.raises(
                CallTimedOut, match=r"within 100 s.*asks for 300 s, which the operator's maximum cuts: tool_maximum_s"
            ):
                await session.call_tool("longest", {})
            warning = (
                "exthost.tool_timeout_s asks for 300, and gets 100: the operator's maximum (deadlines.tool_maximum_s)"
            )
            assert [row_of(session, name).warnings for name in ("asks", "does-not", "asks-too-much")] == [
                (),
                (),
                (warning,),
            ]
            assert [each.message for each in host.diagnostics if each.code == "manifest_warning"] == [warning]


async def test_c62_a_name_goes_to_the_first_in_the_catalogue_whoever_starts_faster(tmp_path, autojump_clock) -> None:
    def registers(seconds: float) -> Any:
        async def program(guest: Guest) -> None:
            await trio.sleep(seconds)
            guest.send(type="hello", name=guest.name)
            for name in ("search", "bash", "search"):
                guest.send(type="register_tool", name=name, schema=OBJECT)
            guest.send(type="register_command", name="deploy")
            guest.send(type="ready")
            await guest.until_shutdown()

        return program

    for seed in range(50):
        rng = random.Random(seed)
        async with world(tmp_path) as (around, host):
            around.add("first", registers(rng.random()))
            around.add("second", registers(rng.random()))
            async with host.open_session("s", tools=[bash()]) as session:
                await session.load_all()
                assert [(tool.name, tool.extension) for tool in session.tools()] == [
                    ("bash", None),
                    ("search", "first"),
                ]
                assert [each.extension for each in session.commands()] == ["first"]
                for name in ("search", "deploy"):
                    held = f"{name!r} is held by extension 'first'"
                    assert any(held in warning for warning in row_of(session, "second").warnings)
                assert "'bash': that name is built in, and built-ins win" in str(row_of(session, "first").warnings)
                refused = [each.extension for each in host.diagnostics if each.code == "registration_refused"]
                assert sorted(refused) == ["first"] * 2 + ["second"] * 4
                await session.unload("first")
                assert [tool.name for tool in session.tools()] == ["bash"]
                await session.reload("second")
                assert [tool.extension for tool in session.tools()] == [None, "second"], (
                    "at its next start, as documented"
                )


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "dot": ({"name": "a.b", "schema": OBJECT}, "a.b"),
    "empty name": ({"name": "", "schema": OBJECT}, "''"),
    "65 characters": ({"name": "x" * 65, "schema": OBJECT}, "x" * 65),
    "not of an object": ({"name": "text", "schema": {"type": "string"}}, "'text'"),
    "no schema": ({"name": "none"}, "register_tool 'none': $.schema: required field missing"),
    "key": ({"name": "key", "schema": {**OBJECT, "properties": {"$.x": {}}}}, "$.x"),
    "1 MiB": ({"name": "large", "schema": {**OBJECT, "description": "x" * (1 << 20)}}, "'large'"),
}


async def test_c63_a_bad_tool_is_refused_alone_and_with_its_reason(tmp_path) -> None:
    place = Place(tmp_path)
    frames = [{"type": "register_tool", **frame} for frame, _ in BAD.values()]
    frames.append({"type": "register_tool", "name": "good", "schema": OBJECT})
    place.add("a", f"greet(ready=False)\nfor f in {frames!r}: send(**f)\nsend(type='ready')\nlist(frames())")
    async with running(place) as (host, session):
        await until_state(session, "a", "ready")
        offered = [tool.name for tool in session.tools()]
        refused = [each.message for each in host.diagnostics.of("a")]
        assert offered == ["good"]
        assert len(refused) == len(BAD)
        for _, word in BAD.values():
            assert any(word in message for message in refused), word
        warnings = row_of(session, "a").warnings
        assert len(warnings) == len(BAD)
        for _, word in BAD.values():
            assert any(word in warning for warning in warnings), word
        with pytest.raises(UnknownTool):
            await session.call_tool("a.b", {})
