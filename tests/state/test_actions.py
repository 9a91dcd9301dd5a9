"""Durable actions: what is read, and which words refuse what is not."""

import copy
import json
import math

import msgspec
import pytest
from action_strategies import actions
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import StateRefused
from trio_exthost.state.actions import (
    DURABLE_KINDS,
    MAX_REVISION,
    MAX_VALUE_DEPTH,
    AddState,
    AppendCustomEvent,
    AppendModelContext,
    DeleteState,
    SetState,
    check_may_store,
    read_actions,
    read_values,
)
from trio_exthost.state.entries import ContextEntry, DeleteEntry, EventEntry, Placement, SetEntry, encode_entry
from trio_exthost.state.limits import StateLimits

SET = {"kind": "set_state", "key": "k", "value": 1}
ADD = {"kind": "add_state", "key": "k", "by": 1}
DELETE = {"kind": "delete_state", "key": "k"}
EVENT = {"kind": "append_custom_event", "event_id": "e", "custom_type": "t.x", "payload": {}}
SECTION = {"kind": "append_model_context", "context_id": "c", "placement": "system_prompt_section", "content": "hi"}
MESSAGE = {"kind": "append_model_context", "context_id": "c", "placement": "message", "content": {"role": "user"}}


def read(*raw, **options):
    return read_actions(raw, extension="todo", **options)


def refused(*raw, **options):
    with pytest.raises(StateRefused) as caught:
        read(*raw, **options)
    assert caught.value.extension == "todo"
    return caught.value


def test_each_kind_is_read():
    assert read(SET, ADD, DELETE, EVENT, SECTION, MESSAGE) == (
        SetState("k", b"1"),
        AddState("k", 1),
        DeleteState("k"),
        AppendCustomEvent("e", "t.x", b"{}"),
        AppendModelContext("c", Placement.SYSTEM_PROMPT_SECTION, b'"hi"'),
        AppendModelContext("c", Placement.MESSAGE, b'{"role":"user"}'),
    )
    assert {each["kind"] for each in (SET, ADD, DELETE, EVENT, SECTION)} == DURABLE_KINDS


@pytest.mark.parametrize("action", [SET, ADD, DELETE, EVENT, SECTION, MESSAGE])
def test_a_payload_alone_beside_the_kind_is_read_as_if_its_keys_stood_there(action):
    payload = {key: value for key, value in action.items() if key != "kind"}
    assert read({"kind": action["kind"], "payload": payload}) == read(action)


def test_a_kind_in_such_a_payload_does_not_replace_the_action_s_own():
    assert read({"kind": "delete_state", "payload": {"key": "k", "kind": "set_state"}}) == (DeleteState("k"),)


@pytest.mark.parametrize(
    ("given", "wanted"), [({}, None), ({"if_revision": None}, 0), ({"if_revision": 0}, 0), ({"if_revision": 7}, 7)]
)
@pytest.mark.parametrize("action", [SET, DELETE])
def test_no_condition_is_another_thing_than_a_key_never_seen(action, given, wanted):
    (made,) = read({**action, **given})
    assert made.if_revision == wanted


def test_tuples_count_as_arrays():
    assert read({**SET, "value": (1, {"a": (2,)})}) == (SetState("k", b'[1,{"a":[2]}]'),)


@pytest.mark.parametrize(
    ("action", "entry"),
    [
        (SET, SetEntry(key="k", value=msgspec.Raw(b"1"))),
        ({**ADD, "by": 1.5}, SetEntry(key="k", value=msgspec.Raw(b"1.5"), by=1.5)),
        (DELETE, DeleteEntry(key="k")),
        (EVENT, EventEntry(event_id="e", custom_type="t.x", payload=msgspec.Raw(b"{}"))),
        (
            SECTION,
            ContextEntry(context_id="c", placement=Placement.SYSTEM_PROMPT_SECTION, content=msgspec.Raw(b'"hi"')),
        ),
    ],
)
def test_an_entry_may_be_as_large_as_it_is_when_stored_and_no_larger(action, entry):
    size = len(encode_entry(entry))
    assert len(read(action, limits=StateLimits(entry_bytes=size))) == 1
    error = refused(action, limits=StateLimits(entry_bytes=size - 1))
    assert (error.code, error.reason) == ("resource_limit", f"{size} bytes, of {size - 1} allowed")


