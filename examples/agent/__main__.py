"""`python examples/agent "do this"`: with OPENAI_API_KEY against a real model, else with the scripted one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

if not __package__:  # started as a directory: make it the package it is
    sys.path.insert(0, str(Path(__file__).parents[1]))
    __package__ = "agent"

from agent.agent import run_task
from agent.builtin import builtin_tools
from agent.model import ModelError, OpenAIModel
from agent.scripted import ScriptedModel
from agent.terminal import Terminal
from trio_exthost import open_host


async def main(prompt: str) -> str:
    """Work off one request; why that failed, or nothing."""
    model = OpenAIModel.from_environment() if os.environ.get("OPENAI_API_KEY") else ScriptedModel()
    terminal = Terminal()
    failure = ""
    async with (
        open_host() as host,
        host.open_session("agent", client=terminal, tools=builtin_tools(Path.cwd())) as session,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(terminal.answer_all)
        for failed in (await session.load_all()).failed:
            print(failed, file=sys.stderr)
        try:
            await run_task(session, model, prompt, show=lambda text: print(text, end="", flush=True))
        except ModelError as exc:
            failure = str(exc)
        nursery.cancel_scope.cancel("the task is done")
    return failure


sys.exit(trio.run(main, " ".join(sys.argv[1:]) or "Fix the greeting script.") or 0)
