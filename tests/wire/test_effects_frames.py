"""The frames of the effect dialect: identity, what is written, and what zot's hides."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.effects import DisposeCause, EffectKind
from trio_exthost.errors import PayloadError, ProtocolError
from trio_exthost.wire import ABSENT, EFFECTS, ZOT, Codec, from_extension, to_extension
from trio_exthost.wire.words import CancelReason, DecisionKind, DisposalCause, RegistrationKind, RejectionCode

CODEC = Codec(EFFECTS, max_frame=1 << 20, max_depth=128)
NOT_EFFECTS = Codec(ZOT, max_frame=1 << 20, max_depth=128)
REGISTER = {"type": "register", "registration_id": 1, "kind": "tool", "descriptor": {}}
RESULT = {"type": "invoke_result", "id": "7"}
ASK = {"type": "ask_user", "id": "1", "invocation": "7", "kind": "confirm", "title": "Go on?"}
IN = strategies.EFFECTS_IN_CLASSES
OUT = strategies.EFFECTS_OUT_CLASSES


def refused(line: bytes | dict[str, Any], decode: Callable[[bytes], Any] = CODEC.decode) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode(line if isinstance(line, bytes) else json.dumps(line).encode())
    return caught.value


def attempt(decode: Callable[[bytes], Any], line: bytes) -> Any:
    """The frame, or the decoder's own error; any other goes through."""
    try:
        return decode(line)
    except ProtocolError as error:
        return error


def sent(frame: Any) -> Any:
    return json.loads(CODEC.encode(frame))


# --- identity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", IN, ids=lambda kind: kind.TYPE)
@given(st.data())
def test_a_frame_of_an_extension_survives_the_way(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(strategies.frames_of(kind))
    line = CODEC.encode(frame)
    assert line.count(b"\n") == 1
    back = CODEC.decode(line)
    assert back == frame
    assert CODEC.encode(back) == line


@pytest.mark.parametrize("kind", OUT, ids=lambda kind: kind.TYPE)
@given(st.data())
def test_a_frame_of_the_host_survives_the_way(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(strategies.frames_of(kind))
    line = CODEC.encode(frame)
    assert line.count(b"\n") == 1
    assert CODEC.decode_outbound(line) == frame


@given(strategies.in_frames)
def test_frames_of_zot_are_the_same_lines_in_both_dialects(frame: Any) -> None:
    line = NOT_EFFECTS.encode(frame)
    assert CODEC.encode(frame) == line
    assert CODEC.decode(line) == frame


@pytest.mark.parametrize("kind", [*IN, *OUT], ids=lambda kind: kind.TYPE)
@given(st.data())
def test_zots_dialect_knows_none_of_them(kind: type[Any], data: st.DataObject) -> None:
    frame = data.draw(strategies.frames_of(kind))
    with pytest.raises(PayloadError) as caught:
        NOT_EFFECTS.encode(frame)
    assert caught.value.message == f"{kind.TYPE} is not of the zot dialect"
    for decode in (NOT_EFFECTS.decode, NOT_EFFECTS.decode_outbound):
        assert refused(CODEC.encode(frame), decode).code == "unknown_type"


# --- any input -------------------------------------------------------------------------------------------------------

FIELDS = sorted({field for kind in (*IN, *OUT) for field in kind.__annotations__} - {"TYPE"})
NUMBERS = st.sampled_from([0, 1, -1, True, 1.0, 1 << 60, 10**400])


@given(
    st.sampled_from(sorted(kind.TYPE for kind in (*IN, *OUT))),
    st.dictionaries(st.sampled_from(FIELDS), strategies.json_values | NUMBERS | st.sampled_from(list(DecisionKind))),
)
def test_arbitrary_fields_raise_nothing_but_the_own_error(word: str, fields: dict[str, Any]) -> None:
    line = json.dumps({**fields, "type": word}).encode()
    for decode in (CODEC.decode, CODEC.decode_outbound):
        outcome = attempt(decode, line)
        if isinstance(outcome, ProtocolError):
            assert outcome.code in {"unknown_type", "invalid_frame"}
            assert outcome.frame_type == word
        else:
            assert word == outcome.TYPE


@given(st.binary(max_size=60), st.data())
def test_a_frame_with_a_hole_in_it_raises_nothing_but_the_own_error(rubbish: bytes, data: st.DataObject) -> None:
    line = CODEC.encode(data.draw(strategies.effects_in_frames))
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(line)), st.integers(0, len(line)))))
    broken = line[:start] + rubbish + line[stop:]
    outcome = attempt(CODEC.decode, broken)
    named = CODEC.registration_id(broken, outcome.frame_type) if isinstance(outcome, ProtocolError) else None
    assert named is None or named > 0


# --- what is read and written --------------------------------------------------------------------------------------


def test_unknown_keys_are_ignored_and_kept_in_what_is_raw() -> None:
    frame = CODEC.decode(json.dumps({**REGISTER, "colour": "red", "descriptor": {"colour": "red"}}).encode())
    assert frame == from_extension.Register(1, RegistrationKind.TOOL, {"colour": "red"})


