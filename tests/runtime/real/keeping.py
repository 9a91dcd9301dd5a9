"""An extension that stores what it is told, in a real host over SQLite; and what is on the disk afterwards."""

from __future__ import annotations

import subprocess
from contextlib import asynccontextmanager

import trio
from runtime.real.programs import PATIENCE_S, Place, alone_argv

from trio_exthost import Success, open_host
from trio_exthost.state import Projection, SessionState
from trio_exthost.state.sqlite import SqliteStores

SECTION = {"permissions": ["session.write", "commands.register"], "state_schema": 1}

KEEPER = """
def run(frame):
    arguments = frame["envelope"]["payload"]["arguments"]
    seen = []
    for number, (operation, values) in enumerate(arguments.get("brokers", [])):
        send(type="broker_call", id=f"b{number}", invocation=frame["id"], operation=operation, arguments=values)
        result = next(frames("broker_result"))
        seen.append(result["value"] if result["ok"] else result["error"]["code"])
    for number, (space, actions) in enumerate(arguments.get("commits", [])):
        send(type="state_commit", id=f"c{number}", space=space, actions=actions)
    for _ in arguments.get("commits", []):
        result = next(frames("state_result"))
        seen.append(result["revision"] if result["ok"] else result["error"]["code"])
    send(
        type="invoke_result",
        id=frame["id"],
        value={"status": "success", "data": seen},
        actions=arguments.get("actions", []),
    )

greet(capabilities=["effects"], ready=False)
descriptor = {"name": NAME, "description": "does what it is told", "argument_schema": {"type": "object"}}
send(type="register", registration_id=1, kind="command", descriptor=descriptor)
send(type="ready")
for frame in frames("invoke"):
    run(frame)
"""


def add(place: Place, name: str = "keeper") -> None:
    place.add(name, f"NAME = {name!r}\n{KEEPER}", **SECTION)


def put(key, value):
    return {"kind": "set_state", "key": key, "value": value}


def increment(key="n"):
    return {"kind": "add_state", "key": key, "by": 1}


def get(key, space="session"):
    return ("state.get", {"key": key, "space": space})


async def ask(session, name="keeper", **what):
    with trio.fail_after(PATIENCE_S):
        outcome = await session.run_command(name, what)
    assert isinstance(outcome, Success)
    return outcome.data


def stores_of(place: Place) -> SqliteStores:
    return SqliteStores(place.path / "data" / "state")


@asynccontextmanager
async def again(place: Place, session_id: str = "s"):
    """A host and a session of it beside others, without a look at what they leave."""
    async with open_host(place.config()) as host, host.open_session(session_id, cwd=place.path) as session:
        await session.load_all()
        yield host, session


def start(scenario, place: Place) -> subprocess.Popen[str]:
    return subprocess.Popen(
        alone_argv(scenario, place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stored_by(place: Place, name: str, space: str) -> Projection:
    """What stands on the disk."""
    if space == "extension":
        return stores_of(place).open_extension(name).read()
    state = SessionState(stores_of(place).open_session("s"))
    state.close()
    return state.projection(name)
