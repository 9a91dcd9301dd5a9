"""Cases from the field: processes, their pipes, and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
import trio
from cli.running import argv, environment
from field.helpers_a import IGNORES, deaf, live_until_killed, loud
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    SLACK_S,
    Place,
    alone_argv,
    assert_good_answers,
    codes_of,
    run_alone,
    running,
    text_of,
    until_state,
)

from trio_exthost import Deadlines, ExtensionExited, Limits, open_host

LOUD = """
def err(data):
    data = memoryview(data)
    while data: data = data[os.write(2, data):]
def flood():
    err(b"x" * (10 << 20) + b"\\n")
    for _ in range(40): err(os.urandom(1 << 20))
    err(b"\\nthe last line\\n")
flood()
serve(lambda f: (flood(), result(f["id"], "ok")), tools=["t"])
"""


def test_c33_50_mib_of_stderr_before_hello_and_in_a_call_hold_nobody_up(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", LOUD)
    place.add("good", GOOD)
    outcome = run_alone(loud, place)
    assert outcome["answer"] == "ok"
    assert "the last line" in outcome["tail"]
    limits = Limits()
    assert outcome["bytes"] <= limits.log_bytes * (limits.log_files + 1)  # `good` has a log, too
    assert outcome["grown_mib"] < 48
    assert place.alive() == []
    printing = argv("logs", "loud", "--raw")
    printed = subprocess.run(printing, env=environment(tmp_path / "data"), stdout=subprocess.PIPE, check=True).stdout
    assert len(printed) > limits.log_bytes
    assert b"\nthe last line\n" in printed[-600:]


def test_c34_one_that_never_reads_costs_the_others_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", "greet(events=['tick'], intercept=['tool_call'], tools=['never']); hang()")
    place.add("good", GOOD)
    outcome = run_alone(deaf, place)
    assert outcome["in_order"]
    assert outcome["ended"] == "overloaded"
    assert outcome["asked"] == ["overloaded"]
    assert "events_dropped" in outcome["codes"]
    assert outcome["grown_mib"] < 32
    assert place.alive() == []


async def test_c34_5_mib_written_before_anything_is_read_are_read(tmp_path) -> None:
    place = Place(tmp_path)
    early = 'put(b\'{"type":"hello","name":"e"}\\n\' + (b\'x\' * 65535 + b\'\\n\') * 80)'
    place.add("eager", f"{early}; serve(tools=['t'])")
    async with running(place) as (_host, session):
        assert text_of(await session.call_tool("t", {"text": "x" * 2_000_000})) == "ok"


async def test_c35_a_grandchild_that_holds_the_pipes_delays_neither_crash_nor_stop(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("crashes", "start('sleep', '600')\nserve(lambda f: os._exit(4), tools=['die'])")
    place.add("stops", "start('sleep', '600')\nserve()")
    async with running(place) as (_host, session):
        assert len(place.alive()) == 4
        with trio.fail_after(3 + SLACK_S):
            with pytest.raises(ExtensionExited) as caught:
                await session.call_tool("die", {})
            await until_state(session, "crashes", "failed")
        assert caught.value.exit_status == "exit 4"
        with trio.fail_after(3 + SLACK_S):
            await session.unload("stops")
        assert place.alive() == []


async def test_c35_a_grandchild_in_its_own_session_delays_nothing_either(tmp_path) -> None:
    place = Place(tmp_path)
    away = "start('sleep', '600', start_new_session=True)\n"
    place.add("crashes", away + "serve(lambda f: os._exit(4), tools=['die'])")
    place.add("stops", away + "serve()")
    try:
        with trio.fail_after(PATIENCE_S):
            async with open_host(place.config()) as host, host.open_session("s") as session:
                await session.load_all()
                with trio.fail_after(3 + SLACK_S):
                    with pytest.raises(ExtensionExited):
                        await session.call_tool("die", {})
                    await until_state(session, "crashes", "failed")
                    await session.unload("stops")
        assert len(place.alive()) == 2, "out of the host's reach, as documented"
    finally:
        for line in place.alive():
            os.kill(int(line.split()[0]), signal.SIGKILL)
    place.wait_gone()


def test_c37_kill_9_of_the_host_leaves_no_process(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("ignores-eof", IGNORES + "greet()\nhang()")
    place.add("busy", IGNORES + "greet()\nwhile True: pass")
    with subprocess.Popen(alone_argv(live_until_killed, place), stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "3\n"
        finally:
            host.kill()
    assert len(place.started) == 3
    place.wait_gone(2 + SLACK_S)


TRACED = """
def note(word):
    with open("../trace", "a") as file:
        file.write(word + "\\n")
signal.signal(signal.SIGTERM, lambda *_: note("SIGTERM"))
greet()
for line in sys.stdin.buffer:
    if json.loads(line)["type"] == "shutdown":
        note("shutdown")
note("end of stdin")
while True: signal.pause()
"""


async def test_c39_six_that_will_not_go_are_ended_at_once_step_by_step(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    place.add("traced", TRACED)
    place.add("deaf", IGNORES + "greet(); hang()")
    place.add("acks", IGNORES + "greet()\nlist(frames())\nsend(type='shutdown_ack'); hang()")
    place.add("busy", IGNORES + "greet()\nwhile True: pass")
    place.add("stopped", "greet(); os.kill(os.getpid(), signal.SIGSTOP)")
    async with running(place, deadlines=Deadlines(ready_cap_s=30)) as (host, session):
        await assert_good_answers(session)
        begun = time.monotonic()
    assert time.monotonic() - begun < Deadlines().stop_total_s + SLACK_S
    assert (tmp_path / "trace").read_text().split("\n") == ["shutdown", "end of stdin", "SIGTERM", ""]
    assert codes_of(host, "good") == []
    assert all(codes_of(host, name) == ["killed"] for name in ("traced", "deaf", "acks", "busy", "stopped"))
    assert {row.state for row in session.extensions()} == {"stopped"}
