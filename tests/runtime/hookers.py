"""A fake extension that registers hooks and answers each invocation with what the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runtime.fakes import Guest, Program

Reply = Callable[[str, Mapping[str, Any]], dict[str, Any] | None]
"""From an event and its payload to the rest of an `invoke_result`; None: no answer."""


def abstain(_event: str, _payload: Mapping[str, Any]) -> dict[str, Any]:
    """The empty answer."""
    return {}


def hooker(
    *descriptors: Mapping[str, Any],
    reply: Reply = abstain,
    capabilities: tuple[str, ...] = ("effects",),
    **subscribe: Any,
) -> Program:
    """Registers these hooks, as 1, 2, ...; its invocations are among the frames it received."""

    async def program(guest: Guest) -> None:
        guest.greet(capabilities=capabilities, ready=False, **subscribe)
        for number, descriptor in enumerate(descriptors, 1):
            guest.send(type="register", registration_id=number, kind="hook", descriptor=descriptor)
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None:
            if frame["type"] == "shutdown":
                return
            if frame["type"] == "invoke":
                envelope = frame["envelope"]
                answer = reply(envelope["event"], envelope["payload"])
                if answer is not None:
                    guest.send(type="invoke_result", id=frame["id"], **answer)

    return program


def invoked(guest: Guest, event: str | None = None) -> list[dict[str, Any]]:
    """The envelopes it was invoked with, in order."""
    envelopes = [frame["envelope"] for frame in guest.received if frame["type"] == "invoke"]
    return [each for each in envelopes if event in (None, each["event"])]


def observed(guest: Guest, event: str | None = None) -> list[dict[str, Any]]:
    """The event frames it received, in order."""
    return [frame for frame in guest.received if frame["type"] == "event" and event in (None, frame["event"])]


def gate(kind: str, message: str = "", code: str = "", **more: Any) -> dict[str, Any]:
    """The answer of a gate."""
    return {"decision": {"kind": kind, "message": message, "code": code}, **more}


def action(kind: str, **fields: Any) -> dict[str, Any]:
    """An answer with one action."""
    return {"actions": [{"kind": kind, **fields}]}