@given(st.lists(actions, max_size=32))
def test_whatever_is_well_formed_is_read_and_left_as_it_was(raw):
    before = copy.deepcopy(raw)
    made = read(*raw)
    assert len(made) == len(raw)
    assert raw == before
    for action, source in zip(made, raw, strict=True):
        match action:
            case SetState(key=key, value=value):
                assert (key, json.loads(value)) == (source["key"], source["value"])
            case AppendCustomEvent(event_id=event_id, payload=payload):
                assert (event_id, json.loads(payload)) == (source["event_id"], source["payload"])
            case AppendModelContext(context_id=context_id, content=content):
                assert (context_id, json.loads(content)) == (source["context_id"], source["content"])
            case AddState(key=key, by=by):
                assert (key, by) == (source["key"], source["by"])
            case DeleteState(key=key):
                assert key == source["key"]


@pytest.mark.parametrize(
    ("raw", "field", "words"),
    [
        ("set_state", "actions[1]", "must be an object, not text"),
        ({}, "actions[1].kind", "must be a durable action, not null"),
        ({"kind": 3}, "actions[1].kind", "must be a durable action, not a number"),
        ({"kind": "set_stat"}, "actions[1].kind", 'not "set_stat" (did you mean set_state?)'),
        ({"kind": "replace_text"}, "actions[1].kind", "known are set_state, add_state, delete_state"),
        ({**SET, "kye": 1}, "actions[1].kye", "is not known here (known are kind, key, value, if_revision)"),
        ({**ADD, "if_revision": 1}, "actions[1].if_revision", "is not known here"),
        ({"kind": "set_state", "key": "k"}, "actions[1].value", "is missing"),
        ({"kind": "set_state", "value": 1}, "actions[1].key", "is missing"),
        ({**SET, "key": 3}, "actions[1].key", "must be text, not a number"),
        ({**SET, "key": ""}, "actions[1].key", "1 to 256 characters, none of control"),
        ({**SET, "key": "k" * 257}, "actions[1].key", "1 to 256 characters"),
        ({**SET, "key": "a\nb"}, "actions[1].key", "none of control"),
        ({**SET, "key": "a\x85b"}, "actions[1].key", "none of control"),
        ({**SET, "key": "a\n"}, "actions[1].key", "none of control"),
        ({**SET, "key": "\ud800"}, "actions[1].key", "surrogate"),
        ({**SET, "if_revision": -1}, "actions[1].if_revision", f"from 0 to {MAX_REVISION}, not -1"),
        ({**SET, "if_revision": True}, "actions[1].if_revision", "must be a whole number"),
        ({**SET, "if_revision": 1.5}, "actions[1].if_revision", "must be a whole number, not 1.5"),
        ({**SET, "value": math.nan}, "actions[1].value", "is not JSON: $: nan is not JSON"),
        ({**SET, "value": {"a": [1, math.inf]}}, "actions[1].value", "is not JSON: $.a[1]: inf is not JSON"),
        ({**SET, "value": {1: 2}}, "actions[1].value", "is not JSON: $: the key 1 is not a string"),
        ({**SET, "value": {"a": {1}}}, "actions[1].value", "is not JSON: $.a: a value of type set"),
        ({**SET, "value": "\udfff"}, "actions[1].value", "is not JSON: $: the lone surrogate"),
        ({**SET, "value": 10**5000}, "actions[1].value", "is not JSON"),
        ({**ADD, "by": "1"}, "actions[1].by", "must be a number, not text"),
        ({**ADD, "by": True}, "actions[1].by", "must be a number, not true or false"),
        ({**ADD, "by": math.inf}, "actions[1].by", "is not JSON"),
        ({**EVENT, "event_id": "e\x00"}, "actions[1].event_id", "none of control"),
        ({**EVENT, "custom_type": ".x"}, "actions[1].custom_type", "a letter or digit at both ends"),
        ({**EVENT, "custom_type": "x-"}, "actions[1].custom_type", "a letter or digit at both ends"),
        ({**EVENT, "custom_type": "x" * 129}, "actions[1].custom_type", "1 to 128"),
        ({**EVENT, "custom_type": "x\n"}, "actions[1].custom_type", "1 to 128"),
        ({**SECTION, "placement": "footer"}, "actions[1].placement", "one of system_prompt_section, message"),
        ({**SECTION, "content": {}}, "actions[1].content", "of a system_prompt_section must be a string, not an obj"),
        ({**MESSAGE, "content": "hi"}, "actions[1].content", "of a message must be an object, not text"),
        ({**SECTION, "context_id": None}, "actions[1].context_id", "must be text, not null"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_nothing_is_read(raw, field, words):
    error = refused(SET, raw)
    assert (error.code, error.field) == ("invalid_payload", field)
    assert words in str(error)


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_value_may_be_so_deep_and_no_deeper():
    assert read({**SET, "value": nested(MAX_VALUE_DEPTH)})
    error = refused({**SET, "value": nested(MAX_VALUE_DEPTH + 1)})
    assert (error.code, error.field) == ("resource_limit", "actions[0].value")
    endless = []
    endless.append(endless)
    assert refused({**SET, "value": endless}).field == "actions[0].value"


def test_a_batch_may_have_so_many_and_no_more():
    assert len(read(*[SET] * 32)) == 32
    error = refused(*[SET] * 33)
    assert (error.code, error.field) == ("resource_limit", "actions")
    assert "33 in one batch, of 32 allowed" in str(error)
    assert "several batches" in error.hint


def test_an_entry_may_be_so_large_in_bytes_and_no_larger():
    spent = 64 * 1024 - 100
    assert read({**SET, "value": "x" * spent})
    error = refused(SET, {**SET, "value": "x" * (64 * 1024)})
    assert (error.code, error.field) == ("resource_limit", "actions[1]")
    assert "of 65536 allowed" in str(error)
    assert refused({**EVENT, "payload": "é" * (33 * 1024)}).code == "resource_limit"


def test_limits_are_the_caller_s():
    tight = StateLimits(batch_entries=1, entry_bytes=64)
    assert read(SET, limits=tight)
    assert refused(SET, SET, limits=tight).field == "actions"
    assert refused({**SET, "value": "x" * 64}, limits=tight).field == "actions[0]"


def test_storing_needs_the_permission_and_a_schema():
    assert check_may_store("todo", granted=["session.write"], state_schema=3) == 3
    with pytest.raises(StateRefused, match=r"todo: .*no permission session\.write") as caught:
        check_may_store("todo", granted=["tools.register"], state_schema=3)
    assert caught.value.code == "permission_denied"
    with pytest.raises(StateRefused, match=r"todo: .*no state_schema") as caught:
        check_may_store("todo", granted=["session.write"], state_schema=None)
    assert caught.value.code == "state_schema_required"


def test_a_whole_state_is_read_key_by_key():
    state = {"a": 1, "b": {"c": [True, None]}}
    assert read_values(state, extension="todo") == {"a": b"1", "b": b'{"c":[true,null]}'}
    assert read_values({str(key): key for key in range(1000)}, extension="todo").keys() == set(map(str, range(1000)))


@pytest.mark.parametrize(
    ("state", "code", "field", "words"),
    [
        ([], "invalid_payload", "state", "must be an object, not an array"),
        (None, "invalid_payload", "state", "must be an object, not null"),
        ({"ok": 1, "a\nb": 1}, "invalid_payload", 'state["a\\nb"]', "1 to 256 characters, none of control"),
        ({"k": math.nan}, "invalid_payload", "state.k", "nan is not JSON"),
        ({"k": "x" * 65536}, "resource_limit", "state.k", "of 65536 allowed"),
    ],
)
def test_a_state_that_cannot_be_stored_is_refused_with_its_place(state, code, field, words):
    with pytest.raises(StateRefused) as caught:
        read_values(state, extension="todo")
    assert (caught.value.code, caught.value.field, caught.value.extension) == (code, field, "todo")
    assert words in str(caught.value)
