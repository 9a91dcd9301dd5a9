"""Programs that end, or close a pipe, at every moment; the neighbour never notices."""

from __future__ import annotations

import pytest
import trio
from runtime.real.programs import (
    GOOD,
    PATIENCE_S,
    Place,
    assert_good_answers,
    codes_of,
    emit_in_step,
    row_of,
    running,
    until_state,
)

from trio_exthost import CallError, ExtensionExited

AT_ONCE = {
    "exit 3": "print('no API_KEY', file=sys.stderr); sys.exit(3)",
    "exit 0": "print('no API_KEY', file=sys.stderr); sys.exit(0)",
    "killed by SIGSEGV": "os.write(2, b'no API_KEY'); os.kill(os.getpid(), signal.SIGSEGV)",
}


@pytest.mark.parametrize("status", AT_ONCE)
async def test_dead_at_once_is_named_with_exit_stderr_and_log(tmp_path, status: str) -> None:
    place = Place(tmp_path)
    place.add("dead", AT_ONCE[status])
    place.add("good", GOOD)
    async with running(place) as (host, session):
        (error,) = session.report.failed
        assert (error.extension, error.stage, error.exit_status) == ("dead", "hello", status)
        assert "no API_KEY" in error.stderr_tail
        assert str(row_of(session, "dead").log_path) in str(error)
        assert row_of(session, "dead").state == "failed"
        assert status in row_of(session, "dead").reason
        assert codes_of(host, "dead") == ["exited"]
        assert session.report.ready == ("good",)
        await assert_good_answers(session)


async def test_dead_between_hello_and_ready_registers_nothing(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("dead", "greet(tools=['mine'], commands=['mine'], events=['tick'], ready=False); sys.exit(1)")
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        (error,) = session.report.failed
        assert (error.stage, error.exit_status) == ("registering", "exit 1")
        assert [tool.name for tool in session.tools()] == ["echo"]
        assert [command.name for command in session.commands()] == ["ticks"]
        assert len(session.views.subscribers["tick"]) == 1
        await assert_good_answers(session)


async def test_death_in_a_call_names_the_signal_and_the_end_of_stderr(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("dead", "serve(lambda frame: (print('Traceback: at last', file=sys.stderr), os.abort()), tools=['die'])")
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        with pytest.raises(ExtensionExited) as caught:
            await session.call_tool("die", {})
        assert caught.value.exit_status == "killed by SIGABRT"
        assert "Traceback: at last" in caught.value.stderr_tail
        row = await until_state(session, "dead", "failed")
        assert "SIGABRT" in row.reason
        assert [tool.name for tool in session.tools()] == ["echo"]
        await assert_good_answers(session)


async def test_exit_on_the_third_event_ends_nobody_else(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "dead", "greet(events=['tick'], tools=['late'])\nfor i, _ in zip(range(3), frames('event')): pass\nsys.exit(7)"
    )
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        assert await emit_in_step(session, 0, 3) == [0, 1, 2]
        with pytest.raises(CallError):
            await session.call_tool("late", {})
        assert await emit_in_step(session, 3, 400) == list(range(3, 400))
        row = await until_state(session, "dead", "failed")
        assert "exit 7" in row.reason


async def test_twenty_deaths_under_steady_events_are_each_told(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("good", GOOD)
    for number in range(20):
        place.add(
            f"dead{number}",
            f"greet(events=['tick'])\nfor i, _ in zip(range({number % 5 + 1}), frames('event')): pass\n"
            f"time.sleep({number % 7} / 500); os._exit({number})",
        )
    async with running(place) as (_host, session):
        seen: list[int] = []
        with trio.fail_after(PATIENCE_S):
            while any(row.state == "ready" for row in session.extensions() if row.name != "good") or not seen:
                seen += await emit_in_step(session, len(seen), len(seen) + 10)
        assert seen == list(range(len(seen)))
        for number in range(20):
            row = await until_state(session, f"dead{number}", "failed")
            assert f"exit {number}" in row.reason
        await assert_good_answers(session)


async def test_stdout_closed_with_a_call_pending_fails_it_and_ends_the_program(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("mute", "serve(lambda frame: (os.close(1), hang()), tools=['wait'])")
    place.add("good", GOOD)
    async with running(place) as (host, session):
        with pytest.raises(ExtensionExited, match="closed its output"):
            await session.call_tool("wait", {})
        row = await until_state(session, "mute", "failed")
        assert "closed its output" in row.reason
        assert "output_closed" in codes_of(host, "mute")
        assert [tool.name for tool in session.tools()] == ["echo"]
        await assert_good_answers(session)


async def test_stdin_closed_is_noticed_by_the_next_write(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("deaf", "greet(events=['tick'], tools=['never']); os.close(0); hang()")
    place.add("good", GOOD)
    async with running(place) as (host, session):
        # Ready and the close of its stdin are two steps of the program: it may take some events to notice.
        seen: list[int] = []
        with trio.fail_after(PATIENCE_S):
            while row_of(session, "deaf").state == "ready":
                seen += await emit_in_step(session, len(seen), len(seen) + 1)
        row = await until_state(session, "deaf", "failed")
        assert "closed its input" in row.reason
        assert "input_closed" in codes_of(host, "deaf")
        await assert_good_answers(session)
