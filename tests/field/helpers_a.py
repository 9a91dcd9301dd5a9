"""What several of the field's cases share: changed manifests, a session over one extension, scenarios for a process of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio
from runtime.real.programs import Place, assert_good_answers, codes_of, emit_in_step, row_of, text_of, until_state

from trio_exthost import CallTimedOut, Deadlines, Overloaded, open_host

SOON = Deadlines(
    ready_cap_s=30, tool_s=0.4, intercept_s=0.4, chain_s=0.8, stall_s=60, stop_grace_s=0.3, term_grace_s=0.2
)
"""Patient with starts, impatient with answers."""
ASK = {"tool_id": "t", "tool_name": "bash", "tool_args": {}}
"""What is asked at `tool_call`."""
IGNORES = "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
"""A program that goes on when it is asked to go."""


def change_manifest(directory: Path, **changes: Any) -> None:
    """Set these keys of an extension's manifest; None takes one out."""
    path = directory / "extension.json"
    manifest = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))


def script(directory: Path, text: bytes, *, mode: int = 0o755) -> Path:
    """Have an extension run this file of its own."""
    path = directory / "run"
    path.write_bytes(text)
    path.chmod(mode)
    change_manifest(directory, exec="./run", args=None)
    return path


def failed(session: Any, name: str) -> Any:
    """The error of an extension in the report of the load."""
    (error,) = [each for each in session.report.failed if each.extension == name]
    return error


async def endless_line(place: Place) -> dict[str, object]:
    """A program called `endless` never ends its line; how it ends, and whether `good` is well."""
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        row = await until_state(session, "endless", "failed", "stopping")
        await assert_good_answers(session)
        return {"codes": codes_of(host, "endless"), "reason": row.reason}


async def loud(place: Place) -> dict[str, object]:
    """A program called `loud` floods its stderr before it greets, and in its tool `t`."""
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        with trio.fail_after(30):
            answer = text_of(await session.call_tool("t", {}))
        log = row_of(session, "loud").log_path
        await assert_good_answers(session)
    return {
        "answer": answer,
        "tail": log.read_bytes()[-600:].decode(errors="replace"),
        "bytes": sum(each.stat().st_size for each in log.parent.iterdir()),
    }


async def deaf(place: Place) -> dict[str, object]:
    """A program called `deaf` never reads, a neighbour does: 20,000 events, then a call and a question."""
    async with open_host(place.config(deadlines=SOON)) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        seen = await emit_in_step(session, 0, 20_000, text="x" * 1000)
        with trio.fail_after(SOON.tool_s + 0.5):
            try:
                await session.call_tool("never", {})
            except (Overloaded, CallTimedOut) as exc:
                ended = exc.code
        verdict = await session.intercept("tool_call", ASK)
        await assert_good_answers(session)
        return {
            "in_order": seen == list(range(20_000)),
            "ended": ended,
            "asked": [step.kind.value for step in verdict.steps],
            "codes": codes_of(host, "deaf"),
        }


async def live_until_killed(place: Place) -> None:
    """A host that goes on until it is killed."""
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        print(len((await session.load_all()).ready), flush=True)
        await trio.sleep_forever()
