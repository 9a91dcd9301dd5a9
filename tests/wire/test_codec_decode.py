"""Lines to frames: what is accepted, what is refused, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st

from trio_exthost.errors import ProtocolError
from trio_exthost.wire import EFFECTS, ZOT, Codec, from_extension, to_extension
from trio_exthost.wire.structuring import MAX_PARTS

CODEC = Codec(ZOT, max_frame=1 << 20, max_depth=128)
CODES = {"not_json", "too_deep", "not_an_object", "no_type", "unknown_type", "invalid_frame"}


def refused(line: bytes | dict[str, Any]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        CODEC.decode(line if isinstance(line, bytes) else json.dumps(line).encode())
    return caught.value


def attempt(decode: Callable[[bytes], Any], line: bytes) -> Any:
    """The frame, or the decoder's own error; any other goes through."""
    try:
        return decode(line)
    except ProtocolError as error:
        return error


def about(error: ProtocolError) -> tuple[str, str | None, str | None]:
    return error.code, error.frame_type, error.frame_id


@given(st.binary(max_size=200) | strategies.streams | strategies.json_values.map(lambda v: json.dumps(v).encode()))
def test_arbitrary_bytes_raise_nothing_but_the_own_error(line: bytes) -> None:
    for decode in (CODEC.decode, CODEC.decode_outbound):
        outcome = attempt(decode, line)
        assert not isinstance(outcome, ProtocolError) or outcome.code in CODES


@given(
    st.sampled_from(sorted({*ZOT.inbound, *ZOT.outbound})),
    st.dictionaries(
        st.sampled_from([*sorted({f for k in ZOT.inbound.values() for f in k.__annotations__}), "event"]),
        strategies.json_values,
        max_size=6,
    ),
)
@example("tool_result", {"id": "1", "content": [{"type": "text"}, None]})
def test_arbitrary_fields_raise_nothing_but_the_own_error(word: str, fields: dict[str, Any]) -> None:
    line = json.dumps({**fields, "type": word}).encode()
    for decode in (CODEC.decode, CODEC.decode_outbound):
        outcome = attempt(decode, line)
        if isinstance(outcome, ProtocolError):
            assert outcome.code in {"unknown_type", "invalid_frame"}
            assert outcome.frame_type == word
            assert outcome.frame_id == (fields.get("id") if isinstance(fields.get("id"), str) else None)
        else:
            assert word == outcome.TYPE


def test_unknown_keys_are_ignored_and_left_out_fields_have_their_default() -> None:
    line = b'{"type":"notify","message":"hi","colour":["red"]}'
    assert CODEC.decode(line) == from_extension.Notify("info", "hi")


def test_null_is_as_good_as_absent_where_a_field_may_be_left_out() -> None:
    line = {
        "type": "command_response",
        "id": "1",
        "action": None,
        "tool_args": None,
        "open_panel": {"id": "p", "title": None, "lines": ["a", "b"]},
    }
    panel = from_extension.PanelSpec("p", lines=("a", "b"))
    assert CODEC.decode(json.dumps(line).encode()) == from_extension.CommandResponse("1", open_panel=panel)
    assert about(refused({"type": "tool_result", "id": None})) == ("invalid_frame", "tool_result", None)
    assert "$.panel: expected object, got null" in refused({"type": "open_panel", "panel": None}).message


def test_null_in_an_outbound_mapping_gives_a_fresh_empty_one() -> None:
    line = b'{"type":"tool_call","id":"1","name":"x","args":null}'
    assert CODEC.decode_outbound(line) == to_extension.ToolCall("1", "x", {})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"content": [{"type": "text", "text": 1}]}, "$.content[0].text: expected str, got int"),
        ({"content": [{"type": "text"}, {"text": "a"}]}, "$.content[1].type: required field missing"),
        ({"content": ["a", 1]}, "$.content[0]: expected object, got str"),
        ({"content": "abc"}, "$.content: expected list, got str"),
        ({"content": {"type": "text"}}, "$.content: expected list, got object"),
        ({"is_error": 1}, "$.is_error: expected bool, got int"),
        ({"is_error": "true"}, "$.is_error: expected bool, got str"),
        ({"activate_tools": ["a", True]}, "$.activate_tools[1]: expected str, got bool"),
        ({"activate_tools": ["a", None]}, "$.activate_tools[1]: expected str, got null"),
        ({"activate_tools": [["a"]]}, "$.activate_tools[0]: expected str, got list"),
    ],
)
def test_a_wrong_type_is_refused_with_its_path(fields: dict[str, Any], complaint: str) -> None:
    error = refused({"type": "tool_result", "id": "3", **fields})
    assert about(error) == ("invalid_frame", "tool_result", "3")
    assert error.message == f"tool_result: {complaint}"


