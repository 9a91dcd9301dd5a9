"""A batch meets a state: all of it counts or nothing, what changes nothing is skipped, and replay gives the same."""

import math

import pytest
from action_strategies import actions
from batch_model import Model, Refused, assert_is, same
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import MigrationRefused, StateRefused
from trio_exthost.state.actions import AddState, SetState, read_actions
from trio_exthost.state.applying import apply
from trio_exthost.state.entries import (
    ContextEntry,
    DeleteEntry,
    EventEntry,
    Placement,
    SetEntry,
    decode_batch,
    encode_batch,
)
from trio_exthost.state.limits import StateLimits
from trio_exthost.state.projection import Projection, replay

EMPTY = Projection(extension="todo")


def set_(key, value, **condition):
    return {"kind": "set_state", "key": key, "value": value, **condition}


def add(key, by):
    return {"kind": "add_state", "key": key, "by": by}


def delete(key, **condition):
    return {"kind": "delete_state", "key": key, **condition}


def event(event_id, payload, custom_type="t"):
    return {"kind": "append_custom_event", "event_id": event_id, "custom_type": custom_type, "payload": payload}


def section(context_id, text):
    return _context(context_id, "system_prompt_section", text)


def message(context_id, content):
    return _context(context_id, "message", content)


def _context(context_id, placement, content):
    return {"kind": "append_model_context", "context_id": context_id, "placement": placement, "content": content}


def put(projection, *raw, schema=1, **options):
    return apply(projection, read_actions(raw, extension="todo"), schema=schema, **options)


def state_after(*batches):
    projection = EMPTY
    for batch in batches:
        projection = put(projection, *batch).projection
    return projection


def refused(projection, *raw, **options):
    with pytest.raises(StateRefused) as caught:
        put(projection, *raw, **options)
    assert caught.value.extension == "todo"
    return caught.value


# --- against a model -------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(actions, min_size=1, max_size=5), max_size=8))
def test_any_batches_give_what_the_model_gives_and_so_does_their_replay(batches):
    projection, model, bodies = EMPTY, Model(), []
    for number, batch in enumerate(batches, 1):
        try:
            expected = model.after(batch)
        except Refused:
            refused(projection, *batch)
            assert_is(projection, model)
            continue
        applied = put(projection, *batch, sequence=number)
        assert (applied.batch is None) == (expected.revision == model.revision) == (not applied.committed.changed)
        assert applied.committed.revision == expected.revision
        named = {each["key"] for each in batch if "key" in each}
        assert same(applied.committed.values, {key: expected.values[key] for key in named if key in expected.values})
        if applied.batch is not None:
            bodies.append(encode_batch(applied.batch))
            assert decode_batch(bodies[-1]) == applied.batch
        assert_is(projection, model)
        projection, model = applied.projection, expected
        assert_is(projection, model)
    replayed = replay(bodies).get("todo", EMPTY)
    assert_is(replayed, model)
    assert replayed.usage == projection.usage


@given(st.lists(actions, min_size=1, max_size=6))
def test_a_batch_without_additions_and_conditions_counts_once(batch):
    plain = [{key: value for key, value in each.items() if key != "if_revision"} for each in batch]
    names = ("key", "event_id", "context_id")
    unique = {tuple(map(each.get, names)): each for each in plain if each["kind"] != "add_state"}
    once = put(EMPTY, *unique.values())
    again = put(once.projection, *unique.values())
    assert again.projection is once.projection
    assert again.batch is None
    assert not again.committed.changed


# --- what is skipped -------------------------------------------------------------------------------------------------


def test_what_changes_nothing_is_skipped_and_the_rest_is_stored():
    projection = state_after([set_("a", {"x": 1, "y": 2}), event("e", [1]), section("c", "hi")])
    applied = put(
        projection, set_("a", {"y": 2, "x": 1}), delete("b"), event("e", [1]), section("c", "hi"), set_("d", 1)
    )
    assert [(type(each), each.key) for each in applied.batch.entries] == [(SetEntry, "d")]
    assert applied.committed.values == {"a": {"x": 1, "y": 2}, "d": 1}
    assert applied.committed.revision == 2


