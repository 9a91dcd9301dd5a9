"""A client of any OpenAI-compatible endpoint, streaming."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import trio


@dataclass(frozen=True)
class ToolRequest:
    """A tool call as the model wrote it; `arguments` is its JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Delta:
    """A piece of text, or a whole tool call."""

    text: str = ""
    tool: ToolRequest | None = None


class ModelError(Exception):
    """The endpoint did not answer as it should."""


class Model(Protocol):
    """What the agent needs of a model."""

    name: str

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], send: trio.MemorySendChannel[Delta]
    ) -> None:
        """Send the answer piece by piece without blocking (the channel has no bound), then close the channel."""


@dataclass
class OpenAIModel:
    """`POST {base_url}/chat/completions` with `stream`."""

    base_url: str
    api_key: str
    name: str

    @classmethod
    def from_environment(cls) -> OpenAIModel:
        """OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL."""
        return cls(
            os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
            os.environ["OPENAI_API_KEY"],
            os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        )

    async def stream(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], send: trio.MemorySendChannel[Delta]
    ) -> None:
        """Send text as it comes; tool calls, which come in pieces, once they are whole."""
        import httpx

        body = {"model": self.name, "messages": messages, "stream": True, **({"tools": tools} if tools else {})}
        calls = _ToolCalls()
        with send:
            try:
                async with (
                    httpx.AsyncClient(timeout=httpx.Timeout(60, read=300)) as client,
                    client.stream(
                        "POST",
                        f"{self.base_url.rstrip('/')}/chat/completions",
                        json=body,
                        headers={"Authorization": f"Bearer {self.api_key}"},
                    ) as response,
                ):
                    if response.status_code != 200:
                        text = (await response.aread()).decode(errors="replace")
                        raise ModelError(f"the model's endpoint answered {response.status_code}: {_line(text)}")
                    await _read_events(response, calls, send)
            except httpx.HTTPError as exc:
                raise ModelError(f"the model's endpoint failed: {type(exc).__name__}: {_line(str(exc))}") from exc
            for call in calls.whole():
                send.send_nowait(Delta(tool=call))


async def _read_events(response: Any, calls: _ToolCalls, send: trio.MemorySendChannel[Delta]) -> None:
    """Server-sent events: `data:` lines; comments and empty lines are skipped; [DONE] ends it.

    Always to the end of the stream, and without an await of our own in the loop: httpx reads through async generators, and
    one that is left half-way is closed by the garbage collector, whenever that is.
    """
    is_done = False
    failure = ""
    async for line in response.aiter_lines():
        data = line[5:].strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            is_done = True
        elif data and not failure:
            try:
                chunk = json.loads(data)
                if error := chunk.get("error"):
                    failure = f"the model's endpoint failed in mid-stream: {_line(json.dumps(error))}"
                is_done |= _pass_on(chunk.get("choices") or [], calls, send)
            except (ValueError, TypeError, AttributeError, RecursionError):
                failure = f"the model's endpoint sent what is no piece of an answer: {_line(data)}"
    if failure or not is_done:
        raise ModelError(failure or "the model's endpoint ended in mid-stream")


def _pass_on(choices: list[dict[str, Any]], calls: _ToolCalls, send: trio.MemorySendChannel[Delta]) -> bool:
    """Whether the answer is complete: some servers say it with a finish_reason only."""
    is_done = False
    for choice in choices:
        delta = choice.get("delta") or {}
        if text := delta.get("content"):
            with suppress(trio.BrokenResourceError):  # nobody listens any more: the next read is cancelled
                send.send_nowait(Delta(text=text + ""))  # a TypeError, where it is no text
        for piece in delta.get("tool_calls") or []:
            calls.add(piece)
        is_done |= bool(choice.get("finish_reason"))
    return is_done


def _line(text: str) -> str:
    """What a server wrote, as one short line that is safe to print."""
    return "".join(char if char.isprintable() else " " for char in text[:300]).strip()


@dataclass
class _ToolCalls:
    """Tool calls put together from their pieces, by index."""

    parts: dict[int, dict[str, str]] = field(default_factory=dict)

    def add(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        if index is None:  # some servers send whole calls, without an index
            index = len(self.parts) if piece.get("id") or not self.parts else max(self.parts)
        part = self.parts.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = piece.get("function") or {}
        part["id"] = piece.get("id") or part["id"] or f"call-{index}"
        part["name"] += function.get("name") or ""
        part["arguments"] += function.get("arguments") or ""

    def whole(self) -> list[ToolRequest]:
        return [ToolRequest(**self.parts[index]) for index in sorted(self.parts)]
