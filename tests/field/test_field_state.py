"""Cases from the field: what is stored and logged, by several at once, on full disks, and over kills."""

from __future__ import annotations

import json
from typing import Any

import trio
from cli.running import started
from field.flooding import FLOOD, OTHERS, ROUNDS, SHARED, flood_beside_another
from runtime.real.keeping import add, again, ask, get, put, start, stored_by, stores_of
from runtime.real.programs import GOOD, PATIENCE_S, Place, assert_good_answers, running, until_state
from runtime.real.test_state_crashes_real import commit_until_killed, fill

from trio_exthost import Limits, open_host

WRITERS, KEYS = 8, 100


async def test_c78_eight_writers_lose_no_key_and_a_reader_sees_whole_batches(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    seen: list[int] = []
    async with open_host(place.config()) as host:

        async def write(number: int) -> None:
            async with host.open_session(f"s{number}", cwd=tmp_path) as session:
                await session.load_all()
                for first in range(0, KEYS, 20):
                    commits = [("extension", [put(f"{number} {each}", each)]) for each in range(first, first + 20)]
                    assert all(isinstance(each, int) for each in await ask(session, commits=commits))

        async def read() -> None:
            store = stores_of(place).open_extension("keeper")
            while len(seen) == 0 or seen[-1] < WRITERS * KEYS:
                seen.append(len((await trio.to_thread.run_sync(store.read)).values))

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                for number in range(WRITERS):
                    nursery.start_soon(write, number)
    assert seen == sorted(seen)
    stored = stores_of(place).open_extension("keeper").read()
    assert dict(stored.values).keys() == {f"{number} {each}" for number in range(WRITERS) for each in range(KEYS)}


async def test_c78_kill_9_of_the_host_leaves_what_was_acknowledged(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    acknowledged = 0
    for count in (1, 7):
        with start(commit_until_killed, place) as killed:
            assert killed.stdout is not None
            lines = [killed.stdout.readline() for _ in range(count)]
            killed.kill()
            lines += killed.stdout.readlines()
        acknowledged = max(int(line) for line in lines if line.endswith("\n"))
        stored = stored_by(place, "keeper", "session")
        assert stored.get("first") == stored.get("second")
        assert stored.get("first") >= acknowledged
        place.wait_gone()


async def test_c78_a_damaged_file_is_told_kept_and_replaced_by_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    place.add("good", GOOD)
    async with again(place) as (_host, session):
        await ask(session, actions=[put("k", "v")])
    path = tmp_path / "data/state/sessions/s.db"
    path.write_bytes(b"stale tail" * 500)
    async with again(place) as (_host, session):
        row = await until_state(session, "keeper", "failed")
        assert "s.damaged-1.db" in row.reason
        assert path.with_name("s.damaged-1.db").read_bytes() == b"stale tail" * 500
        await assert_good_answers(session)
    assert not path.exists()
    async with again(place, "another") as (_host, session):
        assert await ask(session, brokers=[get("k")]) == [None], "it still starts where nothing is damaged"


def test_c78_on_a_full_disk_the_old_content_stays_and_the_error_names_the_file(tmp_path) -> None:
    place = Place(tmp_path)
    add(place)
    with start(fill, place) as filling:
        out, err = filling.communicate("", PATIENCE_S)
    assert err == ""
    told = json.loads(out)
    assert (told["code"], told["kept"]) == ("persistence_failed", ["old"])
    assert "sessions/s.db" in told["why"]


SMALL = Limits(log_bytes=256 * 1024, log_files=3)


async def test_c79_the_log_is_bounded_while_it_runs_and_has_the_newest_lines(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", FLOOD)
    async with running(place, limits=SMALL) as (_host, session):
        await session.call_tool("t", {"first": 0, "last": 1000, "more": 20_000})
        log = session.extensions()[0].log_path
        while b"line 999\n" not in log.read_bytes():
            await trio.lowlevel.checkpoint()
        files = [each.stat().st_size for each in log.parent.iterdir()]
        assert len(files) == SMALL.log_files
        assert max(files) <= SMALL.log_bytes


async def test_c79_whoever_follows_the_log_sees_every_line_over_rotations(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", FLOOD)
    limits = Limits(log_bytes=4000, log_files=3)
    async with running(place, limits=limits) as (_host, session):
        with started(tmp_path / "data", ["logs", "loud", "-f"]) as process:
            output: Any = process.stdout
            for first in range(0, 2000, 200):
                await session.call_tool("t", {"first": first, "last": first + 200})
                wanted = [f"line {n}" for n in range(first, first + 200)]
                assert await trio.to_thread.run_sync(next_lines, output, 200) == wanted
        assert len(list((tmp_path / "data" / "logs").glob("loud.log*"))) == 3


def next_lines(output: Any, count: int) -> list[str]:
    """The next lines of the extension's own."""
    found: list[str] = []
    while len(found) < count:
        line = output.readline().decode()
        assert line, "it has ended"
        if line.startswith("line"):
            found.append(line.rstrip())
    return found


async def test_c79_two_hosts_share_a_log_no_line_is_lost_or_doubled_and_no_file_too_large(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", FLOOD)
    with start(flood_beside_another, place) as one:
        with trio.fail_after(PATIENCE_S):
            while not (tmp_path / "here").exists():
                await trio.lowlevel.checkpoint()
        with start(flood_beside_another, place) as two:
            for each in (one, two):
                out, err = await trio.to_thread.run_sync(each.communicate, "", PATIENCE_S)
                assert (err, json.loads(out)["told"]) == ("", [])
    logs = list((tmp_path / "data" / "logs").glob("loud.log*"))
    assert max(each.stat().st_size for each in logs) <= SHARED.log_bytes
    kept = [line for each in logs for line in each.read_bytes().splitlines() if line.startswith(b"line")]
    numbers = [*range(ROUNDS.stop), *range(OTHERS, OTHERS + ROUNDS.stop)]
    assert sorted(kept) == sorted(f"line {number}".encode() for number in numbers)


async def test_c79_hosts_that_share_a_log_drop_only_its_oldest_lines(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", FLOOD)
    limits = Limits(log_bytes=20_000, log_files=4)
    with trio.fail_after(PATIENCE_S):
        async with open_host(place.config(limits=limits)) as one, open_host(place.config(limits=limits)) as two:
            async with one.open_session("a") as first, two.open_session("b") as second:
                await first.load_all()
                await second.load_all()
                for start_at in range(0, 4000, 400):
                    for session, offset in ((first, 0), (second, 10_000)):
                        lines = {"first": offset + start_at, "last": offset + start_at + 400}
                        await session.call_tool("t", lines)
    logs = list((tmp_path / "data" / "logs").iterdir())
    assert len(logs) == limits.log_files
    assert max(each.stat().st_size for each in logs) <= limits.log_bytes
    kept = b"".join(each.read_bytes() for each in logs).splitlines()
    for newest in (3999, 13_999):
        assert kept.count(f"line {newest}".encode()) == 1
