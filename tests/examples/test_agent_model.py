"""What the real client makes of streams that are not as they should be, and what the agent makes of the model's mistakes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from loopback import Endpoint, Told, endpoint, host_with_guard, openai, session_in, text, tool

from trio_exthost.cli.examples import agent_module

agent = agent_module("agent")
model = agent_module("model")


async def stream(server: Endpoint) -> list[Any]:
    """The client's own deltas, without a host."""
    send, receive = trio.open_memory_channel[Any](1000)
    with trio.fail_after(30):
        await openai(server).stream([{"role": "user", "content": "x"}], [], send)
    return [delta async for delta in receive]


async def test_calls_whose_pieces_come_interleaved_are_put_together_by_index() -> None:
    first, second = tool(0, "a", "read", {"path": "über.txt"}), tool(1, "b", "bash", {"command": "ls"})
    mixed = (
        [piece for pair in zip(second, first, strict=False) for piece in pair]
        + second[len(first) :]
        + first[len(second) :]
    )
    async with endpoint(lambda messages: [*text("hé"), *mixed]) as server:
        deltas = await stream(server)
    assert "".join(delta.text for delta in deltas) == "hé"
    calls = [delta.tool for delta in deltas if delta.tool]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in calls] == [
        ("a", "read", {"path": "über.txt"}),
        ("b", "bash", {"command": "ls"}),
    ]


async def test_whole_calls_without_an_index_stay_apart() -> None:
    calls = [{"id": name, "function": {"name": "read", "arguments": "{}"}} for name in ("a", "b")]
    async with endpoint(lambda messages: [{"delta": {"tool_calls": [call]}} for call in calls]) as server:
        assert [delta.tool.id for delta in await stream(server)] == ["a", "b"]


async def test_a_finish_reason_ends_an_answer_that_has_no_done_line() -> None:
    async with endpoint(lambda messages: [*text("Hi"), {"delta": {}, "finish_reason": "stop"}]) as server:
        server.is_cut = True
        assert [delta.text for delta in await stream(server)] == ["Hi"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"error": {"message": "overloaded\\u001b[2J"}}', "failed in mid-stream: .*overloaded"),
        ("{not json", "no piece of an answer: {not json"),
        ("{\x1b[2J", r"no piece of an answer: { \[2J"),
        ("[1]", "no piece of an answer"),
        ('{"choices": [{"delta": {"content": 7}}]}', "no piece of an answer"),
        ('{"choices": [null]}', "no piece of an answer"),
        ("[" * 5000, "no piece of an answer"),
    ],
)
async def test_a_malformed_piece_is_one_clear_error_in_one_line(line: str, words: str) -> None:
    async with endpoint(lambda messages: text("Hi")) as server:
        server.extra = f"data: {line}\n\n"
        with pytest.raises(model.ModelError, match=words) as caught:
            await stream(server)
    assert str(caught.value).isprintable()


async def test_no_server_is_one_clear_error() -> None:
    async with endpoint(lambda messages: []) as server:
        pass
    with pytest.raises(model.ModelError, match="endpoint failed: ConnectError"):
        await stream(server)


async def test_a_turn_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    told = Told()
    with trio.fail_after(60):
        async with endpoint(lambda messages: text("Hi")) as server, host_with_guard(tmp_path, told) as host:
            server.status = 500
            async with session_in(host, "s", tmp_path / "s") as session:
                with pytest.raises(model.ModelError, match="answered 500"):
                    await agent.run_task(session, openai(server), "x", show=lambda words: None)
    (ended,) = [payload for _, event, payload in told.events if event == "turn_end"]
    assert ended["error"].startswith("the model's endpoint answered 500")
    assert "assistant_message" not in [event for _, event, _ in told.events]


def mistaken(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A model that gives two calls one id, calls what is not there, and delegates badly and to an agent that fails."""
    if messages[1]["content"] == "sub":
        return [*tool(0, "x", "task", {"prompt": "deeper"})] if len(messages) == 2 else [{"delta": {"content": 7}}]
    results = [each["content"] for each in messages if each["role"] == "tool"]
    if results:
        return text("\n".join(results))
    return [
        *tool(0, "same", "read", {"path": "a.txt"}),
        *tool(1, "same", "nonsense", {}),
        *tool(2, "c", "task", {"promt": "x"}),
        *tool(3, "d", "task", {"prompt": "sub"}),
    ]


async def test_the_mistakes_of_a_model_are_results_for_it_to_read(tmp_path: Path) -> None:
    told = Told()
    with trio.fail_after(60):
        async with endpoint(mistaken) as server, host_with_guard(tmp_path, told) as host:
            async with session_in(host, "s", tmp_path / "s") as session:
                (tmp_path / "s/a.txt").write_text("here")
                answer = await agent.run_task(session, openai(server), "x", show=lambda words: None)
                assert not session.is_closed
    read, nonsense, badly, failed = answer.split("\n")
    assert read == "here"
    assert nonsense.startswith("nobody has a tool 'nonsense'")
    assert badly == "task takes an object with a prompt: KeyError: 'prompt'"
    assert failed.startswith("the sub-agent failed: the model's endpoint sent what is no piece of an answer")
    starts = [payload for _, event, payload in told.events if event == "subagent_start"]
    stops = [payload for _, event, payload in told.events if event == "subagent_stop"]
    assert len(starts) == len(stops) == 1, "a sub-agent has none of its own"
    assert stops[0]["status"] == "failed"
    offered = [{each["function"]["name"] for each in request["tools"]} for request in server.requests]
    assert [names for names in offered if "task" not in names] == [{"read", "write", "bash"}] * 2


async def test_a_model_that_never_stops_is_stopped(tmp_path: Path) -> None:
    shown: list[str] = []
    with trio.fail_after(60):
        async with endpoint(partial(lambda calls, messages: calls, tool(0, "t", "read", {"path": "a"}))) as server:
            async with host_with_guard(tmp_path, Told()) as host, session_in(host, "s", tmp_path / "s") as session:
                await agent.run_task(session, openai(server), "x", show=shown.append)
    assert len(server.requests) == agent.MAX_STEPS
    assert shown[-1] == "stopped: too many steps\n"
