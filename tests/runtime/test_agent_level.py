"""The agent's level: a tool call from proposal to result, text under streaming, nested calls, sub-agents, compaction."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from runtime.fakes import Guest, codes, world

from trio_exthost import AgentRef, HostInstrument, HostTool, SimpleTool, ToolContext, ToolStatus


class Told(HostInstrument):
    """Keeps the events, with their payloads."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def event_emitted(self, session_id, event, sequence, payload, receivers) -> None:
        self.events.append((str(event), dict(payload)))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [payload for name, payload in self.events if name == event]


def interceptor(point: str, answer, *, capabilities=(), tool: str = ""):
    """Answers each question of a point with what `answer(frame)` gives."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=list(capabilities))
        if tool:
            guest.send(type="register_tool", name=tool, schema={"type": "object"})
        guest.send(type="subscribe", intercept=[point])
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                guest.send(type="event_intercept_response", id=frame["id"], **answer(frame))

    return program


def bash() -> HostTool:
    async def run(arguments, context: ToolContext) -> str:
        return f"ran {arguments['command']}"

    return SimpleTool("bash", "Runs", {"type": "object"}, run)


async def test_a_rewritten_call_runs_as_rewritten_and_is_told_once(tmp_path, autojump_clock) -> None:
    told = Told()
    async with world(tmp_path, instrument=told) as (around, host):
        around.add("a", interceptor("tool_call", lambda frame: {"modified_args": {"command": "safe"}}))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            with session.open_run() as run:
                async with run.tool_call("c", "bash", {"command": "rm"}) as call:
                    assert dict(call.arguments) == {"command": "safe"}
                    assert call.verdict.original["tool_args"] == {"command": "rm"}
                    assert (await call.execute()).text == "ran safe"
    assert [payload["tool_args"] for payload in told.of("tool_call")] == [{"command": "rm"}]
    (result,) = told.of("tool_result")
    assert (result["status"], result["executed"], result["tool_args"]) == ("completed", True, {"command": "safe"})


@pytest.mark.parametrize(
    ("reason", "shown"), [("Nein:\n1\n2 ✓", "Nein:\n1\n2 ✓"), ("", "a refused without giving a reason")]
)
async def test_a_refused_call_gives_the_model_the_reason(tmp_path, autojump_clock, reason: str, shown: str) -> None:
    told = Told()
    async with world(tmp_path, instrument=told) as (around, host):
        around.add("a", interceptor("tool_call", lambda frame: {"block": True, "reason": reason}))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            with session.open_run() as run:
                async with run.tool_call("c", "bash", {"command": "rm"}) as call:
                    assert not await call.confirm()
                    result = await call.execute()
    assert (result.status, result.text, result.may_have_run) == (ToolStatus.BLOCKED, shown, False)
    (event,) = told.of("tool_result")
    assert (event["status"], event["executed"]) == ("blocked", False)


async def test_confirmation_is_told_around_the_question(tmp_path, autojump_clock) -> None:
    told = Told()
    answers = [True, False]

    async def confirm(call) -> bool:
        await trio.lowlevel.checkpoint()
        return answers.pop(0)

    async with world(tmp_path, instrument=told) as (around, host):
        async with host.open_session("s", tools=[bash()], confirm=confirm) as session:
            with session.open_run() as run:
                for expected in ("ran x", "the user did not allow this call"):
                    async with run.tool_call("c", "bash", {"command": "x"}) as call:
                        await call.confirm()
                        assert (await call.execute()).text == expected
    assert [payload["decision"] for payload in told.of("permission_decision")] == ["approved", "denied"]
    assert len(told.of("tool_confirmation_requested")) == 2
    order = [event for event, _ in told.events][1:6]
    assert order == ["tool_call", "tool_confirmation_requested", "permission_decision", "tool_result", "tool_call"]


@pytest.mark.parametrize("at", ["chain", "confirm", "execute"])
async def test_a_cancelled_call_has_exactly_one_result(tmp_path, autojump_clock, at: str) -> None:
    told = Told()

    async def forever(*_: object) -> Any:
        await trio.sleep_forever()

    async def silent(guest: Guest) -> None:
        guest.greet(intercept=["tool_call"])
        await guest.until_shutdown()

    async with world(tmp_path, instrument=told) as (around, host):
        if at == "chain":
            around.add("a", silent)
        tool = SimpleTool("slow", "", {"type": "object"}, forever)
        confirm = forever if at == "confirm" else None
        async with host.open_session("s", tools=[tool], confirm=confirm) as session:
            await session.load_all()
            with session.open_run() as run, trio.move_on_after(1):
                async with run.tool_call("c", "slow", {}) as call:
                    await call.confirm()
                    await call.execute()
    (result,) = told.of("tool_result")
    assert (result["status"], result["executed"]) == ("cancelled", at == "execute")
    if at == "confirm":
        assert [payload["decision"] for payload in told.of("permission_decision")] == ["cancelled"]


async def test_a_tool_that_raises_is_a_failed_result(tmp_path, autojump_clock) -> None:
    async def broken(arguments) -> str:
        raise LookupError("no such thing")

    async with world(tmp_path) as (around, host):
        async with host.open_session("s", tools=[SimpleTool("t", "", {"type": "object"}, broken)]) as session:
            with session.open_run() as run:
                async with run.tool_call("c", "t", {}) as call:
                    result = await call.execute()
                async with run.tool_call("c", "nobody", "{}") as call:
                    unknown = await call.execute()
                async with run.tool_call("c", "t", "{oops") as call:
                    malformed = await call.execute()
    assert (result.status, result.text) == (ToolStatus.FAILED, "LookupError: no such thing")
    assert unknown.is_error
    assert "nobody has a tool 'nobody'" in unknown.text
    assert malformed.status is ToolStatus.BLOCKED
    assert malformed.text.startswith("the arguments are not JSON")


@pytest.mark.parametrize(
    ("answer", "shown", "event"),
    [
        ({}, "Hello, world", ["Hello, world"]),
        ({"replace_text": "Hi"}, "Hi", ["Hi"]),
        ({"block": True}, "", []),
    ],
)
async def test_held_text_is_shown_as_decided(tmp_path, autojump_clock, answer, shown, event) -> None:
    told = Told()
    async with world(tmp_path, instrument=told) as (around, host):
        around.add("a", interceptor("assistant_message", lambda frame: answer))
        async with host.open_session("s") as session:
            await session.load_all()
            with session.open_run() as run:
                async with run.assistant_text("m") as text:
                    assert [await text.feed(piece) for piece in ("Hello", ", world")] == ["", ""]
                assert (text.rest, text.text, text.original) == (shown, shown, "Hello, world")
                assert text.hidden is (shown == "")
    assert [payload["text"] for payload in told.of("assistant_message")] == event


async def test_text_nobody_intercepts_streams_through(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host), host.open_session("s") as session:
        with session.open_run() as run:
            async with run.assistant_text("m") as text:
                assert [await text.feed(piece) for piece in ("a", "b")] == ["a", "b"]
            assert text.rest == ""
            with pytest.raises(KeyError):
                async with run.assistant_text("m") as text:
                    raise KeyError
            assert text.verdict is None


async def test_the_system_prompt_goes_through_the_chain(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add(
            "a",
            interceptor("before_agent_start", lambda f: {"system_prompt": f["system_prompt"] + " A", "block": True}),
        )
        around.add("b", interceptor("before_agent_start", lambda f: {"system_prompt": f["system_prompt"] + " B"}))
        async with host.open_session("s") as session:
            await session.load_all()
            with session.open_run() as run:
                assert await run.system_prompt("base") == "base A B"


async def test_who_consented_before_a_change_is_asked_about_the_final_value(tmp_path, autojump_clock) -> None:
    def careful(frame) -> dict[str, Any]:
        return {"block": frame["tool_args"]["command"] == "worse", "reason": "not that"}

    async with world(tmp_path) as (around, host):
        around.add("careful", interceptor("tool_call", careful))
        around.add("rewrites", interceptor("tool_call", lambda frame: {"modified_args": {"command": "worse"}}))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            verdict = await session.intercept("tool_call", {"tool_name": "bash", "tool_args": {"command": "fine"}})
    assert (verdict.blocked, verdict.by, verdict.reason) == (True, "careful", "not that")
    assert [step.extension for step in verdict.steps] == ["careful", "rewrites", "careful"]


async def test_sub_agents_and_compactions_are_told_in_pairs(tmp_path, autojump_clock) -> None:
    told = Told()
    async with world(tmp_path, instrument=told) as (around, host), host.open_session("s") as session:
        with session.open_run() as run:
            with session.open_run(parent=run, agent=AgentRef("1", "helper")) as inner:
                inner.prompt_submitted("go")
            with pytest.raises(OSError), session.open_run(parent=run, agent=AgentRef("2", "helper")):
                raise OSError("disk")
            with run.compaction(message_count=9, token_estimate=100):
                pass
            with pytest.raises(trio.TooSlowError), run.compaction(message_count=9, token_estimate=100):
                raise trio.TooSlowError
            await trio.lowlevel.checkpoint()
    assert [payload["status"] for payload in told.of("subagent_stop")] == ["completed", "failed"]
    assert [payload["status"] for payload in told.of("post_compact")] == ["completed", "timed_out"]
    assert len(told.of("subagent_start")) == len(told.of("pre_compact")) == 2


def caller(*calls: dict[str, Any], capabilities=("call_tool",), results: list[dict[str, Any]]):
    """Has a tool `outer`; when it is called, makes these calls of its own, one after the other, then answers."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=list(capabilities))
        guest.send(type="register_tool", name="outer", schema={"type": "object"})
        guest.send(type="ready")
        while True:
            frame = await guest.frames("tool_call", "shutdown")
            if frame["type"] == "shutdown":
                return
            for number, call in enumerate(calls):
                parent = {"parent_id": frame["id"]} if "parent_id" not in call else {}
                guest.send(type="call_tool", id=f"n{number}", **{**parent, **call})
                results.append(await guest.frames("tool_result"))
            guest.send(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "done"}])

    return program


