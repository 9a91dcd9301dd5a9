"""The example agent's client: what is asked at the terminal, and what a script types there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from runtime.askers import Asker, listen
from runtime.fakes import world
from trio.testing import wait_all_tasks_blocked

from trio_exthost import HostConfig, Session, open_host
from trio_exthost.cli.examples import agent_module

terminal = agent_module("terminal")
scripted = agent_module("scripted")


class Script:
    """Types a line for each prompt; EOF after the last."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    async def __call__(self, prompt: str) -> str:
        await trio.lowlevel.checkpoint()
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


@asynccontextmanager
async def at_the_terminal(tmp_path: Path, read: Callable[[str], object]) -> AsyncIterator[tuple[Session, Asker, str]]:
    """An extension whose tool runs, and somebody at the terminal."""
    client = terminal.Terminal(read)
    async with world(tmp_path) as (around, host):
        around.add("a", listen, permissions=("tools.register",))
        async with host.open_session("s", client=client) as session, trio.open_nursery() as nursery:
            nursery.start_soon(client.answer_all)
            await session.load_all()
            one = Asker(session, around.guests["a"])
            nursery.start_soon(one.call)
            invocation = await one.invoked()
            yield session, one, invocation
            await one.finish(invocation)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("asked", "typed", "outcome"),
    [
        ({}, ["y"], ("answered", True)),
        ({}, ["Yes "], ("answered", True)),
        ({}, [""], ("answered", False)),
        ({"default": True}, [""], ("answered", True)),
        ({"default": True}, ["n"], ("answered", False)),
        ({}, [], ("declined", None)),
        ({"kind": "select", "options": ["red", "2"]}, ["2"], ("answered", "2")),
        ({"kind": "select", "options": ["red", "blue"]}, ["9", "", "blue"], ("answered", "blue")),
        ({"kind": "select", "options": ["red", "blue"], "default": "red"}, [""], ("answered", "red")),
        ({"kind": "input"}, [" me "], ("answered", "me")),
        ({"kind": "input", "default": "you"}, [""], ("answered", "you")),
    ],
)
async def test_what_is_typed_is_the_answer(tmp_path, autojump_clock, asked, typed, outcome) -> None:
    script = Script(*typed)
    async with at_the_terminal(tmp_path, script) as (_, one, invocation):
        await one.ask(invocation, **asked)
        assert one.told() == [("q", *outcome)]
    assert len(script.prompts) == max(len(typed), 1)


async def test_the_prompt_shows_who_asks_and_lets_nothing_move_the_cursor(tmp_path, autojump_clock) -> None:
    script = Script("1")
    async with at_the_terminal(tmp_path, script) as (_, one, invocation):
        more = {"kind": "select", "options": ["x", "y"], "default": "y"}
        await one.ask(invocation, title="Which\x1b[2J?", message="one\rtwo\n[b] Sure?", **more)
    assert script.prompts == ["[a] Which\\x1b[2J?\n  one\\rtwo\n  [b] Sure?\n  1. x\n  2. y\n[y]> "]


async def test_a_question_withdrawn_while_somebody_types_makes_way_for_the_next(tmp_path, autojump_clock) -> None:
    typing = trio.Event()
    prompts: list[str] = []

    async def read(prompt: str) -> str:
        prompts.append(prompt)
        if len(prompts) == 1:
            await typing.wait()
        return "y"

    async with at_the_terminal(tmp_path, read) as (_, one, invocation):
        await one.ask(invocation, "first", timeout_ms=1000)
        await one.ask(invocation, "withdrawn before anybody reads it", timeout_ms=1000)
        await one.ask(invocation, "last")
        await trio.sleep(2)
        typing.set()
        await wait_all_tasks_blocked()
        assert one.told()[-1] == ("last", "answered", True)
    assert len(prompts) == 2


async def test_the_scripted_task_with_a_script_at_the_terminal(tmp_path: Path) -> None:
    prompts: list[str] = []

    async def read(prompt: str) -> str:
        await trio.lowlevel.checkpoint()
        prompts.append(prompt)
        return "n" if "curl" in prompt or "push" in prompt else "y"

    (tmp_path / "greet.sh").write_text('#!/bin/sh\necho "helo, wrld"\n')
    config = HostConfig(project_roots=(), user_roots=(), data_dir=tmp_path / "data")
    client = terminal.Terminal(read)
    tools = agent_module("builtin").builtin_tools(tmp_path)
    with trio.fail_after(60):
        async with (
            open_host(config) as host,
            host.open_session("s", cwd=tmp_path, client=client, tools=tools) as session,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(client.answer_all)
            run_task = agent_module("agent").run_task
            await run_task(session, scripted.ScriptedModel(), "Fix it.", show=lambda words: None)
            nursery.cancel_scope.cancel()
    assert (tmp_path / "greet.sh").read_text() == '#!/bin/sh\necho "hello, world"\n'
    assert sorted(prompt.split("\n")[0] for prompt in prompts) == [
        *["Run bash?"] * 4,
        *["Run read?"] * 2,
        "Run write?",
    ]
    assert all(prompt.endswith("\n[y/N]> ") for prompt in prompts)
