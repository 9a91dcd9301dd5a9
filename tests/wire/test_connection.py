"""The connection: handshake, legality, faults."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.diagnostics import Code
from trio_exthost.errors import PayloadError, ProtocolError
from trio_exthost.wire import ZOT, Codec, Connection, Fault, Phase, from_extension, to_extension

CODEC = Codec(ZOT, max_frame=4096, max_depth=16)
HELLO = b'{"type":"hello","name":"guard","version":"1"}\n'
READY = b'{"type":"ready"}\n'


def line(word: str, **fields: Any) -> bytes:
    return json.dumps({"type": word, **fields}).encode() + b"\n"


def connect(max_line: int = 4096) -> Connection:
    return Connection(CODEC, max_line=max_line, stop_line=2 * max_line)


def in_phase(phase: Phase, max_line: int = 4096) -> Connection:
    """A fresh connection in this phase."""
    connection = connect(max_line)
    if phase in (Phase.REGISTERING, Phase.READY):
        events(connection, HELLO)
        connection.acknowledge()
    if phase is Phase.READY:
        events(connection, READY)
    if phase is Phase.STOPPING:
        connection.stop()
    if phase is Phase.CLOSED:
        connection.close()
    assert connection.phase is phase
    return connection


def events(connection: Connection, *pieces: bytes) -> list[Any]:
    found = []
    for piece in pieces:
        connection.receive_data(piece)
        while (event := connection.next_event()) is not None:
            found.append(event)
    return found


def fault(connection: Connection, data: bytes) -> Fault:
    (found,) = events(connection, data)
    assert isinstance(found, Fault)
    return found


def words(found: list[Any]) -> list[str]:
    return [event.code.value if isinstance(event, Fault) else event.TYPE for event in found]


# --- the handshake ---------------------------------------------------------------------------------------------------


def test_a_script_that_prints_everything_at_once_is_understood() -> None:
    connection = connect()
    script = HELLO + line("register_command", name="a") + line("subscribe", events=["turn_start"]) + READY
    assert words(events(connection, script)) == ["hello", "register_command", "subscribe", "ready"]
    assert connection.phase is Phase.READY
    assert not connection.acknowledged
    assert connection.send(to_extension.HelloAck(1)).startswith(b'{"type":"hello_ack"')
    assert connection.acknowledged
    assert connection.send(to_extension.Event("turn_start"))


def test_stray_output_is_named_and_harmless_before_and_after_hello() -> None:
    connection = connect()
    banner = b"Guard 1.0\n[1, 2]\n\xff\xfe\nwarning: x\n"
    assert words(events(connection, banner, HELLO, banner)) == ["stray_output"] * 4 + ["hello"] + ["stray_output"] * 4
    assert connection.phase is Phase.REGISTERING


def test_a_json_object_that_is_no_frame_is_not_fatal_before_hello() -> None:
    connection = connect()
    found = fault(connection, b'{"level":30,"msg":"starting"}\n')
    assert (found.code, found.fatal) == (Code.FRAME_INVALID, False)
    assert words(events(connection, HELLO)) == ["hello"]


@pytest.mark.parametrize(
    ("first", "code", "complaint"),
    [
        (READY, Code.FRAME_ILLEGAL, "the first frame is ready, not hello"),
        (line("tool_result", id="4"), Code.FRAME_ILLEGAL, "the first frame is tool_result, not hello"),
        (line("greetings"), Code.FRAME_UNKNOWN, "unknown type 'greetings'"),
        (line("hello"), Code.FRAME_INVALID, "hello: $.name: required field missing"),
        (line("hello", name=""), Code.FRAME_INVALID, "hello without a name"),
        (line("hello", name=" "), Code.FRAME_INVALID, "hello without a name"),
        (line("hello", name=7), Code.FRAME_INVALID, "hello: $.name: expected str, got int"),
        (line("hello", name="x", protocol_version=99), Code.FRAME_INVALID, "speaks 99, host speaks 1"),
    ],
)
def test_a_first_frame_that_is_no_good_hello_is_fatal(first: bytes, code: Code, complaint: str) -> None:
    connection = connect()
    found = fault(connection, first)
    assert (found.code, found.message, found.fatal) == (code, complaint, True)
    assert connection.phase is Phase.STOPPING
    assert fault(connection, HELLO).code is Code.FRAME_ILLEGAL


def test_a_hello_of_the_right_version_and_any_name_is_accepted() -> None:
    connection = connect()
    assert events(connection, line("hello", name="other", protocol_version=1)) == [
        from_extension.Hello("other", protocol_version=1)
    ]


def test_a_second_hello_is_ignored() -> None:
    for phase in (Phase.REGISTERING, Phase.READY):
        connection = in_phase(phase)
        found = fault(connection, HELLO)
        assert (found.code, found.fatal, connection.phase) == (Code.FRAME_ILLEGAL, False, phase)


def test_ready_may_come_again_and_after_it_was_assumed() -> None:
    connection = in_phase(Phase.REGISTERING)
    connection.mark_ready()
    connection.mark_ready()
    assert words(events(connection, READY + READY + line("register_tool", name="a", schema={}))) == [
        "ready",
        "ready",
        "register_tool",
    ]
    assert connection.phase is Phase.READY


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_malformed_reply_names_its_call() -> None:
    found = fault(in_phase(Phase.READY), line("tool_result", id="7", content=[{"type": "text", "text": 1}]))
    assert found == Fault(
        Code.FRAME_INVALID, "tool_result: $.content[0].text: expected str, got int", "tool_result", "7"
    )


def test_a_reply_spoiled_by_a_print_names_its_call() -> None:
    found = fault(in_phase(Phase.READY), b"Loading..." + line("tool_result", id="7"))
    assert found.message.startswith("not JSON: Loading...")
    assert (found.code, found.frame_type, found.frame_id) == (Code.STRAY_OUTPUT, "tool_result", "7")


def test_an_unknown_type_and_a_deep_frame_are_named() -> None:
    connection = in_phase(Phase.READY)
    assert fault(connection, line("wizard", id="4")).code is Code.FRAME_UNKNOWN
    deep = b'{"type":"tool_result","id":"7","structured_content":' + b"[" * 2000 + b"]" * 2000 + b"}\n"
    assert fault(connection, deep[:4000] + b"\n").code is Code.FRAME_INVALID
    assert connection.phase is Phase.READY


def test_a_line_over_the_limit_names_its_call_and_the_next_frame_is_heard() -> None:
    connection = in_phase(Phase.READY)
    long = line("tool_result", id="7", content=[{"type": "text", "text": "x" * 5000}])
    too_long, notify = events(connection, long, line("notify", message="hi"))
    assert (too_long.code, too_long.frame_type, too_long.frame_id, too_long.fatal) == (
        Code.FRAME_TOO_LONG,
        "tool_result",
        "7",
        False,
    )
    assert too_long.message.startswith('a line of 4097 bytes or more is thrown away: {"type": "tool_result",')
    assert notify == from_extension.Notify(message="hi")


@pytest.mark.parametrize("phase", [Phase.HANDSHAKING, Phase.REGISTERING, Phase.READY])
def test_a_line_without_end_is_fatal(phase: Phase) -> None:
    connection = in_phase(phase)
    found = events(connection, *[b"x" * 1000] * 20)
    assert [(event.code, event.fatal) for event in found] == [(Code.FRAME_TOO_LONG, False), (Code.FRAME_TOO_LONG, True)]
    assert connection.phase is Phase.STOPPING


def test_the_limit_of_a_line_is_exact() -> None:
    frame = line("notify", message="")
    for size, code in ((4095, "notify"), (4096, "notify"), (4097, "frame_too_long")):
        data = line("notify", message="x" * (size - len(frame) + 1))
        assert len(data) == size + 1
        assert words(events(in_phase(Phase.READY), data)) == [code]


def test_crlf_and_blank_lines_are_no_faults() -> None:
    connection = connect()
    data = b"\r\n\n" + HELLO.replace(b"\n", b"\r\n") + b"\n\r\n" + READY.replace(b"\n", b"\r\n")
    assert words(events(connection, data)) == ["hello", "ready"]


# --- the end ---------------------------------------------------------------------------------------------------------


def test_output_that_ends_inside_a_line_is_a_fault() -> None:
    connection = in_phase(Phase.READY)
    connection.receive_data(b'{"type":"tool_result","id":"7","conte')
    assert connection.next_event() is None
    found = connection.receive_eof()
    assert found is not None
    assert (found.code, found.frame_id, found.fatal) == (Code.FRAME_INVALID, "7", False)
    assert connection.receive_eof() is None
    assert connection.phase is Phase.READY
    with pytest.raises(ProtocolError, match="after the end"):
        connection.receive_data(b"x")


def test_a_last_word_without_line_end_is_stray_output() -> None:
    connection = in_phase(Phase.READY)
    assert events(connection, b"bye") == []
    found = connection.receive_eof()
    assert found is not None
    assert (found.code, found.message) == (Code.STRAY_OUTPUT, "output ended inside a line: bye")


def test_frames_received_before_the_end_are_heard_after_it() -> None:
    connection = in_phase(Phase.READY)
    connection.receive_data(READY + b"bye")
    found = connection.receive_eof()
    assert found is not None
    assert found.message.endswith("bye")
    assert connection.next_event() == from_extension.Ready()
    assert connection.next_event() is None


def test_output_that_ends_with_a_line_is_no_fault() -> None:
    connection = in_phase(Phase.READY)
    assert events(connection, READY)
    assert connection.receive_eof() is None


def test_while_stopping_answers_count_and_nothing_new_is_begun() -> None:
    connection = in_phase(Phase.READY)
    connection.stop()
    fine = [
        line("tool_result", id="1"),
        line("command_response", id="2"),
        line("event_intercept_response", id="3"),
        line("notify"),
        line("clear_notes"),
        line("call_tool_cancel", id="9"),
        line("shutdown_ack"),
    ]
    assert words(events(connection, b"".join(fine))) == [json.loads(each)["type"] for each in fine]
    for word, fields in [
        ("register_tool", {"name": "a", "schema": {}}),
        ("register_command", {"name": "a"}),
        ("subscribe", {}),
        ("call_tool", {"id": "9", "name": "a"}),
        ("submit", {"text": "a"}),
        ("ready", {}),
    ]:
        found = fault(connection, line(word, **fields))
        assert (found.code, found.frame_type, found.frame_id) == (Code.FRAME_ILLEGAL, word, fields.get("id"))
        assert found.message == f"{word} is not legal while stopping"


def test_closing_drops_what_was_received_and_is_final() -> None:
    connection = in_phase(Phase.READY)
    connection.receive_data(READY + b"rest")
    connection.close()
    connection.close()
    connection.stop()
    connection.receive_data(READY)
    assert connection.next_event() is None
    assert connection.receive_eof() is None
    assert connection.phase is Phase.CLOSED


# --- out -------------------------------------------------------------------------------------------------------------


def refused(connection: Connection, frame: Any) -> str:
    with pytest.raises(ProtocolError) as caught:
        connection.send(frame)
    assert caught.value.code == "local"
    assert caught.value.frame_type == frame.TYPE
    return caught.value.message


def test_nothing_is_sent_before_hello_and_only_the_answer_to_it_next() -> None:
    connection = connect()
    assert refused(connection, to_extension.HelloAck(1)) == "hello_ack may not be sent while handshaking"
    with pytest.raises(ProtocolError, match="hello_ack before hello"):
        connection.acknowledge()
    events(connection, HELLO)
    assert refused(connection, to_extension.Event("turn_start")) == "event before hello_ack"
    connection.send(to_extension.HelloAck(1))
    connection.acknowledge()
    assert refused(connection, to_extension.HelloAck(1)) == "a second hello_ack"
    assert connection.send(to_extension.ToolCall("1", "x"))


def test_an_acknowledgement_sent_another_way_counts() -> None:
    connection = connect()
    events(connection, HELLO)
    connection.acknowledge()
    assert connection.send(to_extension.Event("turn_start"))


def test_a_frame_that_cannot_be_encoded_changes_nothing() -> None:
    connection = connect()
    events(connection, HELLO)
    with pytest.raises(PayloadError):
        connection.send(to_extension.HelloAck(1, cwd="\ud800"))
    assert not connection.acknowledged
    assert connection.send(to_extension.HelloAck(1))


def test_while_stopping_only_what_ends_things_is_sent() -> None:
    connection = in_phase(Phase.STOPPING)
    assert connection.send(to_extension.Shutdown()) == b'{"type":"shutdown"}\n'
    ready = in_phase(Phase.READY)
    ready.stop()
    assert ready.send(to_extension.Event("session_end"))
    assert refused(ready, to_extension.ToolCall("1", "x")) == "tool_call may not be sent while stopping"
    ready.close()
    assert refused(ready, to_extension.Shutdown()) == "shutdown may not be sent while closed"


@pytest.mark.parametrize("phase", [Phase.HANDSHAKING, Phase.STOPPING, Phase.CLOSED])
def test_ready_cannot_be_assumed_where_nothing_is_being_registered(phase: Phase) -> None:
    connection = in_phase(phase)
    with pytest.raises(ProtocolError) as caught:
        connection.mark_ready()
    assert (caught.value.code, caught.value.message) == ("local", f"ready is not possible while {phase.value}")
    assert connection.phase is phase


# --- any bytes -------------------------------------------------------------------------------------------------------

frames = strategies.in_frames.map(CODEC.encode) | st.sampled_from([HELLO, READY])
conversations = st.lists(frames | strategies.streams, max_size=8).map(b"".join)


@given(conversations, strategies.cuts, st.sampled_from(Phase))
def test_any_split_gives_the_same_events_and_no_bytes_raise(data: bytes, places: list[int], phase: Phase) -> None:
    whole, pieces = in_phase(phase), in_phase(phase)
    assert events(whole, data) == events(pieces, *strategies.cut(data, places))
    assert whole.receive_eof() == pieces.receive_eof()
    assert whole.phase is pieces.phase


def taken(connection: Connection, pieces: list[bytes]) -> list[Any]:
    """As `events`, with the short way for what is one whole frame."""
    found = []
    for piece in pieces:
        event = connection.receive_frame(piece)
        if event is not None:
            found.append(event)
            assert connection.next_event() is None, "the short way leaves nothing"
        else:
            found += events(connection, b"")
    return found


@given(st.lists(frames | strategies.streams, max_size=8), strategies.cuts, st.sampled_from(Phase), st.integers(80, 200))
def test_the_short_way_gives_the_same_events(parts: list[bytes], places: list[int], phase: Phase, longest: int) -> None:
    for pieces in (parts, b"".join(parts).splitlines(keepends=True), strategies.cut(b"".join(parts), places)):
        long, short = in_phase(phase, longest), in_phase(phase, longest)
        assert taken(short, pieces) == events(long, *pieces)
        assert short.receive_eof() == long.receive_eof()
        assert short.phase is long.phase


def test_the_short_way_does_not_take_two_lines_for_one() -> None:
    connection = in_phase(Phase.READY)
    halves = taken(connection, [b'{"type":"notify",\n"message":"a"}\n'])
    assert [each.code for each in halves] == [Code.STRAY_OUTPUT, Code.STRAY_OUTPUT]


def test_after_the_end_the_short_way_is_refused_too() -> None:
    connection = in_phase(Phase.READY)
    assert [connection.receive_frame(line("notify", message="a")), connection.receive_eof()] == [
        from_extension.Notify(message="a"),
        None,
    ]
    with pytest.raises(ProtocolError, match="after the end"):
        connection.receive_frame(line("notify", message="b"))
