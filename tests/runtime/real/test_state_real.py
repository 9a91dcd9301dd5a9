"""Durable state through real hosts, real extensions and SQLite: over restarts, and between several hosts."""

from __future__ import annotations

import json
import os

import trio
from runtime.real.keeping import add, again, ask, get, increment, put, start, stores_of
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    assert_good_answers,
    running,
    until_state,
)


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
