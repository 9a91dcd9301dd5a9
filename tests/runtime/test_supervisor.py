"""Restarts: delays that double, a budget in a window, giving up with a reason, and being called off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing
from runtime.fakes import Guest, assert_nothing_left, codes, serve, world

from trio_exthost import ExtensionPolicy, LoadError, Policy


def policy(**more) -> Policy:
    settings = {"restart": "on_crash", "restart_delay_s": 1, "restart_budget": 3, "restart_window_s": 1000, **more}
    return Policy(extensions={"a": ExtensionPolicy(**settings)})


async def crash(around) -> None:
    around.guests["a"].exit(1)
    await trio.testing.wait_all_tasks_blocked()


def state(session) -> str:
    return session.extensions()[0].state


async def until_ready(session) -> float:
    """How long it took."""
    begun = trio.current_time()
    while state(session) != "ready":
        await session.wait_changed(session.version)
    return trio.current_time() - begun


async def test_delays_double_and_the_budget_ends_them(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=policy(), seed=7) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            for delay in (1, 2, 4):
                await crash(around)
                assert state(session) == "waiting"
                assert "it exited by itself" in session.extensions()[0].reason
                assert delay <= await until_ready(session) <= delay * 1.25
            await crash(around)
            row = session.extensions()[0]
            assert row.state == "gave_up"
            assert "given up after 3 restarts in 1000 s" in row.reason
            assert [code for code in codes(host) if code in ("restarting", "gave_up")] == ["restarting"] * 3 + [
                "gave_up"
            ]
            await trio.sleep(10_000)
            assert state(session) == "gave_up"
            await session.load_all()  # a person acts: it starts, and the budget is whole again
            assert state(session) == "ready"
            await crash(around)
            assert 1 <= await until_ready(session) <= 1.25
        assert_nothing_left(session)


async def test_the_same_seed_gives_the_same_delays(tmp_path, autojump_clock) -> None:
    async def delays(seed: int) -> list[float]:
        async with world(tmp_path, policy=policy(), seed=seed) as (around, host):
            around.add("a", serve)
            async with host.open_session("s") as session:
                await session.load_all()
                found = []
                for _ in range(3):
                    await crash(around)
                    found.append(await until_ready(session))
                return found

    first = await delays(1)
    assert await delays(1) == pytest.approx(first)
    assert await delays(2) != pytest.approx(first)


async def test_a_successor_is_told_of_the_sessions_start_and_takes_its_place(tmp_path, autojump_clock) -> None:
    async def subscriber(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="subscribe", events=["session_start"])
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, policy=policy()) as (around, host):
        around.add("a", subscriber)
        async with host.open_session("s") as session:
            await session.load_all()
            first = around.guests["a"]
            await crash(around)
            assert session.tools() == ()
            await until_ready(session)
            second = around.guests["a"]
            assert second is not first
            await trio.testing.wait_all_tasks_blocked()
            assert [frame["event"] for frame in second.received if frame["type"] == "event"] == ["session_start"]
            assert [info.name for info in session.tools()] == ["t"]


async def test_unloading_calls_a_restart_off_and_loading_brings_it_forward(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=policy()) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await crash(around)
            await session.unload("a")
            assert state(session) == "stopped"
            await trio.sleep(100)
            assert state(session) == "stopped"
            await session.load_all()
            await crash(around)
            begun = trio.current_time()
            await session.load(around.candidates[0])
            assert (state(session), trio.current_time()) == ("ready", begun)
            await trio.sleep(100)
            assert around.spawned == 3


async def test_leaving_does_not_wait_for_a_restart(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=policy(restart_delay_s=1000, restart_delay_max_s=1000)) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await crash(around)
    assert trio.current_time() < 1


async def test_one_that_never_gets_ready_is_tried_again_and_one_that_cannot_be_spawned_is_not(
    tmp_path, autojump_clock
) -> None:
    tries = 0

    async def third_time_lucky(guest: Guest) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            await serve(guest)
        await trio.lowlevel.checkpoint()

    async with world(tmp_path, policy=policy()) as (around, host):
        around.add("a", third_time_lucky)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert "it exited by itself" in str(report)
            await until_ready(session)
    async with world(tmp_path, policy=policy()) as (around, host):
        around.add("a", serve)

        def no_program(argv, *, cwd, env):
            raise FileNotFoundError(2, "No such file or directory", "/bin/true")

        host.spawn = no_program
        async with host.open_session("s") as session:
            await session.load_all()
            assert state(session) == "failed"
            with pytest.raises(LoadError):
                await session.load(around.candidates[0])


async def test_without_a_policy_the_manifest_says_whether(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve, restart="on_crash")
        around.add("b", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            for name in ("a", "b"):
                around.guests[name].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            assert [row.state for row in session.extensions()] == ["waiting", "failed"]


async def test_what_is_noted_of_one_that_has_ended_leaves_no_file_open(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=policy()) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await crash(around)
            log = session.extensions()[0].log_path
            assert "restarting" in log.read_text()
            assert not log_is_open(log)


def log_is_open(path: Path) -> bool:
    """Whether this process holds the file open."""
    wanted = path.stat()
    for entry in list(Path("/dev/fd").iterdir()):
        try:
            about = os.fstat(int(entry.name))
        except OSError:
            continue  # the descriptor that listed them
        if (about.st_dev, about.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False