@pytest.mark.parametrize("value", [True, "1", 1.0, [1]])
def test_only_an_integer_is_an_integer(value: Any) -> None:
    error = refused({"type": "hello", "name": "x", "protocol_version": value})
    assert "$.protocol_version: expected int, got" in error.message


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ({"type": "register_tool", "name": "search"}, "register_tool 'search': $.schema"),
        ({"type": "register_tool", "name": 7}, "register_tool: "),
        ({"type": "register_tool", "name": "x" * 1000}, f"register_tool '{'x' * 79}: "),
        ({"type": "register", "registration_id": 3, "descriptor": {"name": "a\nb"}}, "register 3 'a\\nb': $.kind"),
        ({"type": "register", "registration_id": 3, "descriptor": [], "name": "n"}, "register 3 'n': "),
        ({"type": "register", "registration_id": True, "descriptor": {"name": 1}}, "register: "),
        ({"type": "register", "registration_id": 10**4000, "descriptor": {}}, "register: "),
    ],
)
def test_a_frame_that_cannot_be_used_is_called_by_its_name(frame: dict[str, Any], shown: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        Codec(EFFECTS, max_frame=1 << 20, max_depth=128).decode(json.dumps(frame).encode())
    assert caught.value.message.startswith(shown)


def test_several_wrong_fields_are_named_together_but_not_without_end() -> None:
    error = refused({"type": "register_tool", "name": 1, "schema": {}, "description": 2, "namespace": 3, "exposure": 4})
    assert error.message.count("expected str, got int") == 3


def test_a_million_wrong_elements_make_one_complaint() -> None:
    error = refused({"type": "panel_render", "panel_id": "p", "lines": [0] * 100_000})
    assert error.message == "panel_render: $.lines[0]: expected str, got int"


@pytest.mark.parametrize("value", [7, None, True, 7.5, 10**100, ["7"], {"id": "7"}])
def test_an_id_of_another_type_is_shown_and_not_taken(value: Any) -> None:
    error = refused({"type": "tool_result", "id": value})
    assert about(error) == ("invalid_frame", "tool_result", None)
    shown = type(value).__name__ if isinstance(value, (dict, list)) else repr(value)[:80]
    assert error.message.endswith(f"(id: {shown})")


def test_a_missing_id_is_a_missing_field() -> None:
    assert refused({"type": "tool_result"}).message == "tool_result: $.id: required field missing"


def test_a_text_glued_in_front_of_a_frame_names_the_text_and_the_call() -> None:
    error = refused(b'Loading...{"type":"tool_result","id":"7","content":[]}')
    assert about(error) == ("not_json", "tool_result", "7")
    assert error.message.startswith("not JSON: Loading...")


def test_a_printed_request_does_not_spoil_its_answer() -> None:
    assert about(refused(b'got {"type":"tool_call","id":"7"}')) == ("not_json", None, None)
    assert about(refused(b'sent {"type":"notify","id":"7"}')) == ("not_json", "notify", None)
    assert about(refused(b'cut {"id":"7","conte')) == ("not_json", None, "7")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "01", "1" * 5000])
def test_what_is_not_json_for_others_is_refused_for_that_call_only(value: str) -> None:
    line = f'{{"type":"tool_result","id":"3","structured_content":{{"v":{value}}}}}'.encode()
    assert about(refused(line)) == ("not_json", "tool_result", "3")


def test_invalid_utf8_is_refused_with_its_bytes_in_hex() -> None:
    assert refused(b"\xff\xfe").message == r"not JSON: \xff\xfe (invalid UTF-8 at byte 0: ff fe)"
    line = b'{"type":"tool_result","id":"3","content":[{"type":"text","text":"' + b"a" * 100 + b'\x80"}]}'
    error = refused(line)
    assert about(error) == ("not_json", "tool_result", "3")
    assert error.message.endswith("(invalid UTF-8 at byte 165: 80 22 7d 5d 7d)")


