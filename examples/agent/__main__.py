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
from trio_exthost import Confirm, HostClient, ToolCall, open_host


class Terminal(HostClient):
    """Prints what extensions tell the user."""

    def notify(self, session, extension, level, message) -> None:
        print(f"[{extension}] {message}")


def make_confirm() -> Confirm:
    """Asks the person at the terminal, one question at a time; no terminal means no."""
    lock = trio.Lock()

    def ask(question: str) -> str:
        try:
            return input(question)
        except EOFError:
            return ""

    async def confirm(call: ToolCall) -> bool:
        async with lock:
            question = f"run {call.name} {dict(call.arguments)}? [y/N] "
            answer = await trio.to_thread.run_sync(ask, question, abandon_on_cancel=True)
        return answer.strip().lower() in ("y", "yes")

    return confirm


async def main(prompt: str) -> None:
    model = OpenAIModel.from_environment() if os.environ.get("OPENAI_API_KEY") else ScriptedModel()
    tools = builtin_tools(Path.cwd())
    async with (
        open_host() as host,
        host.open_session("agent", client=Terminal(), tools=tools, confirm=make_confirm()) as session,
    ):
        for failure in (await session.load_all()).failed:
            print(failure, file=sys.stderr)
        await run_task(session, model, prompt, show=lambda text: print(text, end="", flush=True))


try:
    trio.run(main, " ".join(sys.argv[1:]) or "Fix the greeting script.")
except ModelError as exc:
    sys.exit(str(exc))
