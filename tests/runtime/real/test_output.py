"""What programs write: banners, glued text, bytes that are no text, lines without end, floods of stderr."""

from __future__ import annotations

import pytest
import trio
from runtime.real.programs import (
    GOOD,
    Place,
    assert_good_answers,
    codes_of,
    row_of,
    run_alone,
    running,
    text_of,
    until_state,
)

from trio_exthost import CallTimedOut, Deadlines, Limits, MalformedReply, open_host


async def test_banners_before_and_after_hello_are_stray_output(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "chatty", "put(b'one\\ntwo\\nthree\\n'); serve(lambda f: (put(b'four\\n'), result(f['id'], 'ok')), tools=['t'])"
    )
    async with running(place) as (host, session):
        assert session.report.ready == ("chatty",)
        assert text_of(await session.call_tool("t", {})) == "ok"
        assert codes_of(host, "chatty") == ["stray_output"] * 4
        assert [each.message for each in host.diagnostics if "three" in each.message]
        assert "three" in row_of(session, "chatty").log_path.read_text()


async def test_text_glued_in_front_of_a_reply_fails_that_call_with_the_text(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "gluer",
        "serve(lambda f: (put(b'Loading...' if f['args'].get('glue') else b''), result(f['id'], 'ok')), tools=['t'])",
    )
    async with running(place) as (_host, session):
        with pytest.raises(MalformedReply, match=r"Loading\.\.\."):
            await session.call_tool("t", {"glue": True})
        assert text_of(await session.call_tool("t", {})) == "ok"


async def test_bytes_that_are_no_utf8_cost_one_frame_each(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "bytes",
        "serve(lambda f: (put(b'\\xff\\xfe\\n{\"type\":\"notify\",\"message\":\"a\\x80\"}\\n'), result(f['id'], 'ok')), tools=['t'])",
    )
    async with running(place) as (host, session):
        assert text_of(await session.call_tool("t", {})) == "ok"
        assert len(codes_of(host, "bytes")) == 2
        assert row_of(session, "bytes").state == "ready"


async def test_lines_up_to_the_limit_are_read_and_one_above_fails_its_call_only(tmp_path) -> None:
    place = Place(tmp_path)
    limit = 256 * 1024
    place.add(
        "long",
        "def on_call(f):\n"
        "    frame = {'type': 'tool_result', 'id': f['id'], 'content': [{'type': 'text', 'text': ''}]}\n"
        "    frame['content'][0]['text'] = 'x' * (f['args']['size'] - len(json.dumps(frame)))\n"
        "    send(**frame)\n"
        "serve(on_call, tools=['t'])",
    )
    async with running(place, limits=Limits(frame_bytes=limit)) as (_host, session):
        for size in (65535, 65536, 65537, limit - 1, limit):
            assert len(text_of(await session.call_tool("t", {"size": size}))) > size - 100
        with pytest.raises(MalformedReply, match="thrown away"):
            await session.call_tool("t", {"size": limit + 1})
        assert len(text_of(await session.call_tool("t", {"size": 1000}))) > 900


async def test_a_hello_that_is_left_in_a_buffer_needs_no_flush_by_default(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "buffered",
        "print(json.dumps({'type': 'hello', 'name': 'b'}))\nprint(json.dumps({'type': 'ready'}))\nlist(frames())",
    )
    async with running(place) as (_host, session):
        assert session.report.ready == ("buffered",)


async def test_an_endless_stream_of_garbage_lines_is_throttled_and_counted(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("garbage", "greet()\nwhile True: put(b'gar\\xffbage\\n' * 1000)")
    place.add("good", GOOD)
    async with running(place) as (host, session):
        for _ in range(50):
            await assert_good_answers(session)
        assert host.diagnostics.counts["stray_output"] > 1000
        assert len(codes_of(host, "garbage")) < 60, "each is counted, few are told"


async def endless_line(place: Place) -> dict[str, object]:
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        row = await until_state(session, "endless", "failed", "stopping")
        await assert_good_answers(session)
        return {"codes": codes_of(host, "endless"), "reason": row.reason}


def test_200_mib_without_a_newline_are_stopped_in_bounded_memory(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("endless", "greet()\nfor i in range(3200): put(b'x' * 65536)\nhang()")
    place.add("good", GOOD)
    outcome = run_alone(endless_line, place)
    assert "frame_too_long" in outcome["codes"]
    assert "thrown away" in outcome["reason"]
    assert outcome["grown_mib"] < 48
    assert place.alive() == []


STDERR_FLOOD = """
def flood():
    os.write(2, b"first")
    def err(data):
        data = memoryview(data)
        while data: data = data[os.write(2, data):]
    err(b"x" * (10 << 20) + b"\\n")
    chunk = os.urandom(1 << 20)
    for _ in range(15): err(chunk)
    err(b"\\nthe last line\\n")
"""


async def stderr_flood(place: Place) -> dict[str, object]:
    async with open_host(place.config()) as host, host.open_session("s", cwd=place.path) as session:
        await session.load_all()
        with trio.fail_after(30):
            answer = text_of(await session.call_tool("t", {}))
        logs = list(row_of(session, "loud").log_path.parent.iterdir())
        await assert_good_answers(session)
    return {
        "answer": answer,
        "tail": row_of(session, "loud").log_path.read_bytes()[-600:].decode(errors="replace"),
        "bytes": sum(log.stat().st_size for log in logs),
    }


def test_50_mib_of_stderr_before_hello_and_in_a_call_hold_nobody_up(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("loud", STDERR_FLOOD + "flood()\nserve(lambda f: (flood(), result(f['id'], 'ok')), tools=['t'])")
    place.add("good", GOOD)
    outcome = run_alone(stderr_flood, place)
    assert outcome["answer"] == "ok"
    assert "the last line" in outcome["tail"]
    assert outcome["bytes"] < 4 * 5 * 2**20
    assert outcome["grown_mib"] < 48
    assert place.alive() == []


async def test_silence_is_ended_at_its_deadline_with_a_hint_and_good_is_there_before(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("silent", "hang()", startup_timeout_s=1.5)
    place.add("good", GOOD)
    # A cap below that: the load is over, with one late, while the other works.
    async with running(place, deadlines=Deadlines(ready_cap_s=1, stop_grace_s=0.2, term_grace_s=0.2)) as (
        _host,
        session,
    ):
        assert "silent" in session.report.late
        await until_state(session, "good", "ready")
        await assert_good_answers(session)
        row = await until_state(session, "silent", "failed")
        assert "no hello within 1.5 s" in row.reason
        assert "flush" in row.reason


async def test_an_answer_that_stays_in_a_buffer_times_out(tmp_path) -> None:
    place = Place(tmp_path)
    place.add(
        "buffered", "serve(lambda f: sys.stdout.write('never flushed'), tools=['t'])", env={"PYTHONUNBUFFERED": ""}
    )
    async with running(place, deadlines=Deadlines(ready_cap_s=30, tool_s=0.3)) as (_host, session):
        with pytest.raises(CallTimedOut, match=r"0\.3 s"):
            await session.call_tool("t", {})
