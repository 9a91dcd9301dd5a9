"""Durable state where processes are killed, files are damaged and disks are full: through real hosts."""

from __future__ import annotations

import json
import os
import resource
import signal

import pytest
import trio
from runtime.real.keeping import SECTION, add, again, ask, get, put, start, stored_by
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    assert_good_answers,
    codes_of,
    until_state,
)

from trio_exthost import CallError
from trio_exthost.errors import StoreDamaged

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