def test_a_shown_text_is_short_and_has_no_control_characters() -> None:
    message = refused(b"\x1b[31m\r\t" + "\u202eé😀".encode() + b"x" * 500).message
    assert message.startswith("not JSON: \\x1b[31m\\r\\t\\u202eé😀xxx")
    assert "..." in message
    assert message.isprintable()
    assert len(message) < 200
    assert "..." not in refused(b"short").message


@pytest.mark.parametrize("line", [b"[]", b"3", b'"hello"', b"null", b"true"])
def test_json_that_is_no_object_is_no_frame(line: bytes) -> None:
    assert about(refused(line)) == ("not_an_object", None, None)


def test_an_object_without_a_type_word_is_no_frame() -> None:
    assert about(refused(b'{"id":"4"}')) == ("no_type", None, "4")
    assert about(refused(b'{"type":["tool_result"]}')) == ("no_type", None, None)
    assert refused(b'{"type":7}').message == "`type` is 7, not a string"


def test_an_unknown_type_is_named() -> None:
    error = refused({"type": "register_wizard", "id": "4"})
    assert about(error) == ("unknown_type", "register_wizard", "4")
    assert "'register_wizard'" in error.message
    assert len(refused({"type": "x" * 100_000}).message) < 200


def nested(depth: int) -> bytes:
    """A tool_result nested so deep."""
    levels = depth - 1
    return b'{"type":"tool_result","id":"3","structured_content":' + b"[" * levels + b"]" * levels + b"}"


def test_nesting_is_bounded() -> None:
    assert CODEC.decode(nested(128)).TYPE == "tool_result"
    for depth in (129, 2000, 100_000):
        error = refused(nested(depth))
        assert about(error) == ("too_deep", "tool_result", "3")
        assert error.message.startswith('nested deeper than 128 levels: {"type":"tool_result",')


def test_nesting_over_the_interpreters_own_limit_is_refused_too() -> None:
    lenient = Codec(ZOT, max_frame=1 << 20, max_depth=1_000_000)
    with pytest.raises(ProtocolError) as caught:
        lenient.decode(nested(200_000))
    assert about(caught.value) == ("too_deep", "tool_result", "3")


def test_line_separators_of_unicode_survive() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    for ascii_only in (True, False):
        line = json.dumps({"type": "notify", "message": text}, ensure_ascii=ascii_only).encode()
        assert CODEC.decode(line) == from_extension.Notify(message=text)


def test_a_result_has_at_most_so_many_blocks_whatever_is_in_them() -> None:
    line = {"type": "tool_result", "id": "1", "content": [{"type": "text"}] * MAX_PARTS}
    assert len(CODEC.decode(json.dumps(line).encode()).content) == MAX_PARTS
    for extra in ({"type": "text"}, 7):
        error = refused({**line, "content": [*line["content"], extra]})
        assert about(error) == ("invalid_frame", "tool_result", "1")
        assert error.message == "tool_result: $.content: expected at most 10000 elements, got 10001"
    panel = {"type": "panel_render", "panel_id": "1", "lines": [""] * (2 * MAX_PARTS)}
    assert len(CODEC.decode(json.dumps(panel).encode()).lines) == 2 * MAX_PARTS


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "hello", "name": "x", "version": "1", "capabilities": ["events"]},
        {"type": "tool_result", "id": "1", "content": [{"type": "text", "text": "x"}, {"type": "image", "data": ""}]},
        {"type": "command_response", "id": "1", "open_panel": {"id": "p", "lines": ["a", "b"]}},
        {"type": "subscribe", "events": ["turn_start"], "intercept": ["tool_call"]},
    ],
    ids=lambda fields: fields["type"],
)
def test_an_ordinary_frame_takes_the_short_way(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]) -> None:
    frame = CODEC._decode(json.dumps(fields).encode(), ZOT.inbound)
    monkeypatch.setattr(Codec, "_decode", lambda *_: pytest.fail("decoded twice"))
    assert CODEC.decode(json.dumps(fields).encode()) == frame


def test_what_is_no_json_is_told_with_the_decoders_own_reason() -> None:
    assert "(JSON is malformed: invalid character (byte 9))" in refused(b'{"type": }').message
