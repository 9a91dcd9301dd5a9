"""Durable state through real hosts, real extensions and SQLite: over restarts, two hosts, SIGKILL and a damaged file."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from contextlib import asynccontextmanager

import pytest
import trio
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    alone_argv,
    assert_good_answers,
    codes_of,
    running,
    until_state,
)

from trio_exthost import CallError, Success, open_host
from trio_exthost.errors import StoreDamaged
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


async def test_what_answers_and_commits_store_is_there_in_the_next_host(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    content = {
        "kind": "append_model_context",
        "context_id": "c",
        "placement": "system_prompt_section",
        "content": "Hi.",
    }
    event = {"kind": "append_custom_event", "event_id": "e", "custom_type": "t", "payload": [1]}
    async with again(place) as (_, session):
        await session.advance("m1")
        assert await ask(session, brokers=[("set_state", {"key": "b", "value": 2})], actions=[put("a", 1)]) == [True]
        assert await ask(session, commits=[("session", [put("c", 3), content, event])]) == [2]
        assert await ask(session, commits=[("extension", [increment()])]) == [1]
        await session.advance("m2")
        await ask(session, actions=[put("a", 10)])
    async with again(place) as (_, session):
        reads = [get("a"), get("b"), get("c"), get("n", "extension"), ("events.replay", {})]
        assert await ask(session, brokers=reads) == [
            10, 2, 3, 1, [{"event_id": "e", "custom_type": "t", "payload": [1]}],
        ]  # fmt: skip
        assert [(each.extension, each.context_id, each.content) for each in session.model_context()] == [
            ("keeper", "c", "Hi.")
        ]
        await session.checkout("m1")
        assert await ask(session, brokers=[get("a")]) == [1]
        await session.fork("m2", "copy")
    async with again(place, "copy") as (_, session):
        assert await ask(session, brokers=[get("a")]) == [10]


async def test_a_second_host_loads_everybody_else_and_says_who_has_the_session(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    place.add("good", GOOD)
    async with running(place) as (_, first), again(place) as (_, second):
        row = await until_state(second, "keeper", "failed")
        assert f"session 's' is open in process {os.getpid()}" in row.reason
        assert second.report.ready == ("good",)
        await assert_good_answers(second)
        assert await ask(first, actions=[put("k", 1)]) == []
        assert await ask(first, brokers=[get("k")]) == [1]
    async with again(place) as (_, third):
        assert await ask(third, brokers=[get("k")]) == [1]


COMMITS = 60


async def hold(place: Place) -> dict[str, object]:
    """A host in a process of its own that has the session open until its stdin ends."""
    async with again(place) as (_, session):
        print("open", flush=True)
        await trio.to_thread.run_sync(input)
        return {"rows": [row.state for row in session.extensions()]}


async def count(place: Place) -> dict[str, object]:
    """A host in a process of its own, whose extension counts up what all share, several commits at a time."""
    async with again(place, f"counting {os.getpid()}") as (_, session):
        mine = f"by {os.getpid()}"
        for first in range(0, COMMITS, 10):
            commits = [
                ("extension", [increment(), put(f"{mine} {number}", number)]) for number in range(first, first + 10)
            ]
            assert all(isinstance(each, int) for each in await ask(session, commits=commits))
    return {"mine": mine}


def start(scenario, place: Place) -> subprocess.Popen[str]:
    return subprocess.Popen(
        alone_argv(scenario, place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


async def test_a_host_in_another_process_is_named(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    place.add("good", GOOD)
    with start(hold, place) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        async with again(place) as (_, session):
            row = await until_state(session, "keeper", "failed")
            assert f"session 's' is open in process {holder.pid} " in row.reason
            assert session.report.ready == ("good",)
        out, err = holder.communicate("\n", PATIENCE_S)
    assert (holder.returncode, err) == (0, "")
    assert json.loads(out)["rows"] == ["ready", "ready"]


async def test_hosts_whose_extension_writes_what_all_share_lose_nothing_and_a_reader_sees_whole_batches(
    tmp_path,
) -> None:
    place = Place(tmp_path)
    add(place)
    store = stores_of(place).open_extension("keeper")
    with start(count, place) as one, start(count, place) as two, start(count, place) as three:
        hosts = (one, two, three)
        seen = [0]
        while any(each.poll() is None for each in hosts):
            projection = store.read()
            seen.append(projection.get("n", 0))
            assert len(projection.values) == (seen[-1] + 1 if seen[-1] else 0)
        ended = [each.communicate("", PATIENCE_S) for each in hosts]
    assert seen == sorted(seen)
    assert [err for _, err in ended] == [""] * len(hosts)
    names = [json.loads(out)["mine"] for out, _ in ended]
    projection = store.read()
    assert projection.get("n") == projection.revision == len(hosts) * COMMITS
    assert projection.values.keys() == {"n", *(f"{name} {number}" for name in names for number in range(COMMITS))}


COMMITTER = """
told = os.path.join("..", "acknowledged")
number = len(open(told).readlines())
begun = number
greet(capabilities=["effects"], events=["go"])
for _ in frames("event"):
    break
