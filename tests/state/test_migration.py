"""Migration: due once per branch, one batch of any size, and refused whole."""

import pytest
from action_strategies import ids, values
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import MigrationRefused, StateRefused
from trio_exthost.state.actions import read_actions
from trio_exthost.state.applying import apply
from trio_exthost.state.entries import DeleteEntry, MigrationEntry, SetEntry, encode_batch
from trio_exthost.state.limits import StateLimits
from trio_exthost.state.migration import build_migration, needs_migration
from trio_exthost.state.projection import Projection, replay

EMPTY = Projection(extension="todo")


def stored(state, schema=1):
    raw = [{"kind": "set_state", "key": key, "value": value} for key, value in state.items()]
    raw.append({"kind": "append_custom_event", "event_id": "e", "custom_type": "t", "payload": 1})
    actions = read_actions(raw, extension="todo", limits=StateLimits(batch_entries=10_000))
    return apply(EMPTY, actions, schema=schema)


@pytest.mark.parametrize("schema", [None, 1, 7])
def test_where_nothing_is_stored_nothing_is_due(schema):
    assert needs_migration(EMPTY, schema) is None


def test_the_same_schema_is_not_due():
    assert needs_migration(stored({"a": 1}, 2).projection, 2) is None


def test_a_newer_extension_gets_all_keys_of_the_old_form():
    due = needs_migration(stored({"a": 1, "b": [2]}).projection, 3)
    assert (due.from_schema, due.to_schema, due.state) == (1, 3, {"a": 1, "b": [2]})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (1, "its state stands in schema 2, which is newer than its state_schema, 1"),
        (None, "it has state in schema 2 and its manifest has no state_schema"),
    ],
)
def test_an_older_extension_must_not_run_on_newer_state(schema, words):
    with pytest.raises(MigrationRefused, match=words) as caught:
        needs_migration(stored({"a": 1}, 2).projection, schema)
    assert (caught.value.code, caught.value.extension) == ("state_migration_failed", "todo")
    assert "the state is kept as it is" in caught.value.hint
    assert isinstance(caught.value, StateRefused)


@given(st.dictionaries(ids, values, max_size=5), st.dictionaries(ids, values, max_size=5))
def test_the_new_state_replaces_the_old_and_replay_says_so(old, new):
    first = stored(old)
    made = build_migration(first.projection, new, to_schema=2, sequence=9)
    for projection in (made.projection, replay(map(encode_batch, (first.batch, made.batch)))["todo"]):
        assert projection.state() == new
        assert (projection.schema, projection.revision) == (2, 2)
        assert list(projection.events) == ["e"]
    assert made.batch.entries[-1] == MigrationEntry(from_schema=1, to_schema=2)
    assert (made.batch.schema, made.batch.sequence) == (2, 9)
    assert needs_migration(made.projection, 2) is None


def test_what_stays_as_it_is_is_not_written_again():
    made = build_migration(stored({"a": 1, "b": {"x": 1, "y": 2}, "c": 3}).projection,
                           {"b": {"y": 2, "x": 1}, "c": 4, "d": 5}, to_schema=2)  # fmt: skip
    *changes, _marker = made.batch.entries
    assert [(type(each), each.key) for each in changes] == [(DeleteEntry, "a"), (SetEntry, "c"), (SetEntry, "d")]
    assert made.projection.revision_of("b") == 1


def test_it_may_have_any_number_of_keys():
    state = {f"key{number}": number for number in range(1000)}
    made = build_migration(stored(state).projection, {key.upper(): value for key, value in state.items()}, to_schema=2)
    assert len(made.batch.entries) == 2001
    assert len(made.projection.values) == 1000


@pytest.mark.parametrize(
    ("state", "field", "words"),
    [
        (None, "state", "must be an object, not null"),
        ({"a": float("nan")}, "state.a", "nan is not JSON"),
        ({"a": "x" * 70_000}, "state.a", "of 65536 allowed"),
        ({"": 1}, 'state[""]', "1 to 256 characters"),
    ],
)
def test_what_cannot_be_stored_is_refused_whole(state, field, words):
    with pytest.raises(MigrationRefused, match="what its migration returned cannot be stored") as caught:
        build_migration(stored({"a": 1}).projection, state, to_schema=2)
    assert (caught.value.field, caught.value.code) == (field, "state_migration_failed")
    assert words in str(caught.value)


def test_what_is_too_much_is_refused_with_the_way_out():
    with pytest.raises(MigrationRefused, match="11 bytes would be stored, of 10 allowed") as caught:
        build_migration(stored({"a": 1}).projection, {"a": 1_234_567}, to_schema=2, limits=StateLimits(live_bytes=10))
    assert caught.value.hint == "delete keys or store smaller values; what was deleted or replaced does not count"


def test_the_quota_holds_for_it_too():
    limits = StateLimits(live_bytes=50)
    with pytest.raises(MigrationRefused, match="would be stored, of 50 allowed"):
        build_migration(stored({"a": 1}).projection, {"a": "x" * 60}, to_schema=2, limits=limits)


def test_one_that_is_not_due_is_refused():
    with pytest.raises(MigrationRefused, match="needs no migration to schema 1"):
        build_migration(stored({"a": 1}).projection, {}, to_schema=1)