# --- null and absent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [{}, {"actions": None, "decision": None}], ids=["alone", "beside other nulls"])
def test_a_value_of_null_is_not_an_absent_value(others: dict[str, Any]) -> None:
    absent = CODEC.decode(json.dumps({**RESULT, **others}).encode())
    null = CODEC.decode(json.dumps({**RESULT, **others, "value": None}).encode())
    assert absent == from_extension.InvokeResult("7")
    assert absent.value is ABSENT
    assert null == from_extension.InvokeResult("7", value=None)
    assert null != absent
    assert sent(absent) == RESULT
    assert sent(null) == {**RESULT, "value": None}


def test_a_brokers_null_is_written() -> None:
    assert sent(to_extension.BrokerResult("1", True, None)) == {
        "type": "broker_result",
        "id": "1",
        "ok": True,
        "value": None,
    }
    failed = to_extension.BrokerResult("1", False, error=to_extension.ErrorDetail("not_found", "no such key"))
    assert "value" not in sent(failed)
    assert CODEC.decode_outbound(CODEC.encode(failed)) == failed


def test_null_is_as_good_as_absent_elsewhere() -> None:
    line = {**ASK, "message": None, "options": None, "default": None, "timeout_ms": None}
    assert CODEC.decode(json.dumps(line).encode()) == CODEC.decode(json.dumps(ASK).encode())
    line = {"type": "progress", "id": "7", "fraction": None, "text": None, "output": None}
    assert CODEC.decode(json.dumps(line).encode()) == from_extension.Progress("7")


def test_a_status_line_can_be_emptied_and_a_whole_number_is_a_fraction() -> None:
    frame = CODEC.decode(b'{"type":"progress","id":"7","fraction":1,"text":""}')
    assert frame == from_extension.Progress("7", 1.0, "")
    assert type(frame.fraction) is float


def test_an_absent_value_is_nowhere_taken_for_json() -> None:
    with pytest.raises(PayloadError, match="a value of type Absent is not JSON"):
        CODEC.encode(to_extension.AskUserResult("1", "answered", {"value": ABSENT}))  # type: ignore[arg-type]


# --- what is written -------------------------------------------------------------------------------------------------


def test_absent_keys_of_a_context_are_left_out_and_the_flags_are_not() -> None:
    context = to_extension.Context("guard", "s1", "/w", 4)
    assert sent(to_extension.Invoke("7", 3, to_extension.Envelope("command", context), 30_000)) == {
        "type": "invoke",
        "id": "7",
        "registration_id": 3,
        "envelope": {
            "event": "command",
            "context": {
                "extension_id": "guard",
                "session_id": "s1",
                "cwd": "/w",
                "sequence": 4,
                "scope": {},
                "has_interactive_client": False,
                "dry_run": False,
            },
            "payload": {},
        },
        "deadline_ms": 30_000,
    }
    full = to_extension.Context(
        "guard",
        "s1",
        "/w",
        4,
        to_extension.InvocationScope("r2", "r1", request_id="q1"),
        to_extension.Agent("a1", "scout"),
        to_extension.Model("p", "m"),
        True,
        True,
    )
    written = sent(to_extension.Invoke("7", 3, to_extension.Envelope("tool", full, {"a": None}), 1))["envelope"]
    assert written["context"]["scope"] == {"run_id": "r2", "parent_run_id": "r1", "request_id": "q1"}
    assert written["context"]["agent"] == {"id": "a1", "name": "scout"}
    assert written["context"]["model"] == {"provider": "p", "model": "m"}
    assert written["context"]["has_interactive_client"] is written["context"]["dry_run"] is True
    assert written["payload"] == {"a": None}


def test_an_acknowledgement_holds_the_terms_of_the_dialect_only_where_it_has_them() -> None:
    assert "dialect" not in sent(to_extension.HelloAck(1))
    terms = to_extension.DialectTerms("s1", 4)
    assert sent(to_extension.HelloAck(1, dialect=terms))["dialect"] == {
        "session_id": "s1",
        "instance": 4,
        "revision": 1,
        "events": [],
        "granted": [],
        "limits": {},
    }


def test_words_are_written_as_the_wire_spells_them() -> None:
    rejected = to_extension.Rejected(3, RejectionCode.EVENT_NOT_DISPATCHED, "no such point")
    assert sent(rejected)["code"] == "event_not_dispatched"
    cancel = to_extension.Cancel("7", CancelReason.SHUTDOWN, 0)
    assert sent(cancel) == {"type": "cancel", "id": "7", "reason": "shutdown", "grace_ms": 0}


def test_the_words_are_those_of_the_ledger() -> None:
    assert {kind.value for kind in RegistrationKind} == {kind.value for kind in EffectKind} - {
        "subscription",
        "interception",
    }
    assert {cause.value for cause in DisposalCause} == {cause.value for cause in DisposeCause}