async def test_an_extension_calls_a_tool_through_the_same_gates(tmp_path, autojump_clock) -> None:
    results: list[dict[str, Any]] = []
    told = Told()
    refuse = interceptor("tool_call", lambda f: {"block": f["tool_args"].get("command") == "bad", "reason": "no"})
    async with world(tmp_path, instrument=told) as (around, host):
        around.add("guard", refuse)
        calls = [
            {"name": "bash", "args": {"command": "good"}},
            {"name": "bash", "args": {"command": "bad"}},
            {"name": "outer", "args": {}},
            {"name": "bash", "args": {"command": "x"}, "parent_id": "77"},
            {"name": "bash", "args": {"command": "x"}, "parent_id": ""},
            {"name": "bash", "args": [1]},
        ]
        around.add("a", caller(*calls, results=results))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            with session.open_run() as run:
                async with run.tool_call("c", "outer", {}) as call:
                    assert (await call.execute()).text == "done"
    texts = [result["content"][0]["text"] for result in results]
    assert texts[:2] == ["ran good", "no"]
    for text, words in zip(
        texts[2:],
        ["cycle", "no call with parent_id '77'", "name its id as parent_id", "args that are an object"],
        strict=True,
    ):
        assert words in text
    assert [result.get("is_error", False) for result in results] == [False, True, True, True, True, True]
    nested = [payload for payload in told.of("tool_result") if payload.get("origin_extension") == "a"]
    assert [payload["status"] for payload in nested] == ["completed", "blocked"]