@pytest.mark.parametrize(("old", "new"), [(1, 1.0), (1, True), (0, False), (None, False), ("", None), ([], {})])
def test_values_that_other_languages_tell_apart_are_different(old, new):
    applied = put(state_after([set_("a", old)]), set_("a", new))
    assert applied.committed.changed
    assert type(applied.projection.get("a")) is type(new)


def test_an_empty_batch_changes_nothing():
    applied = put(EMPTY)
    assert (applied.projection, applied.batch, applied.committed.revision) == (EMPTY, None, 0)


def test_entries_stand_in_the_order_of_the_actions():
    applied = put(EMPTY, set_("a", 1), event("e", 1), message("c", {"role": "user"}), delete("a"), add("a", 2))
    assert [type(each) for each in applied.batch.entries] == [SetEntry, EventEntry, ContextEntry, DeleteEntry, SetEntry]
    assert applied.batch.entries[-1].by == 2
    assert applied.projection.get("a") == 2


# --- conditions ------------------------------------------------------------------------------------------------------


def test_a_condition_speaks_of_the_state_before_the_batch():
    projection = state_after([set_("a", 1)], [set_("b", 1)])
    applied = put(projection, set_("a", 2), set_("a", 3, if_revision=1), delete("b", if_revision=2))
    assert applied.projection.state() == {"a": 3}
    assert applied.projection.revision_of("a") == 3


@pytest.mark.parametrize("absent", [0, None])
def test_null_or_nought_means_that_the_key_must_not_be_there(absent):
    assert put(EMPTY, set_("a", 1, if_revision=absent)).projection.get("a") == 1
    error = refused(state_after([set_("a", 1)]), set_("b", 1), set_("a", 2, if_revision=absent))
    assert (error.code, error.field) == ("conflict", "actions[1].if_revision")
    assert 'the key "a" was expected to be absent and is at revision 1' in str(error)


def test_a_key_that_was_deleted_or_changed_does_not_have_its_old_revision():
    projection = state_after([set_("a", 1)], [delete("a")])
    error = refused(projection, delete("a", if_revision=1))
    assert 'the key "a" was expected at revision 1 and is not there' in str(error)
    back = put(projection, set_("a", 1)).projection
    assert back.revision_of("a") == 3
    assert refused(back, set_("a", 5, if_revision=1)).code == "conflict"


def test_a_condition_counts_even_where_the_value_stands_there_already():
    assert refused(state_after([set_("a", 1)]), set_("a", 1, if_revision=9)).code == "conflict"


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_additions_add_up_within_a_batch_and_a_missing_key_counts_as_nought():
    applied = put(EMPTY, add("n", 2), add("n", -5), add("x", 0.5), add("zero", 0))
    assert applied.committed.values == {"n": -3, "x": 0.5, "zero": 0}


@pytest.mark.parametrize(
    ("value", "word"), [("1", "text"), (True, "true or false"), (None, "null"), ([], "an array"), ({}, "an object")]
)
def test_only_to_a_number_something_can_be_added(value, word):
    error = refused(state_after([set_("a", value)]), add("n", 1), add("a", 1))
    assert (error.code, error.field) == ("invalid_payload", "actions[1].key")
    assert f'the key "a" holds {word}; ' in str(error)


@pytest.mark.parametrize(
    ("value", "by"), [(2**64 - 1, 1), (-(2**63), -1), (1.7e308, 1.7e308), (10**400, 0.5), (0, 2**64)]
)
def test_a_sum_that_no_number_can_hold_is_refused(value, by):
    projection = apply(
        EMPTY, [SetState("n", b"%d" % value if isinstance(value, int) else b"1.7e308")], schema=1
    ).projection
    with pytest.raises(StateRefused, match='the sum under "n" is too large') as caught:
        apply(projection, [AddState("n", by)], schema=1)
    assert (caught.value.code, caught.value.field) == ("invalid_payload", "actions[0].by")


def test_a_whole_number_stays_whole():
    total = put(state_after([set_("n", 2**53)]), add("n", 1)).projection.get("n")
    assert (total, type(total)) == (2**53 + 1, int)
    assert math.isclose(put(state_after([set_("n", 1)]), add("n", 0.25)).projection.get("n"), 1.25)


# --- events and contexts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [event("e", 2), event("e", 1, "other"), event("e", 1.0)])
def test_an_event_of_the_same_id_and_other_content_is_refused(other):
    projection = state_after([event("e", 1)])
    error = refused(projection, event("f", 1), other)
    assert (error.code, error.field) == ("conflict", "actions[1].event_id")
    assert "a new id" in error.hint
    assert list(projection.events) == ["e"]


