"""From one dialect to another: decided by `hello`, in force from the next line on."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import attrs
import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from trio_exthost.diagnostics import Code
from trio_exthost.errors import ProtocolError
from trio_exthost.wire import EFFECTS, ZOT, Codec, Connection, Fault, Phase, from_extension, to_extension
from trio_exthost.wire.words import CancelReason

CODEC = Codec(ZOT, max_frame=4096, max_depth=16)
GUEST = Codec(EFFECTS, max_frame=4096, max_depth=16)


def line(word: str, **fields: Any) -> bytes:
    return json.dumps({"type": word, **fields}).encode() + b"\n"


HELLO = line("hello", name="guard", capabilities=["tool_cancel", "effects", "gaps", "telepathy"])
ZOTS_HELLO = line("hello", name="guard", capabilities=["tool_cancel", "gaps"])
REGISTER = line("register", registration_id=1, kind="tool", descriptor={"name": "x"})
READY = line("ready")


def connect(codec: Codec = CODEC) -> Connection:
    return Connection(codec, max_line=4096, stop_line=8192)


def events(connection: Connection, *pieces: bytes) -> list[Any]:
    found = []
    for piece in pieces:
        connection.receive_data(piece)
        while (event := connection.next_event()) is not None:
            found.append(event)
    return found


def seen(found: list[Any]) -> list[str]:
    return [event.code.value if isinstance(event, Fault) else event.TYPE for event in found]


def test_what_was_buffered_behind_hello_is_read_in_the_new_dialect() -> None:
    connection = connect()
    connection.receive_data(HELLO + REGISTER + line("subscribe", events=["turn_start"]) + READY)
    assert connection.dialect is ZOT
    assert connection.capabilities == frozenset()
    assert seen([connection.next_event()]) == ["hello"]
    assert connection.dialect is EFFECTS
    assert connection.capabilities == {"tool_cancel", "effects", "gaps"}
    assert seen(events(connection, b"")) == ["register", "subscribe", "ready"]
    assert connection.phase is Phase.READY


def test_without_the_word_the_frames_stay_unknown_and_unsendable() -> None:
    connection = connect()
    unknown = line("invoke_result", id="7")
    assert seen(events(connection, ZOTS_HELLO + REGISTER + unknown)) == ["hello", "frame_unknown", "frame_unknown"]
    assert connection.dialect is ZOT
    assert connection.capabilities == {"tool_cancel"}
    connection.acknowledge()
    with pytest.raises(ProtocolError) as caught:
        connection.send(to_extension.Registered(1, 4))
    assert (caught.value.code, caught.value.message) == ("local", "registered is not of the zot dialect")


@pytest.mark.parametrize("bad", [{"name": ""}, {"name": "x", "protocol_version": 2}])
def test_a_refused_hello_opts_in_to_nothing(bad: dict[str, Any]) -> None:
    connection = connect()
    assert seen(events(connection, line("hello", capabilities=["effects"], **bad))) == ["frame_invalid"]
    assert connection.dialect is ZOT
    assert connection.capabilities == frozenset()


def test_a_second_hello_changes_the_dialect_neither_way() -> None:
    for first, second in ((HELLO, ZOTS_HELLO), (ZOTS_HELLO, HELLO)):
        connection = connect()
        events(connection, first)
        before = connection.dialect, connection.capabilities
        assert seen(events(connection, second)) == ["frame_illegal"]
        assert (connection.dialect, connection.capabilities) == before


def test_a_first_frame_of_the_dialect_is_no_hello() -> None:
    connection = connect()
    (found,) = events(connection, REGISTER)
    assert (found.code, found.fatal) == (Code.FRAME_UNKNOWN, True)


def test_a_codec_is_made_once_and_shared() -> None:
    codec = Codec(ZOT, max_frame=4096, max_depth=16)
    effects = codec.upgraded(("gaps", "effects"))
    assert effects.dialect is EFFECTS
    assert codec.upgraded(["effects"]) is effects
    assert effects.upgraded(["effects"]) is effects
    assert codec.upgraded(["gaps"]) is codec


def test_the_bounds_hold_in_the_new_dialect() -> None:
    connection = connect(Codec(ZOT, max_frame=200, max_depth=4))
    deep = line("register", registration_id=9, kind="tool", descriptor={"a": {"b": {"c": {}}}})
    hello, fault = events(connection, HELLO, deep)
    assert hello == from_extension.Hello("guard", "", ("tool_cancel", "effects", "gaps", "telepathy"))
    assert (fault.code, fault.registration_id) == (Code.FRAME_INVALID, 9)


def test_one_conversation_does_not_draw_another_with_it() -> None:
    one, other = connect(), connect()
    events(one, HELLO)
    events(other, ZOTS_HELLO)
    assert seen(events(one, REGISTER)) == ["register"]
    assert seen(events(other, REGISTER)) == ["frame_unknown"]


def test_the_first_word_of_the_table_counts_where_several_are_named() -> None:
    third = attrs.evolve(ZOT, name="third", upgrades=MappingProxyType({}))
    both = attrs.evolve(ZOT, upgrades=MappingProxyType({"telepathy": third, "effects": EFFECTS}))
    connection = connect(Codec(both, max_frame=4096, max_depth=16))
    events(connection, HELLO)
    assert connection.dialect is third
    assert connection.capabilities == {"tool_cancel"}


# --- faults ----------------------------------------------------------------------------------------------------------


def ready() -> Connection:
    connection = connect()
    events(connection, HELLO + READY)
    connection.acknowledge()
    return connection


def fault(connection: Connection, data: bytes) -> Fault:
    (found,) = events(connection, data)
    assert isinstance(found, Fault)
    return found


def test_a_malformed_registration_is_named_by_its_number() -> None:
    found = fault(ready(), line("register", registration_id=12, kind="wizard", descriptor={}))
    assert (found.code, found.frame_type, found.frame_id, found.registration_id) == (
        Code.FRAME_INVALID,
        "register",
        None,
        12,
    )
    assert found.message.endswith("got 'wizard'")


def test_a_malformed_answer_and_one_spoiled_by_a_print_name_their_call() -> None:
    connection = ready()
    answer = line("invoke_result", id="7", decision={"kind": "maybe"})
    for data in (answer, b"Loading..." + answer):
        found = fault(connection, data)
        assert (found.frame_type, found.frame_id, found.registration_id) == ("invoke_result", "7", None)


def test_nothing_is_stored_before_ready() -> None:
    connection = connect()
    commit = line("state_commit", id="4", space="session", actions=[{"kind": "delete_state", "key": "a"}])
    assert seen(events(connection, HELLO)) == ["hello"]
    found = fault(connection, commit)
    assert (found.code, found.frame_id, found.fatal) == (Code.FRAME_ILLEGAL, "4", False)
    assert found.message == "state_commit is not legal while registering"
    assert seen(events(connection, READY, commit)) == ["ready", "state_commit"]


def test_while_stopping_answers_and_disposals_count_and_nothing_new_is_begun() -> None:
    connection = ready()
    connection.stop()
    fine = [
        line("invoke_result", id="7"),
        line("progress", id="7", text="almost"),
        line("dispose", registration_id=1),
        line("state_commit", id="4", space="session"),
    ]
    assert seen(events(connection, *fine)) == ["invoke_result", "progress", "dispose", "state_commit"]
    for data, about in [
        (REGISTER, (None, 1)),
        (line("update", registration_id=1, descriptor={}), (None, 1)),
        (line("ask_user", id="4", invocation="7", kind="confirm", title="?"), ("4", None)),
        (line("broker_call", id="4", invocation="7", operation="memory.get"), ("4", None)),
    ]:
        found = fault(connection, data)
        assert found.code is Code.FRAME_ILLEGAL
        assert (found.frame_id, found.registration_id) == about
    assert connection.send(to_extension.Cancel("7", CancelReason.SHUTDOWN, 100))
    with pytest.raises(ProtocolError, match="invoke may not be sent while stopping"):
        connection.send(
            to_extension.Invoke("8", 1, to_extension.Envelope("tool", to_extension.Context("g", "s", "/", 1)), 1)
        )


# --- any split -------------------------------------------------------------------------------------------------------

frames = (strategies.in_frames | strategies.effects_in_frames).map(GUEST.encode)
noise = st.sampled_from([b"Loading...\n", b"[]\n", b"{}\n", b"\r\n", b"\xff\xfe\n"])
conversations = st.tuples(
    st.lists(noise, max_size=3).map(b"".join),
    st.sampled_from([HELLO, ZOTS_HELLO, b""]),
    st.lists(frames | noise | st.sampled_from([HELLO, READY]), max_size=8).map(b"".join),
    st.binary(max_size=30),
).map(b"".join)


@given(conversations, strategies.cuts)
@example(HELLO + REGISTER, [len(HELLO)])
@example(HELLO + REGISTER, [len(HELLO) - 1, len(HELLO) + 1])
def test_any_split_gives_the_same_frames_wherever_the_dialect_changes(data: bytes, places: list[int]) -> None:
    whole, pieces, bytewise = connect(), connect(), connect()
    found = events(whole, data)
    assert events(pieces, *strategies.cut(data, places)) == found
    assert events(bytewise, *[data[at : at + 1] for at in range(len(data))]) == found
    assert whole.receive_eof() == pieces.receive_eof() == bytewise.receive_eof()
    assert whole.phase is pieces.phase is bytewise.phase
    assert whole.dialect is pieces.dialect is bytewise.dialect


@given(st.lists(strategies.effects_in_frames, max_size=6))
def test_all_frames_behind_a_hello_arrive_as_they_were_sent(sent: list[Any]) -> None:
    connection = connect()
    stream = HELLO + READY + b"".join(GUEST.encode(frame) for frame in sent)
    assert events(connection, stream)[2:] == sent