async def test_without_the_capability_call_tool_is_refused(tmp_path, autojump_clock) -> None:
    results: list[dict[str, Any]] = []
    async with world(tmp_path) as (around, host):
        around.add("a", caller({"name": "bash", "args": {}}, capabilities=(), results=results))
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            await session.call_tool("outer", {})
    assert "capability" in results[0]["content"][0]["text"]


async def test_an_extension_is_not_asked_about_its_own_call(tmp_path, autojump_clock) -> None:
    asked: list[str] = []

    async def program(guest: Guest) -> None:
        guest.greet(capabilities=["call_tool"], intercept=["tool_call"])
        await guest.frames("hello_ack")
        guest.send(type="call_tool", id="1", name="bash", args={"command": "mine"})
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            asked.append(frame["type"])

    async with world(tmp_path) as (around, host):
        around.add("a", program)
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()
    assert asked == ["tool_result"]


async def test_a_built_in_name_is_refused_and_the_first_extension_keeps_a_name(tmp_path, autojump_clock) -> None:
    async def registers(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name)
        for name in ("bash", "search", "bad name"):
            guest.send(type="register_tool", name=name, schema={"type": "object"}, description=guest.name)
        guest.send(type="register_tool", name="text", schema={"type": "string"})
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", registers)
        around.add("b", registers)
        async with host.open_session("s", tools=[bash()]) as session:
            await session.load_all()
            assert [(tool.name, tool.extension) for tool in session.tools()] == [("bash", None), ("search", "a")]
            assert codes(host).count("registration_refused") == 7
            await session.unload("a")
            assert [tool.name for tool in session.tools()] == ["bash"]
