"""The embedder's own code raises, is cancelled, or calls from where one would not expect it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    assert_good_answers,
    nothing_left,
    running,
    text_of,
    until_state,
)

from trio_exthost import ExtensionExited, HostClient, SimpleTool, open_host
from trio_exthost.runtime.inbound import HANDLERS
from trio_exthost.wire import from_extension

CALLS_BACK = """
greet(tools=["outer"], capabilities=["call_tool"])
for frame in frames():
    if frame["type"] == "tool_call":
        asked = frame["id"]
        send(type="call_tool", id="mine", name=frame["args"]["tool"], args={}, parent_id=asked)
    elif frame["type"] == "tool_result":
        result(asked, json.dumps([frame.get("is_error", False), frame["content"][0]["text"]]))
"""
NOISY = """
greet(tools=["noise"], ready=False)
send(type="notify", level="info", message="hello")
send(type="ready")
for frame in frames("tool_call"):
    send(type="notify", level="warn", message="again")
    send(type="open_panel", panel={"id": "p", "title": "t", "lines": ["x"]})
    send(type="submit", text="do it")
    send(type="clear_notes")
    result(frame["id"], "ok")
"""


async def test_a_tool_of_the_embedder_that_raises_is_an_error_of_that_call(tmp_path) -> None:
    async def crash(_arguments: object) -> str:
        raise ZeroDivisionError("the embedder's bug")

    place = Place(tmp_path)
    place.add("caller", CALLS_BACK)
    place.add("good", GOOD)
    async with running(place, tools=[SimpleTool("crash", "", {"type": "object"}, crash)]) as (_host, session):
        with session.open_run() as run:
            async with run.tool_call("1", "crash", {}) as call:
                answer = await call.execute()
                assert answer.is_error
                assert "ZeroDivisionError" in text_of(answer)
            async with run.tool_call("2", "outer", {"tool": "crash"}) as call:
                assert text_of(await call.execute()).startswith("[true")
        await assert_good_answers(session)


async def test_callbacks_that_raise_are_told_and_end_nothing(tmp_path) -> None:
    class Broken(HostClient):
        def __getattribute__(self, name: str):
            def fail(*_arguments: object) -> None:
                raise ValueError(name)

            return fail

    place = Place(tmp_path)
    place.add("noisy", NOISY)
    place.add("good", GOOD)
    async with running(place, client=Broken()) as (host, session):
        assert session.report.ready == ("noisy", "good")
        for _ in range(3):
            assert text_of(await session.call_tool("noise", {})) == "ok"
        await assert_good_answers(session)
        assert host.diagnostics.counts["callback_failed"] > 9
        assert [row.state for row in session.extensions()] == ["ready", "ready"]


@pytest.mark.parametrize("error", [KeyError("mine"), ExceptionGroup("mine", [KeyError("inner")]), SystemExit(3)])
@pytest.mark.parametrize("where", ["host", "session"])
async def test_what_the_body_raises_leaves_unwrapped_and_everything_ends(tmp_path, error, where: str) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("stubborn", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ngreet()\nhang()")
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        with pytest.raises(type(error)) as caught:
            async with open_host(settings) as host:
                async with host.open_session("s") as session:
                    await session.load_all()
                    if where == "session":
                        raise error
                raise error
        assert caught.value is error


async def test_a_body_that_is_cancelled_leaves_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("slow", "serve(lambda f: hang(), tools=['wait'])")
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        with trio.CancelScope() as scope:
            async with open_host(settings) as host, host.open_session("s") as session:
                await session.load_all()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(session.call_tool, "wait", {})
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
        assert scope.cancelled_caught


async def test_a_bug_in_a_handler_leaves_as_a_group_and_no_process(tmp_path, monkeypatch) -> None:
    def broken(_instance: object, _frame: object) -> None:
        raise ZeroDivisionError("a bug of the host's")

    monkeypatch.setitem(HANDLERS, from_extension.ClearNotes, broken)
    place = Place(tmp_path)
    place.add("noisy", NOISY)
    place.add("good", GOOD)
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        with pytest.raises(ExceptionGroup) as caught:
            with trio.fail_after(PATIENCE_S):
                async with open_host(settings) as host, host.open_session("s") as session:
                    await session.load_all()
                    await session.call_tool("noise", {})
                    await trio.sleep_forever()
    faults, rest = caught.value.split(ZeroDivisionError)
    assert faults is not None
    # Where the call has heard of it before everything was cancelled, what it raised is in the group, too.
    assert rest is None or rest.split(ExtensionExited)[1] is None


@pytest.mark.parametrize("service", ["pump", "flusher"])
async def test_a_bug_in_a_shared_service_leaves_as_a_group_and_no_process(tmp_path, service: str) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("stubborn", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ngreet(events=['tick'])\nhang()")
    settings = place.config()

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("a bug of the host's")

    with nothing_left(place, settings.deadlines.stop_total_s):
        with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
            with trio.fail_after(PATIENCE_S):
                async with open_host(settings) as host, host.open_session("s") as session:
                    await session.load_all()
                    if service == "pump":
                        host.pump._turns = broken  # type: ignore[method-assign]
                    else:
                        host.flusher.call_soon(broken)
                    await session.call_tool("echo", {"text": "x"})
                    await trio.sleep_forever()


async def test_a_nested_tool_that_ends_the_program_leaves_no_process(tmp_path) -> None:
    async def leave(_arguments: object) -> str:
        raise SystemExit(3)

    place = Place(tmp_path)
    place.add("caller", "signal.signal(signal.SIGTERM, signal.SIG_IGN)" + CALLS_BACK + "hang()")
    place.add("good", GOOD)
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        with pytest.RaisesGroup(SystemExit, flatten_subgroups=True):
            with trio.fail_after(PATIENCE_S):
                async with open_host(settings) as host:
                    tools = [SimpleTool("leave", "", {"type": "object"}, leave)]
                    async with host.open_session("s", tools=tools) as session:
                        await session.load_all()
                        async with session.tool_call("1", "outer", {"tool": "leave"}) as call:
                            await call.execute()
                        await trio.sleep_forever()


async def test_a_tool_may_unload_the_extension_that_called_it(tmp_path) -> None:
    async def unload(_arguments: object, context) -> str:
        await context.session.unload("caller")
        return "unloaded"

    place = Place(tmp_path)
    place.add("caller", CALLS_BACK)
    place.add("good", GOOD)
    async with running(place, tools=[SimpleTool("unload", "", {"type": "object"}, unload)]) as (_host, session):
        async with session.tool_call("1", "outer", {"tool": "unload"}) as call:
            assert (await call.execute()).is_error
        await until_state(session, "caller", "stopped")
        await assert_good_answers(session)


async def test_a_session_is_closed_from_another_task_than_it_was_opened_in(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        async with open_host(settings) as host:
            opened = host.open_session("s")
            sessions = []

            async def enter() -> None:
                sessions.append(await opened.__aenter__())
                await sessions[0].load_all()

            async def leave() -> None:
                await opened.__aexit__(None, None, None)

            for step in (enter, leave):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(step)
            assert place.alive() == []
            await sessions[0].aclose()  # once more is nothing


async def test_a_session_that_was_never_closed_ends_with_the_host(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    settings = place.config()
    with nothing_left(place, settings.deadlines.stop_total_s):
        async with open_host(settings) as host:
            opened = host.open_session("s")
            session = await opened.__aenter__()
            await session.load_all()
        assert session.is_closed
        await opened.__aexit__(None, None, None)