def test_events_are_replayed_oldest_first_of_one_type_or_all():
    projection = state_after([event("z", 1, "x"), event("a", 2, "y")], [event("m", 3, "x")])
    assert [each.payload for each in projection.replay_events()] == [1, 2, 3]
    assert [each.payload for each in projection.replay_events("x")] == [1, 3]
    assert list(projection.replay_events("z")) == []


def test_an_event_knows_the_sequence_it_came_with():
    assert put(EMPTY, event("e", 1), sequence=42).projection.events["e"].sequence == 42


def test_a_context_of_the_same_id_takes_the_place_of_the_old_one():
    projection = state_after([section("a", "one"), section("b", "two")], [message("a", {"role": "user"})])
    assert [(each.context_id, each.placement, each.content) for each in projection.contexts.values()] == [
        ("a", Placement.MESSAGE, {"role": "user"}),
        ("b", Placement.SYSTEM_PROMPT_SECTION, "two"),
    ]


# --- schema, quota ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("schema", "hint"), [(1, "the newer version"), (3, "migrated first")])
def test_nothing_is_stored_in_another_schema_than_the_state_stands_in(schema, hint):
    projection = put(EMPTY, set_("a", 1), schema=2).projection
    with pytest.raises(
        MigrationRefused, match=f"todo: its state stands in schema 2, and it stores in schema {schema}"
    ) as e:
        put(projection, set_("a", 2), schema=schema)
    assert e.value.code == "state_migration_failed"
    assert hint in e.value.hint


def test_quota_counts_what_is_live_and_says_what_uses_it():
    limits = StateLimits(live_bytes=100)
    projection = state_after([set_("big", "x" * 40), event("e", 1), section("c", "hi")])
    assert projection.usage.live_bytes == (3 + 42) + (1 + 1 + 1) + (1 + 4)
    error = refused(projection, set_("more", "x" * 60), limits=limits)
    assert error.code == "resource_limit"
    assert "119 bytes would be stored, of 100 allowed; 53 are now: " in str(error)
    assert '45 by 1 keys, 3 by 1 custom events, 5 by 1 model contexts; the largest key is "big" with 42' in str(error)
    for _ in range(50):  # what was replaced or deleted does not count
        projection = put(projection, set_("big", "y" * 40), limits=limits).projection
        projection = put(projection, set_("big", "x" * 40), limits=limits).projection
        projection = put(projection, set_("brief", "x" * 30), limits=limits).projection
        projection = put(projection, delete("brief"), limits=limits).projection
    assert projection.usage.live_bytes == 53


def test_quota_may_be_used_up():
    projection = put(EMPTY, set_("a", 1), set_("b", 2), limits=StateLimits(live_bytes=4)).projection
    assert projection.usage.live_bytes == 4
    assert refused(EMPTY, set_("a", 1), set_("b", 23), limits=StateLimits(live_bytes=4)).code == "resource_limit"


def test_quota_names_the_key_of_the_largest_value():
    limits = StateLimits(live_bytes=60)
    projection = put(EMPTY, set_("a", 1), set_("m", "x" * 40), set_("z", 2), limits=limits).projection
    assert 'the largest key is "m" with 42' in str(refused(projection, set_("more", "x" * 60), limits=limits))


def test_quota_looks_at_the_end_of_a_batch():
    limits = StateLimits(live_bytes=100)
    projection = state_after([set_("a", "x" * 80)])
    applied = put(projection, set_("b", "x" * 80), delete("a"), limits=limits)
    assert applied.projection.usage.live_bytes == 83


def test_a_state_that_is_too_large_already_may_become_smaller_only():
    limits = StateLimits(live_bytes=10)
    projection = state_after([set_("a", "x" * 80), set_("b", 1)])
    smaller = put(projection, set_("a", "x" * 60), limits=limits).projection
    assert smaller.usage.live_bytes > 10
    assert refused(smaller, set_("b", 10), limits=limits).code == "resource_limit"
    assert "the largest key" not in str(refused(EMPTY, event("e", "x" * 20), limits=limits))


def test_names_count_in_bytes():
    assert state_after([set_("é", 1)]).usage.value_bytes == 3