acknowledged = open(told, "a")
while True:
    number += 1
    actions = [
        {"kind": "set_state", "key": "first", "value": number},
        {"kind": "append_custom_event", "event_id": f"e{number}", "custom_type": "t", "payload": "x" * 200},
        {"kind": "set_state", "key": "second", "value": number},
    ]
    send(type="state_commit", id=str(number), space=SPACE, actions=actions)
    result = next(frames("state_result"))
    assert result["ok"], result
    print(number, file=acknowledged, flush=True)
    if number == begun + 5:
        send(type="register", registration_id=1, kind="command", descriptor=DESCRIPTOR)
"""
DESCRIPTOR = {"name": "going", "description": "tells that it is going", "argument_schema": {"type": "object"}}


@pytest.mark.parametrize("space", ["session", "extension"])
async def test_what_was_acknowledged_to_an_extension_that_is_killed_is_there_and_nothing_is_half_there(
    tmp_path, space
) -> None:
    place = Place(tmp_path)
    directory = place.add("loop", f"SPACE, DESCRIPTOR = {space!r}, {DESCRIPTOR!r}\n{COMMITTER}", **SECTION)
    acknowledged = directory.parent / "acknowledged"
    acknowledged.touch()
    for _ in range(4):
        async with again(place) as (host, session):
            session.emit("go", {})
            with trio.fail_after(PATIENCE_S):
                while not session.commands():
                    await session.wait_changed(session.version)
            os.kill(place.started[-1], signal.SIGKILL)
            row = await until_state(session, "loop", "failed")
            assert "SIGKILL" in row.reason
            assert "internal_error" not in codes_of(host, "loop")
        least = len(acknowledged.read_text().splitlines())
        projection = stored_by(place, "loop", space)
        number = projection.get("second")
        assert number >= least
        assert projection.get("first") == number
        assert list(projection.events) == [f"e{each}" for each in range(1, number + 1)]
        acknowledged.write_text("".join(f"{each}\n" for each in range(1, number + 1)))


def stored_by(place: Place, name: str, space: str) -> Projection:
    """What stands on the disk."""
    if space == "extension":
        return stores_of(place).open_extension(name).read()
    state = SessionState(stores_of(place).open_session("s"))
    state.close()
    return state.projection(name)


async def commit_until_killed(place: Place) -> None:
    """A host in a process of its own that prints each answer whose batch was stored."""
    async with again(place) as (_, session):
        for number in range(1, 10_000):
            await ask(session, actions=[put("first", number), put("second", number)])
            print(number, flush=True)


async def test_what_was_acknowledged_by_a_host_that_is_killed_is_there(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    with start(commit_until_killed, place) as killed:
        assert killed.stdout is not None
        lines = [killed.stdout.readline() for _ in range(15)]
        killed.kill()
        lines += killed.stdout.readlines()
    least = max(int(line) for line in lines if line.endswith("\n"))
    projection = stored_by(place, "keeper", "session")
    assert projection.get("second") == projection.get("first") == projection.revision
    assert projection.revision >= least
    place.wait_gone()
    async with again(place) as (_, session):
        assert await ask(session, brokers=[get("second")]) == [projection.revision]


async def test_a_damaged_session_is_kept_aside_and_only_what_stores_does_not_run(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    place.add("good", GOOD)
    async with again(place) as (_, session):
        for number in range(10):
            await ask(session, actions=[put(f"k{number}", "x" * 1000)])
    path = place.path / "data/state/sessions/s.db"
    damaged = bytearray(path.read_bytes())
    place_of_value = damaged.index(b"x" * 1000)
    damaged[place_of_value : place_of_value + 1] = b"y"  # SQLite itself would not notice
    path.write_bytes(damaged)
    kept = path.with_name("s.damaged-1.db")
    for _ in range(2):  # nothing is put in its place the next time either
        async with again(place) as (_, session):
            row = await until_state(session, "keeper", "failed")
            assert f"is kept as {kept}" in row.reason
            assert ".recover" in row.reason
            assert session.report.ready == ("good",)
            (failed,) = session.report.failed
            assert (failed.extension, str(kept) in failed.message) == ("keeper", True)
            await assert_good_answers(session)
            with pytest.raises(StoreDamaged):
                await session.advance("m1")
        assert kept.read_bytes() == damaged
        assert not path.exists()
    async with again(place, "another") as (_, session):
        assert await ask(session, actions=[put("k", 1)]) == []


async def fill(place: Place) -> dict[str, object]:
    """A host in a process of its own that may not make its files any larger after a while, as on a full disk."""
    async with again(place) as (_, session):
        await ask(session, actions=[put("k", "old"), put("more", "x" * 1000)])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = max(each.stat().st_size for each in (place.path / "data/state/sessions").iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with pytest.raises(CallError) as caught:
            await ask(session, actions=[put("k", "new"), put("more", "y" * 30_000)])
        refused = await ask(session, commits=[("session", [put("k", "y" * 30_000)])])
        kept = await ask(session, brokers=[get("k")])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await ask(session, actions=[put("k", "newer")])
        return {"code": caught.value.code, "why": str(caught.value), "refused": refused, "kept": kept}


async def test_on_a_full_disk_an_answer_is_refused_with_the_file_and_what_was_stored_stays(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    with start(fill, place) as filling:
        out, err = filling.communicate("", PATIENCE_S)
    assert err == ""
    result = json.loads(out)
    assert (result["code"], result["refused"], result["kept"]) == (
        "persistence_failed",
        ["persistence_failed"],
        ["old"],
    )
    assert str(place.path / "data/state/sessions/s.db") in result["why"]
    assert stored_by(place, "keeper", "session").get("k") == "newer"
