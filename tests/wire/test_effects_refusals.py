"""Frames of the effect dialect that are refused: what is said, and what about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trio_exthost.errors import ProtocolError
from trio_exthost.wire import EFFECTS, Codec

CODEC = Codec(EFFECTS, max_frame=1 << 20, max_depth=128)
REGISTER = {"type": "register", "registration_id": 1, "kind": "tool", "descriptor": {}}
RESULT = {"type": "invoke_result", "id": "7"}
ASK = {"type": "ask_user", "id": "1", "invocation": "7", "kind": "confirm", "title": "Go on?"}
COMMIT = {"type": "state_commit", "id": "1", "space": "session", "actions": []}
KINDS = "tool, command, provider, prompt_section, request_policy, contribution, hook, migration"


def refused(line: bytes | dict[str, Any]) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        CODEC.decode(line if isinstance(line, bytes) else json.dumps(line).encode())
    return caught.value


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        ({**REGISTER, "registration_id": 0}, "$.registration_id: expected int > 0, got 0"),
        ({**REGISTER, "registration_id": -3}, "$.registration_id: expected int > 0, got -3"),
        ({**REGISTER, "registration_id": True}, "$.registration_id: expected int > 0, got bool"),
        ({**REGISTER, "registration_id": "1"}, "$.registration_id: expected int > 0, got str"),
        ({**REGISTER, "registration_id": 1.0}, "$.registration_id: expected int > 0, got float"),
        ({**REGISTER, "registration_id": None}, "$.registration_id: expected int > 0, got null"),
        ({**REGISTER, "kind": "wizard"}, f"$.kind: expected one of {KINDS}, got 'wizard'"),
        ({**REGISTER, "kind": "a @ b"}, f"$.kind: expected one of {KINDS}, got 'a @ b'"),
        ({**REGISTER, "kind": "TOOL"}, f"$.kind: expected one of {KINDS}, got 'TOOL'"),
        ({**REGISTER, "kind": 3}, f"$.kind: expected one of {KINDS}, got int"),
        ({**REGISTER, "kind": ["tool"]}, f"$.kind: expected one of {KINDS}, got list"),
        ({**REGISTER, "descriptor": []}, "$.descriptor: expected object, got list"),
        ({**REGISTER, "descriptor": None}, "$.descriptor: expected object, got null"),
        ({**REGISTER, "binding": {"scope": "run"}}, "$.binding.id: required field missing"),
        (
            {**REGISTER, "binding": {"scope": "session", "id": "s"}},
            "$.binding.scope: expected one of run, request, got 'session'",
        ),
        ({"type": "update", "registration_id": 1}, "$.descriptor: required field missing"),
        ({"type": "dispose"}, "$.registration_id: required field missing"),
        ({**RESULT, "decision": "deny"}, "$.decision: expected object, got str"),
        (
            {**RESULT, "decision": {"kind": "maybe"}},
            "$.decision.kind: expected one of abstain, allow, ask, deny, cancel, got 'maybe'",
        ),
        ({**RESULT, "actions": [{}, 1]}, "$.actions[1]: expected object, got int"),
        ({**RESULT, "dispose": [4, 0]}, "$.dispose[1]: expected int > 0, got 0"),
        ({**RESULT, "dispose": [True]}, "$.dispose[0]: expected int > 0, got bool"),
        ({**RESULT, "error": {"message": "no"}}, "$.error.code: required field missing"),
        ({**RESULT, "error": "no"}, "$.error: expected object, got str"),
        ({"type": "progress", "id": "7", "fraction": "half"}, "$.fraction: expected number, got str"),
        ({"type": "progress", "id": "7", "fraction": True}, "$.fraction: expected number, got bool"),
        ({"type": "progress", "id": "7", "fraction": 10**400}, "$.fraction: expected number, got one too large"),
        ({"type": "progress", "id": "7", "output": [{"type": "text"}]}, "$.output: expected str, got list"),
        ({**ASK, "kind": "choose"}, "$.kind: expected one of confirm, select, input, got 'choose'"),
        ({**ASK, "timeout_ms": -1}, "$.timeout_ms: expected int from 0 to 2**53, got -1"),
        ({**ASK, "timeout_ms": 10**400}, "$.timeout_ms: expected int from 0 to 2**53, got 1000000000"),
        ({**ASK, "timeout_ms": 1.5}, "$.timeout_ms: expected int from 0 to 2**53, got float"),
        ({**ASK, "options": [1]}, "$.options[0]: expected str, got int"),
        ({"type": "broker_call", "id": "1", "invocation": "7"}, "$.operation: required field missing"),
        ({**COMMIT, "space": "run"}, "$.space: expected one of session, extension, got 'run'"),
        ({**COMMIT, "actions": {}}, "$.actions: expected list, got object"),
        ({"type": "call_tool", "displaced": 1}, "$.displaced: expected bool, got int"),
    ],
)
def test_a_wrong_type_is_refused_with_its_path(frame: dict[str, Any], complaint: str) -> None:
    error = refused(frame)
    assert error.code == "invalid_frame"
    about, _, what = error.message.partition(": ")
    assert about.split(" ")[0] == frame["type"]
    assert what.startswith(complaint)
    assert error.frame_id == frame.get("id")


def test_a_long_bad_word_is_cut() -> None:
    assert len(refused({**REGISTER, "kind": "x" * 100_000}).message) < 300


def test_a_refused_registration_is_named_where_its_number_can_be_read() -> None:
    def named(line: bytes | dict[str, Any]) -> int | None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        return CODEC.registration_id(data, refused(data).frame_type)

    assert named({**REGISTER, "registration_id": 12, "kind": "wizard"}) == 12
    assert named({"type": "update", "registration_id": 1}) == 1
    for number in (0, True, "12", 1.5, None):
        assert named({**REGISTER, "registration_id": number}) is None
    assert named({"type": "dispose"}) is None
    assert named({**RESULT, "registration_id": 4, "decision": 1}) is None
    assert named(b'oops{"type":"register","registration_id":4}') is None
    assert named(b'["register"]') is None
    assert named(b"[" * 200 + b'{"type":"register","registration_id":4}' + b"]" * 200) is None
    assert named(b'{"type":"register","registration_id":4,"descriptor":' + b"[" * 150 + b"]" * 150 + b"}") == 4
