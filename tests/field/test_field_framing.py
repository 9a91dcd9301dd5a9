"""Cases from the field: frames, encodings, JSON."""

from __future__ import annotations

import json

import pytest
import trio
from cli.running import extension, run
from field.helpers_a import ASK, SOON, endless_line
from runtime.fakes import Client
from runtime.real.programs import (
    GOOD,
    Place,
    assert_good_answers,
    codes_of,
    row_of,
    run_alone,
    running,
    text_of,
)

from trio_exthost import CallTimedOut, Limits, MalformedReply, PayloadError, StepKind

BREAKS = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh"
"""Everything that some library takes for the end of a line."""
ECHO = """
def put_raw(**frame):
    put(json.dumps(frame, ensure_ascii=False).encode() + b"\\n")
greet(events=["tick"], tools=["last"])
for frame in frames():
    if frame["type"] == "event":
        text = frame["text"]
    elif frame["type"] == "tool_call":
        put_raw(type="notify", level="info", message=text)
        put_raw(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text + frame["args"]["text"]}])
"""


async def test_c01_unicode_line_breaks_in_a_string_end_no_frame(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("echo", ECHO)
    client = Client()
    async with running(place, client=client) as (host, session):
        session.emit("tick", {"text": BREAKS})
        assert text_of(await session.call_tool("last", {"text": BREAKS})) == BREAKS * 2
        assert ("notify", "echo", "info", BREAKS) in client.told
        assert codes_of(host, "echo") == []


def test_c01_a_line_of_the_log_ends_at_a_line_feed_only(tmp_path) -> None:
    folder = extension(tmp_path / "says", f"os.write(2, {BREAKS!r}.encode() + b'\\nnext\\n')")
    run(tmp_path / "home", "check", str(folder))
    kept = (tmp_path / "home" / "logs" / "says.log").read_bytes()
    assert f"\n{BREAKS}\nnext\n".encode() in kept
    shown = run(tmp_path / "home", "logs", "says").stdout.split("\n")
    assert r"a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh" in shown


LONG = """
def on_call(f):
    frame = {"type": "tool_result", "id": f["id"], "content": [{"type": "text", "text": ""}]}
    frame["content"][0]["text"] = "x" * (f["args"]["size"] - len(json.dumps(frame)))
    send(**frame)
serve(on_call, tools=["t"])
"""


async def test_c02_only_a_frame_above_the_limit_fails_and_only_its_call(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("long", LONG)
    limit = Limits().frame_bytes
    async with running(place) as (host, session):
        for size in (65535, 65536, 65537, 2**20, limit - 1, limit):
            assert (await session.call_tool("t", {"size": size})).is_error is False
        with pytest.raises(MalformedReply, match="thrown away"):
            await session.call_tool("t", {"size": limit + 1})
        assert len(text_of(await session.call_tool("t", {"size": 1000}))) > 900
        assert codes_of(host, "long") == ["result_truncated", "result_truncated", "frame_too_long"]


def test_c02_200_mib_without_a_line_end_are_stopped_in_bounded_memory(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("endless", "greet()\nfor i in range(3200): put(b'x' * 65536)\nhang()")
    place.add("good", GOOD)
    outcome = run_alone(endless_line, place)
    assert "thrown away" in outcome["reason"]
    assert outcome["grown_mib"] < 48
    assert place.alive() == []


async def test_c04_a_byte_that_is_no_utf8_costs_one_frame_and_is_shown(tmp_path) -> None:
    place = Place(tmp_path)
    bad = r"""put(b'\xff\xfe\n{"type":"notify","message":"a\x80"}\n')"""
    place.add("bytes", f"serve(lambda f: ({bad}, result(f['id'], 'ok')), tools=['t'])")
    client = Client()
    async with running(place, client=client) as (host, session):
        assert text_of(await session.call_tool("t", {})) == "ok"
        assert row_of(session, "bytes").state == "ready"
        told = [each.message for each in host.diagnostics.of("bytes")]
        assert len(told) == 2
        assert "ff fe" in told[0]
        assert "80" in told[1]
        assert [each for each in client.told if each[0] == "notify"] == [], "nothing is replaced in silence"


async def test_c05_a_banner_before_hello_goes_to_the_log_and_text_glued_to_a_frame_fails_its_call(tmp_path) -> None:
    place = Place(tmp_path)
    glued = "(put(b'Loading...' if f['args'] else b''), result(f['id'], 'ok'))"
    place.add("chatty", f"put(b'one\\ntwo\\nthree\\n'); serve(lambda f: {glued}, tools=['t'])")
    async with running(place) as (host, session):
        assert session.report.ready == ("chatty",)
        assert codes_of(host, "chatty") == ["stray_output"] * 3
        log = run(tmp_path / "data", "logs", "chatty").stdout
        assert [f"stray_output: not JSON: {word}" in log for word in ("one", "two", "three")] == [True] * 3
        with pytest.raises(MalformedReply, match=r"not JSON: Loading\.\.\."):
            await session.call_tool("t", {"glue": True})
        assert text_of(await session.call_tool("t", {})) == "ok"


NAN = """
events = 0
greet(events=["tick"], tools=["t"], commands=["x"], intercept=["tool_call"])
for frame in frames():
    if frame["type"] in ("event", "command_invoked", "event_intercept"):
        events += 1
    elif frame["type"] == "tool_call" and frame["args"]:
        put(b'{"type":"tool_result","id":"%s","content":[],"structured_content":{"v":%s}}\\n'
            % (frame["id"].encode(), frame["args"]["v"].encode()))
    elif frame["type"] == "tool_call":
        result(frame["id"], str(events))
"""


async def test_c06_nan_is_refused_in_both_directions(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("nan", NAN)
    async with running(place) as (_host, session):
        for word in ("NaN", "Infinity", "-Infinity"):
            with pytest.raises(PayloadError, match="mean") as caught:
                session.emit("tick", {"v": {"mean": float(word)}})
            assert isinstance(caught.value, ValueError)
            with pytest.raises(MalformedReply, match=word):
                await session.call_tool("t", {"v": word})
            for asks in (session.call_tool("t", {"v": float(word)}), session.run_command("x", {"v": float(word)})):
                with pytest.raises(PayloadError, match=r"\$.*v: .* is not JSON"):
                    await asks
            with pytest.raises(PayloadError, match=r"\$.*v: .* is not JSON"):
                await session.intercept("tool_call", ASK | {"tool_args": {"v": float(word)}})
            assert text_of(await session.call_tool("t", {})) == "0", "nothing of all that was written"


WRONG_IDS = {
    "a number": "int(id)",
    "null": "None",
    "none at all": "...",
    "true": "True",
    "made up": "'4711'",
}


async def test_c09_a_reply_under_a_wrong_id_is_told_and_the_call_ends_at_its_deadline(tmp_path) -> None:
    place = Place(tmp_path)
    for number, expression in enumerate(WRONG_IDS.values()):
        answer = f"(id := f['id'], send(**{{'type': 'tool_result', 'content': []}} | ({{}} if {expression} is ... else {{'id': {expression}}})))"
        place.add(f"wrong{number}", f"serve(lambda f: {answer}, tools=['t{number}'])")
    place.add("good", GOOD)
    async with running(place, deadlines=SOON) as (host, session):

        async def ask(number: int) -> None:
            with pytest.raises(CallTimedOut, match="diagnostics"):
                await session.call_tool(f"t{number}", {})

        async with trio.open_nursery() as nursery:
            for number in range(len(WRONG_IDS)):
                nursery.start_soon(ask, number)
        for number in range(len(WRONG_IDS)):
            first, second = host.diagnostics.of(f"wrong{number}")
            assert (first.code.value in ("frame_invalid", "reply_unknown"), second.code.value) == (
                True,
                "call_timed_out",
            )
            assert "id" in first.message
            assert row_of(session, f"wrong{number}").state == "ready"
        await assert_good_answers(session)


CRLF = r"""
def send_crlf(**frame):
    put(b"\r\n\n" + json.dumps(frame).encode() + b"\r\n")
send_crlf(type="hello", name="crlf")
send_crlf(type="register_tool", name="t", description="", schema={"type": "object"})
send_crlf(type="ready")
for line in sys.stdin.buffer:
    frame = json.loads(line)
    if frame["type"] == "tool_call":
        text = frame["args"]["text"] + str(line.count(b"\r"))
        send_crlf(type="tool_result", id=frame["id"], content=[{"type": "text", "text": text}])
    elif frame["type"] == "shutdown":
        break
"""


async def test_c10_crlf_and_blank_lines_are_no_fault_and_an_escaped_cr_stays(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("crlf", CRLF)
    async with running(place) as (host, session):
        assert text_of(await session.call_tool("t", {"text": "a\rb\r\n"})) == "a\rb\r\n0"
        assert codes_of(host, "crlf") == []


CHECKER = """
ticks = 0
greet(events=["tick"], tools=["size"])
for frame in frames():
    if frame["type"] == "event":
        ticks += len(frame["text"]) == 1000
    elif frame["type"] == "tool_call":
        result(frame["id"], f"{len(frame['args']['text'])} {ticks}")
"""


async def test_c12_50_calls_of_200_kib_among_events_are_whole_lines(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("checker", CHECKER)
    sizes: list[int] = []
    async with running(place) as (host, session):

        async def ask(size: int) -> None:
            sizes.append(int(text_of(await session.call_tool("size", {"text": "x" * size})).split()[0]))

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ask, 200 * 1024 + number)
                session.emit("tick", {"text": "x" * 1000})
        assert sorted(sizes) == [200 * 1024 + number for number in range(50)]
        assert text_of(await session.call_tool("size", {"text": ""})) == "0 50"
        assert codes_of(host, "checker") == []


SLEEPER = """
greet(events=["small"], intercept=["tool_call"], commands=["got"])
wait_for("go")
got = []
for frame in frames():
    got.append([frame["type"], len(frame.get("text", ""))])
    if frame["type"] == "command_invoked":
        send(type="command_response", id=frame["id"], action="display", display=json.dumps(got))
"""


async def test_c13_a_deadline_in_the_middle_of_a_write_cuts_no_frame(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("sleeper", SLEEPER)
    async with running(place, deadlines=SOON) as (_host, session):
        verdict = await session.intercept("tool_call", ASK | {"text": "x" * 300_000})
        assert [step.kind for step in verdict.steps] == [StepKind.TIMED_OUT]
        session.emit("small", {})
        place.signal("go")
        got = json.loads((await session.run_command("got")).text)
        assert got == [["hello_ack", 0], ["event_intercept", 300_000], ["event", 0], ["command_invoked", 0]]
