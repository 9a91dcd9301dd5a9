"""Programs that will not go, and what they started; the end of the host, by every way."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
import trio
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    QUICK,
    SLACK_S,
    Place,
    alone_argv,
    assert_good_answers,
    codes_of,
    row_of,
    running,
    until_state,
)

from trio_exthost import Deadlines, ExtensionExited, open_host

IGNORES = "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
STUBBORN = {
    "deaf": IGNORES + "greet(); hang()",
    "acks and stays": IGNORES + "greet()\nlist(frames())\nsend(type='shutdown_ack'); hang()",
    "busy": IGNORES + "greet()\nwhile True: pass",
    "flooding": IGNORES + "greet()\nwhile True: put(b'stray\\n' * 1000)",
    "stopped": "greet(); os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.parametrize("kind", STUBBORN)
async def test_who_ignores_shutdown_and_term_is_killed(tmp_path, kind: str) -> None:
    place = Place(tmp_path)
    place.add("stubborn", STUBBORN[kind])
    place.add("good", GOOD)
    async with running(place) as (host, session):
        await session.unload("stubborn")
        assert "killed" in codes_of(host, "stubborn")
        assert row_of(session, "stubborn").state == "stopped"
        await assert_good_answers(session)


async def test_six_at_once_end_within_the_bound_of_one(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    for number in range(3):
        place.add(f"deaf{number}", STUBBORN["deaf"])
    place.add("acks", STUBBORN["acks and stays"])
    place.add("busy", STUBBORN["busy"])
    async with running(place, deadlines=Deadlines(ready_cap_s=30)) as (host, session):  # the default graces
        begun = time.monotonic()
        assert len(session.report.ready) == 6
    assert time.monotonic() - begun < Deadlines().stop_total_s + SLACK_S
    assert codes_of(host, "good") == []
    assert [row.state for row in session.extensions()] == ["stopped"] * 6


async def test_graces_that_add_up_to_more_are_cut_to_the_total(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", STUBBORN["deaf"])
    deadlines = Deadlines(ready_cap_s=30, stop_grace_s=60, term_grace_s=60, stop_total_s=1)
    async with running(place, deadlines=deadlines) as (host, _session):
        pass
    assert codes_of(host, "deaf") == ["killed"]


async def test_a_grandchild_of_the_group_goes_with_its_parent(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("parent", "start('sleep', '600')\nserve(lambda f: os._exit(4), tools=['die'])")
    place.add("other", "start('sleep', '600')\nserve()")
    async with running(place) as (_host, session):
        assert len(place.started) == 4
        with trio.fail_after(PATIENCE_S), pytest.raises(ExtensionExited) as caught:
            await session.call_tool("die", {})  # its stdout is still held open: the exit decides, not the end of file
        assert caught.value.exit_status == "exit 4"
        await until_state(session, "parent", "failed")
        place_left = place.alive()
        assert len(place_left) == 2, place_left


async def test_a_grandchild_in_its_own_session_holds_nobody_up(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("parent", "start('sleep', '600', start_new_session=True)\nserve(lambda f: os._exit(4), tools=['die'])")
    begun = time.monotonic()
    settings = place.config()
    try:
        async with open_host(settings) as host, host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(ExtensionExited):
                await session.call_tool("die", {})
            row = await until_state(session, "parent", "failed")
            assert row.reason.startswith("it exited by itself (exit 4 after ")
            assert host.pump.watched == 0
        assert time.monotonic() - begun < settings.deadlines.stop_total_s + SLACK_S
    finally:
        for pid in place.started:  # it is out of the host's reach: documented
            if any(f"{pid} " in line for line in place.alive()):
                os.kill(pid, signal.SIGKILL)
    place.wait_gone()


TOUGH = (
    IGNORES
    + "for i in range(3): start('sh', '-c', \"trap '' TERM HUP INT; while :; do sleep 600; done\")\n"
    + "greet(tools=['never'])\nhang()"
)


async def live_until_killed(place: Place) -> None:
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        report = await session.load_all()
        print(len(report.ready), flush=True)
        await trio.sleep_forever()


def test_kill_9_of_the_host_leaves_no_process(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("tough", TOUGH)
    place.add("silent", "hang()", startup_timeout_s=30)
    host = subprocess.Popen(alone_argv(live_until_killed, place), stdout=subprocess.PIPE, text=True)
    with host:
        try:
            # `silent` holds the load up, and is alive when the host dies.
            while len(place.started) < 6:
                time.sleep(0.02)
        finally:
            host.kill()
    place.wait_gone(5 + SLACK_S)
    # What the shells were waiting for is in their group, and gone with it (init may be slow to reap).
    rows = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], stdout=subprocess.PIPE, text=True, check=True).stdout
    groups = {row.split()[0] for row in rows.splitlines() if "Z" not in row.split()[1]}
    assert not set(map(str, place.started)) & groups


async def interrupted(place: Place) -> dict[str, object]:
    async with open_host(place.config(deadlines=QUICK)) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        caught = 0
        while caught < 10:
            try:
                print(caught, flush=True)
                while True:
                    session.emit("tick", {"n": 0})
                    await session.call_tool("echo", {"text": "x"})
            except KeyboardInterrupt:
                caught += 1
        await assert_good_answers(session)
        codes = [each.code.value for each in host.diagnostics if each.code.value != "reply_late"]
    return {"caught": caught, "codes": codes}


def test_ctrl_c_surfaces_in_the_agents_code(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    host = subprocess.Popen(alone_argv(interrupted, place), stdout=subprocess.PIPE, text=True)
    with host:
        for number in range(10):
            assert host.stdout.readline() == f"{number}\n"
            time.sleep(0.02)
            host.send_signal(signal.SIGINT)
        outcome = host.stdout.read()
    assert host.returncode == 0
    assert '"caught": 10, "codes": []' in outcome
    assert place.alive() == []


async def uncaught(place: Place) -> None:
    async with open_host(place.config(deadlines=QUICK)) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        print("ready", flush=True)
        await trio.sleep_forever()


def test_ctrl_c_that_nobody_catches_ends_everything_in_order(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("tough", TOUGH)
    host = subprocess.Popen(alone_argv(uncaught, place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with host:
        assert host.stdout.readline() == "ready\n"
        begun = time.monotonic()
        host.send_signal(signal.SIGINT)
        _, stderr = host.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - begun < QUICK.stop_total_s + SLACK_S
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    assert "ExceptionGroup" not in stderr
    assert place.alive() == []
