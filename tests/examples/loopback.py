"""What the tests of the example agent share: an endpoint on the loopback interface that streams as such servers do, and a host."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio

from trio_exthost import Host, HostConfig, HostInstrument, Session, open_host
from trio_exthost.cli.examples import agent_module, examples_directory

model = agent_module("model")
Script = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def text(words: str, *, cut: int = 3) -> list[dict[str, Any]]:
    """Chunks of a text, cut where a server would not."""
    return [{"delta": {"content": words[start : start + cut]}} for start in range(0, len(words), cut)]


def tool(index: int, id: str, name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Chunks of a tool call: its id and name first, its arguments in pieces, each with the index only."""
    whole = json.dumps(arguments)
    first = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [
        {"index": index, "function": {"arguments": whole[start : start + 4]}} for start in range(0, len(whole), 4)
    ]
    return [{"delta": {"tool_calls": [piece]}} for piece in [first, *pieces]]


class Endpoint:
    """An OpenAI-compatible endpoint on the loopback interface."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.is_cut = False
        self.extra = ""
        self.is_stalled = False
        self.ended = trio.Event()
        self.base_url = ""

    async def serve(self, stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):  # a client that is cancelled hangs up
            await self.answer(stream)
        self.ended.set()

    async def answer(self, stream: trio.SocketStream) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive_some()
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += await stream.receive_some()
        request = json.loads(body)
        self.requests.append({"path": head.split(b" ")[1].decode(), "head": head.decode(), **request})
        if self.status != 200:
            await stream.send_all(
                f"HTTP/1.1 {self.status} Nope\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".encode()
            )
            return
        await stream.send_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        events = ": ping\n\n" + "".join(
            f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in self.script(request["messages"])
        )
        events += self.extra
        if not self.is_cut:
            usage = json.dumps({"choices": [], "usage": {"total_tokens": 1}})
            events += f"data: {usage}\n\ndata: [DONE]\n\n"
        data = events.encode()
        for start in range(0, len(data), 11):
            piece = data[start : start + 11]
            await stream.send_all(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if self.is_stalled:
            while await stream.receive_some():
                pass
            return
        await stream.send_all(b"0\r\n\r\n")


@asynccontextmanager
async def endpoint(script: Script) -> AsyncIterator[Endpoint]:
    server = Endpoint(script)
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        server.base_url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1"
        yield server
        nursery.cancel_scope.cancel("the test is over")


class Told(HostInstrument):
    def __init__(self) -> None:
        self.events: list[tuple[str, str, dict[str, Any]]] = []
        self.verdicts: list[tuple[str, str]] = []

    def event_emitted(self, session_id, event, sequence, payload, receivers) -> None:
        self.events.append((session_id, str(event), dict(payload)))

    def chain_ended(self, session_id, verdict, seconds) -> None:
        self.verdicts.append((session_id, verdict.outcome.value))


@asynccontextmanager
async def host_with_guard(tmp_path: Path, told: Told) -> AsyncIterator[Host]:
    config = HostConfig(
        extensions=[examples_directory() / "extensions/guard"],
        project_roots=(),
        user_roots=(),
        data_dir=tmp_path / "data",
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )
    async with open_host(config, instrument=told) as host:
        yield host


@asynccontextmanager
async def session_in(host: Host, name: str, scratch: Path) -> AsyncIterator[Session]:
    scratch.mkdir()
    tools = agent_module("builtin").builtin_tools(scratch)
    async with host.open_session(name, cwd=scratch, tools=tools) as session:
        report = await session.load_all()
        assert report.ready == ("guard",), report
        yield session


def openai(server: Endpoint) -> Any:
    return model.OpenAIModel(server.base_url, "key-of-the-test", "some-model")
