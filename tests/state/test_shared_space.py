"""What an extension stores for all sessions, in memory and in SQLite: the same rules, one step at a time."""

import pytest
from action_strategies import actions as any_actions
from batch_model import Model, Refused, assert_is
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trio_exthost.errors import MigrationRefused, StateRefused
from trio_exthost.state import StateLimits, needs_migration, read_actions
from trio_exthost.state.memory import MemoryStores
from trio_exthost.state.sqlite import SqliteStores


@pytest.fixture(params=["memory", "sqlite"])
def stores(request, tmp_path):
    return MemoryStores() if request.param == "memory" else SqliteStores(tmp_path)


@pytest.fixture
def store(stores):
    return stores.open_extension("todo")


def actions(*raw):
    return read_actions(raw, extension="todo")


def put(key, value, **more):
    return {"kind": "set_state", "key": key, "value": value, **more}


def add(key, by):
    return {"kind": "add_state", "key": key, "by": by}


def event(name, payload=None, kind="t"):
    return {"kind": "append_custom_event", "event_id": name, "custom_type": kind, "payload": payload}


def test_reading_what_was_never_written_makes_nothing(stores, store):
    assert store.extension == "todo"
    assert store.read().state() == {}
    assert (store.read().revision, store.read().schema) == (0, None)
    assert stores.extensions() == ()


def test_all_who_open_it_see_one_state(stores, store):
    other = stores.open_extension("todo")
    assert store.commit(actions(add("n", 2), put("a", [1])), schema=1).values == {"n": 2, "a": [1]}
    done = other.commit(actions(add("n", 3)), schema=1, sequence=9)
    assert (done.values, done.revision, done.changed) == ({"n": 5}, 2, True)
    assert store.read().state() == {"n": 5, "a": [1]}
    assert stores.open_extension("other").read().state() == {}
    assert [each.name for each in stores.extensions()] == ["todo"]


def test_a_batch_counts_whole_or_not_at_all(store):
    store.commit(actions(put("a", 1), event("e")), schema=1)
    before = store.read()
    for batch, code in [
        (actions(put("b", 1), event("e", "else")), "conflict"),
        (actions(put("b", 1), put("a", 2, if_revision=0)), "conflict"),
        (actions(put("a", "text"), add("a", 1)), "invalid_payload"),
    ]:
        with pytest.raises(StateRefused) as caught:
            store.commit(batch, schema=1)
        assert (caught.value.code, caught.value.extension) == (code, "todo")
    assert store.read() == before


def test_what_changes_nothing_is_no_change(store):
    first = store.commit(actions(put("a", {"x": 1, "y": 2}), event("e", 1)), schema=1)
    again = store.commit(actions(put("a", {"y": 2, "x": 1}), event("e", 1)), schema=1)
    assert (first.changed, again.changed, again.revision) == (True, False, 1)
    assert again.values == {"a": {"x": 1, "y": 2}}


def test_conditions_hold_for_writers_who_do_not_know_of_each_other(store):
    store.commit(actions(put("a", 1)), schema=1)
    seen = store.read(["a"]).revision_of("a")
    store.commit(actions(put("a", 2, if_revision=seen)), schema=1)
    with pytest.raises(StateRefused, match='the key "a" was expected at revision 1 and is at revision 2'):
        store.commit(actions(put("a", 3, if_revision=seen)), schema=1)


def test_a_part_can_be_read(store):
    store.commit(actions(put("a", 1), put("b", 2), event("e")), schema=3)
    part = store.read(["b", "nowhere"])
    assert (part.state(), part.schema, part.revision) == ({"b": 2}, 3, 1)
    assert (list(part.events), part.usage) == ([], store.read().usage)
    assert (store.read([]).state(), store.read([]).usage.values) == ({}, 2)


def test_events_come_back_oldest_first_with_their_sequence(store):
    store.commit(actions(event("z", 1), event("a", 2, "other")), schema=1, sequence=4)
    store.commit(actions(event("m", 3)), schema=1, sequence=8)
    found = [(each.event_id, each.custom_type, each.payload, each.sequence) for each in store.read().replay_events()]
    assert found == [("z", "t", 1, 4), ("a", "other", 2, 4), ("m", "t", 3, 8)]


def test_what_the_model_shall_see_belongs_to_a_session(store):
    context = {"kind": "append_model_context", "context_id": "c", "placement": "message", "content": {}}
    with pytest.raises(
        StateRefused, match=r"todo: actions\[1\].kind: what the model shall see belongs to a session"
    ) as caught:
        store.commit(actions(put("a", 1), context), schema=1)
    assert (caught.value.code, caught.value.hint) == ("invalid_payload", "store it in the space of the session")
    assert store.read().state() == {}


def test_the_quota_is_of_all_that_is_stored_and_the_largest_key_is_named(store):
    limits = StateLimits(live_bytes=100)
    store.commit(actions(put("big", "x" * 70), event("e")), schema=1, limits=limits)
    with pytest.raises(StateRefused, match=r'81 are now: .*; the largest key is "big" with 72') as caught:
        store.commit(actions(put("more", "x" * 20)), schema=1, limits=limits)
    assert caught.value.code == "resource_limit"
    store.commit(actions({"kind": "delete_state", "key": "big"}, put("more", "x" * 70)), schema=1, limits=limits)
    assert store.read().usage.live_bytes == 82


def test_a_migration_is_one_step_and_only_of_what_was_read(store):
    store.commit(actions(put("a", 1), put("b", 2), event("e")), schema=1)
    old = store.read()
    due = needs_migration(old, 2)
    store.commit(actions(put("a", 5)), schema=1)
    with pytest.raises(StateRefused, match="its state is at revision 2, and what was migrated was at 1") as caught:
        store.migrate(due.state, expected_revision=old.revision, to_schema=2)
    assert caught.value.code == "conflict"
    done = store.migrate({"a": "five", "c": 3}, expected_revision=2, to_schema=2, sequence=6)
    assert (done.values, done.revision) == ({"a": "five", "c": 3}, 3)
    new = store.read()
    assert (new.state(), new.schema, list(new.events)) == ({"a": "five", "c": 3}, 2, ["e"])
    assert needs_migration(new, 2) is None
    with pytest.raises(MigrationRefused, match="its state stands in schema 2, and it stores in schema 1"):
        store.commit(actions(put("a", 1)), schema=1)


def test_a_migration_that_cannot_be_stored_leaves_the_old_state(store):
    store.commit(actions(put("a", 1)), schema=1)
    with pytest.raises(MigrationRefused, match="must be an object"):
        store.migrate([], expected_revision=1, to_schema=2)
    assert (store.read().state(), store.read().schema) == ({"a": 1}, 1)


shared = any_actions.filter(lambda each: each["kind"] != "append_model_context")


@settings(max_examples=20, suppress_health_check=[HealthCheck.filter_too_much])
@given(batches=st.lists(st.lists(shared, max_size=4), max_size=6))
def test_any_batches_give_what_the_model_gives(batches, tmp_path_factory):
    for stores in (MemoryStores(), SqliteStores(tmp_path_factory.mktemp("state"))):
        store, model = stores.open_extension("todo"), Model()
        for batch in batches:
            try:
                model = model.after(batch)
            except Refused:
                with pytest.raises(StateRefused):
                    store.commit(actions(*batch), schema=1)
            else:
                assert store.commit(actions(*batch), schema=1).revision == model.revision
            assert_is(store.read(), model)
