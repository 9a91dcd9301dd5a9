"""The agent's loop. Between the two rules below are its calls into the host: what an embedder copies. `offered` lists tools."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from trio_exthost import AgentRef, ModelRef, Run, Session

from .model import Delta, Model, ModelError, ToolRequest

BASE_PROMPT = "You are a careful programmer. Work in the current directory with the tools you have."
MAX_STEPS = 20
TASK_TOOL = {
    "type": "function",
    "function": {
        "name": "task",
        "description": "Have a sub-agent work on something at the same time.",
        "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    },
}


@dataclass
class Agent:
    """One conversation with a model, in a session of the host."""

    session: Session
    model: Model
    show: Callable[[str], None]
    is_helper: bool = False

    # ---- calls into the host ------------------------------------------------------------------------------------

    async def work(self, prompt: str, parent: Run | None = None, agent: AgentRef | None = None) -> str:
        """Work off one request of the user; the last text."""
        answer = ""
        with self.session.open_run(parent=parent, agent=agent) as run:
            given = await run.input(prompt)
            if given.outcome is not None:
                return str(given.outcome)  # an extension has handled it
            begun = await run.begin(system_prompt=BASE_PROMPT, messages=[given.message])
            messages = [system(await run.system_prompt(begun.system_prompt or "")), *map(dict, begun.messages)]
            for step in itertools.count(1):
                if (verdict := await run.turn_start(step)).blocked or step > MAX_STEPS:
                    self.show(f"stopped: {verdict.reason or 'too many steps'}\n")
                    break
                try:
                    answer, requests = await self.listen(run, messages, f"message-{step}")
                except BaseException as exc:  # also a cancellation: the turn's end is told in every case
                    run.turn_end(error=reason_of(exc))
                    raise
                run.turn_end(stop="tool_calls" if requests else "stop")
                results = await self.use_tools(run, requests)
                run.turn_completed(messages[-1], results)
                messages += results
                if not requests:
                    break
        return answer

    async def listen(self, run: Run, messages: list[dict[str, Any]], message_id: str) -> tuple[str, list[ToolRequest]]:
        """One answer of the model: shown as far as it may be, kept in the transcript as hooks left it."""
        requests: list[ToolRequest] = []
        send, deltas = trio.open_memory_channel[Delta](math.inf)  # bounded by the model's answer
        seen = await run.context(messages)
        with run.open_request():
            request = await run.model_request(request_of(self.session.model, seen, self.offered()))
            try:
                async with run.assistant_text(message_id) as text, trio.open_nursery() as nursery:
                    nursery.start_soon(self.model.stream, *call_of(request), send)
                    async for delta in deltas:
                        if delta.tool is not None:
                            requests.append(delta.tool)
                        elif shown := await text.feed(delta.text):
                            self.show(shown)
            except BaseException as exc:  # also a cancellation, as above
                run.model_failed({"message": reason_of(exc)})
                raise
            run.model_response({"tool_calls": len(requests)})
        self.show(f"{text.rest}\n")
        messages.append(assistant_message(str(text.message["content"]), requests))
        return text.text, requests

    async def use_tool(self, run: Run, request: ToolRequest) -> str:
        """One tool call; its text is for the model, whatever became of it."""
        async with run.tool_call(request.id, request.name, request.arguments) as call:
            await call.confirm()
            return (await call.execute()).text

    # -------------------------------------------------------------------------------------------------------------

    async def use_tools(self, run: Run, requests: list[ToolRequest]) -> list[dict[str, Any]]:
        """All tool calls of one answer at the same time; results in the model's order."""
        results: dict[int, str] = {}  # by place: models have given two calls one id

        async def use(place: int, request: ToolRequest) -> None:
            is_task = request.name == "task" and not self.is_helper
            results[place] = await (self.delegate if is_task else self.use_tool)(run, request)

        async with trio.open_nursery() as nursery:
            for place, request in enumerate(requests):
                nursery.start_soon(use, place, request)
        return [
            {"role": "tool", "tool_call_id": request.id, "content": results[place]}
            for place, request in enumerate(requests)
        ]

    async def delegate(self, run: Run, request: ToolRequest) -> str:
        """A sub-agent: a run of its own, with this one as its parent. Its failure is this agent's to read."""
        try:
            prompt = str(json.loads(request.arguments)["prompt"])
        except (ValueError, TypeError, KeyError, RecursionError) as exc:
            return f"task takes an object with a prompt: {type(exc).__name__}: {exc}"
        helper = Agent(self.session, self.model, lambda text: None, is_helper=True)
        reference = AgentRef(f"agent-{next(_numbers)}", "task")
        failures: list[str] = []
        try:
            return await helper.work(prompt, parent=run, agent=reference)
        except* ModelError as group:
            failures.append(reason_of(group))
        return f"the sub-agent failed: {failures[0]}"

    def offered(self) -> list[dict[str, Any]]:
        """The tools as the model is offered them: the session's, and the sub-agent, which has none of its own."""
        tools = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in self.session.tools()
            if tool.active
        ]
        return tools if self.is_helper else [*tools, TASK_TOOL]


def system(prompt: str) -> dict[str, Any]:
    """A transcript's first message."""
    return {"role": "system", "content": prompt}


def request_of(model: ModelRef, messages: list[Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """A request to the model, as extensions are shown it: the system prompt apart, the tools without their wrapping."""
    first, *rest = messages or [system("")]
    is_apart = first["role"] == "system"
    functions = [tool["function"] for tool in tools]
    return {
        "provider": model.provider,
        "model": model.model,
        "system_instructions": first["content"] if is_apart else "",
        "messages": rest if is_apart else messages,
        "visible_tools": functions,
        "executable_tool_names": [each["name"] for each in functions],
        "generation_options": {},
    }


def call_of(request: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The same as the model's client wants it."""
    tools = [{"type": "function", "function": each} for each in request["visible_tools"]]
    return [system(request["system_instructions"]), *request["messages"]], tools


def reason_of(exc: BaseException) -> str:
    """Why the model's answer ended early, for those who are told."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return "cancelled" if isinstance(exc, trio.Cancelled) else str(exc) or type(exc).__name__


def assistant_message(text: str, requests: list[ToolRequest]) -> dict[str, Any]:
    """The model's answer as the transcript keeps it."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if requests:
        message["tool_calls"] = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in requests
        ]
    return message


async def run_task(session: Session, model: Model, prompt: str, *, show: Callable[[str], None]) -> str:
    """Work off one request; the agent's last text as the user may see it.

    Raises:
      ModelError: The endpoint failed.
    """
    try:
        return await Agent(session, model, show).work(prompt)
    except ExceptionGroup as group:
        failures, rest = group.split(ModelError)
        if failures is None or rest is not None:
            raise
        while isinstance(failures, ExceptionGroup):
            failures = failures.exceptions[0]
        raise failures from group


_numbers = itertools.count(1)
