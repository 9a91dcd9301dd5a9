"""Frames to lines: identity, and what cannot be sent."""

from __future__ import annotations

import enum
import json
from types import MappingProxyType
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import PayloadError
from trio_exthost.wire import ZOT, Codec, from_extension, to_extension
from trio_exthost.wire.payload import find_fault

CODEC = Codec(ZOT, max_frame=1 << 20, max_depth=128)


def refused(payload: Any) -> str:
    with pytest.raises(PayloadError) as caught:
        CODEC.encode(to_extension.Event("turn_start", payload))
    return caught.value.message


def assert_one_line(data: bytes) -> None:
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert b"\r" not in data
    assert data.startswith(b'{"type":"')


@pytest.mark.parametrize("kind", strategies.IN_CLASSES, ids=lambda kind: kind.TYPE)
@given(st.data())
def test_a_frame_of_an_extension_survives_the_way(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(strategies.frames_of(kind))
    line = CODEC.encode(frame)
    assert_one_line(line)
    assert CODEC.decode(line) == frame


@pytest.mark.parametrize("kind", strategies.OUT_CLASSES, ids=lambda kind: kind.TYPE)
@given(st.data())
def test_a_frame_of_the_host_survives_the_way(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(strategies.frames_of(kind))
    line = CODEC.encode(frame)
    assert_one_line(line)
    assert CODEC.decode_outbound(line) == frame


def test_fields_at_their_default_are_left_out_but_the_marked_ones() -> None:
    assert CODEC.encode(to_extension.HelloAck(1)) == (
        b'{"type":"hello_ack","protocol_version":1,"zot_version":"","provider":"","model":"","cwd":""}\n'
    )
    assert CODEC.encode(to_extension.ToolCall("1", "x")) == b'{"type":"tool_call","id":"1","name":"x","args":{}}\n'
    block = from_extension.ContentBlock("text", "hi")
    assert CODEC.encode(to_extension.ToolResult("1", content=(block,))) == (
        b'{"type":"tool_result","id":"1","content":[{"type":"text","text":"hi"}]}\n'
    )
    assert CODEC.encode(from_extension.CommandResponse("1", open_panel=from_extension.PanelSpec("p"))) == (
        b'{"type":"command_response","id":"1","open_panel":{"id":"p"}}\n'
    )
    assert CODEC.encode(to_extension.Shutdown()) == b'{"type":"shutdown"}\n'


def test_a_payload_is_spread_and_cannot_override_the_frame() -> None:
    payload = {"type": "x", "id": "9", "event": "y", "session_id": "z", "cwd": "/", "sequence": 8, "step": 1}
    assert json.loads(CODEC.encode(to_extension.Event("turn_start", payload, session_id="s", sequence=3))) == {
        "type": "event",
        "event": "turn_start",
        "session_id": "s",
        "sequence": 3,
        "step": 1,
    }
    assert json.loads(CODEC.encode(to_extension.EventIntercept("5", "tool_call", payload))) == {
        **payload,
        "type": "event_intercept",
        "id": "5",
        "event": "tool_call",
    }


def test_a_payload_key_of_the_payloads_own_name_is_spread_like_any() -> None:
    frame = to_extension.Event("turn_start", {"payload": {"a": 1}})
    assert json.loads(CODEC.encode(frame))["payload"] == {"a": 1}
    assert CODEC.decode_outbound(CODEC.encode(frame)) == frame


@given(strategies.frames_of(to_extension.Event))
def test_an_event_without_its_frame_is_the_same_line(event: to_extension.Event) -> None:
    fields = {"event": event.event, "session_id": event.session_id, "cwd": event.cwd, "sequence": event.sequence}
    told = {"type": "event"} | {name: value for name, value in fields.items() if value or name == "event"}
    assert CODEC.encode_spread(to_extension.Event, told, event.payload) == CODEC.encode(event)


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": {"b": float("inf")}}, {1: 2}, {"a": {1}}, ["a"], 7])
def test_an_event_without_its_frame_is_refused_as_with_it(payload: Any) -> None:
    refused(payload)
    with pytest.raises(PayloadError):
        CODEC.encode_spread(to_extension.Event, {"type": "event", "event": "turn_start"}, payload)


def test_line_separators_of_unicode_survive() -> None:
    frame = to_extension.Event("assistant_message", {"text": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\r\n"})
    line = CODEC.encode(frame)
    assert_one_line(line)
    assert json.loads(line)["text"] == frame.payload["text"]


class Word(str):
    __slots__ = ()


class Amount(float):
    pass


class Level(enum.IntEnum):
    HIGH = 3


class Count(int):
    pass


class Colour(enum.Enum):
    RED = "red"


def test_what_means_one_thing_only_is_taken() -> None:
    payload = MappingProxyType(
        {
            "tuple": (1, (2,)),
            "mapping": MappingProxyType({"a": [None]}),
            "word": Word("w"),
            "amount": Amount(1.5),
            "level": Level.HIGH,
            "count": Count(4),
            "null": None,
            "big": 2**70,
        }
    )
    assert json.loads(CODEC.encode(to_extension.Event("turn_start", payload))) == {
        "type": "event",
        "event": "turn_start",
        "tuple": [1, [2]],
        "mapping": {"a": [None]},
        "word": "w",
        "amount": 1.5,
        "level": 3,
        "count": 4,
        "null": None,
        "big": 2**70,
    }


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ({"result": {"mean": float("nan")}}, "$.result.mean: nan is not JSON"),
        ({"a": [1, float("inf")]}, "$.a[1]: inf is not JSON"),
        ({"a": (None, -float("inf"))}, "$.a[1]: -inf is not JSON"),
        ({"a": {1: 2}}, "$.a: the key 1 is not a string"),
        ({"a": {None: 2}}, "$.a: the key None is not a string"),
        ({1: 2}, "$: the key 1 is not a string"),
        ({"a": {1, 2}}, "$.a: a value of type set is not JSON"),
        ({"a": b"x"}, "$.a: a value of type bytes is not JSON"),
        ({"a": object()}, "$.a: a value of type object is not JSON"),
        ({"a": Colour.RED}, "$.a: a value of type Colour is not JSON"),
        ({"a": to_extension.PanelClose("p")}, "$.a: a value of type PanelClose is not JSON"),
        ({"a": "x\ud800"}, r"$.a: the lone surrogate '\ud800' at character 1 is not JSON"),
        ({"a": {"\udfff": 1}}, r"$.a: in the key '\udfff': the lone surrogate '\udfff' at character 0 is not JSON"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(payload: dict[Any, Any], complaint: str) -> None:
    assert refused(payload) == f"event: {complaint}"


def test_an_integer_too_long_to_write_is_refused() -> None:
    assert "limit" in refused({"a": 10**5000})


def test_a_payload_that_is_no_mapping_and_a_field_of_another_type_are_refused() -> None:
    assert "another type" in refused(["a"])
    with pytest.raises(PayloadError, match="tool_result: a field holds a value of another type"):
        CODEC.encode(to_extension.ToolResult("1", content=({"type": "text"},)))  # type: ignore[arg-type]


def test_a_value_nested_too_deep_or_containing_itself_is_refused() -> None:
    def nest(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    # The frame's object is the first level.
    assert CODEC.encode(to_extension.Event("x", {"a": nest(127)}))
    for levels in (128, 2000, 50_000):
        assert "nested deeper than 128 levels" in refused({"a": nest(levels)})
    around: list[Any] = []
    around.append(around)
    assert "nested deeper than 128 levels" in refused({"a": around})


def test_a_frame_of_the_bound_passes_and_one_byte_more_does_not() -> None:
    empty = len(CODEC.encode(from_extension.Notify(message="x"))) - 2
    for size, fits in ((-1, True), (0, True), (1, False)):
        frame = from_extension.Notify(message="x" * ((1 << 20) - empty + size))
        if fits:
            assert len(CODEC.encode(frame)) == (1 << 20) + size + 1
            assert CODEC.decode(CODEC.encode(frame)) == frame
        else:
            with pytest.raises(PayloadError, match="notify: 1048577 bytes encoded, of 1048576 allowed"):
                CODEC.encode(frame)


def test_the_fault_of_a_payload_is_its_depth_from_one_level_too_many_on() -> None:
    three: Any = [[{"a": 1}]]
    assert find_fault(three, 3) is None
    assert find_fault([0, three], 3) == "$[1][0][0]: nested deeper than 3 levels"
