"""Compaction drops what no position needs any more, batch by batch, and no more than that."""

from trio_exthost.state import Advance, Checkout, Commit, Migrate, SessionState, decode_batch, read_actions
from trio_exthost.state.memory import MemoryStores


def session():
    return SessionState(MemoryStores().open_session("s"))


def do(state, *steps):
    """Each step is a list of actions, or an operation."""
    for step in steps:
        operation = step
        if isinstance(step, list):
            operation = Commit(extension="todo", schema=1, actions=read_actions(step, extension="todo"))
        written = state.write([operation])
        state.publish(written)
        assert not isinstance(written.outcomes[0], Exception)


def put(key, value):
    return {"kind": "set_state", "key": key, "value": value}


def delete(key):
    return {"kind": "delete_state", "key": key}


def event(name):
    return {"kind": "append_custom_event", "event_id": name, "custom_type": "t", "payload": None}


def section(name, text):
    return {
        "kind": "append_model_context", "context_id": name, "placement": "system_prompt_section", "content": text,
    }  # fmt: skip


def stored(state):
    """Row and entries of each batch: a word for its kind, and its name."""
    found = {}
    for each in state.history():
        entries = decode_batch(each.body).entries
        found[each.row] = [type(entry).__name__.removesuffix("Entry") + " " + name_of(entry) for entry in entries]
    return found


def name_of(entry):
    return next((getattr(entry, name) for name in ("key", "event_id", "context_id") if hasattr(entry, name)), "")


def contexts(state):
    return [(each.context_id, each.content) for each in state.projection("todo").contexts.values()]


def test_only_the_last_value_of_a_key_stays_with_its_revision():
    state = session()
    do(state, [put("a", 1)], [put("a", 2), put("b", 1)], [put("a", 3)])
    done = state.compact()
    assert stored(state) == {2: ["Set b"], 3: ["Set a"]}
    assert (done.batches_before, done.batches_after) == (3, 2)
    assert done.bytes_after < done.bytes_before
    assert state.projection("todo").revision_of("a") == 3


def test_a_key_that_came_and_went_leaves_nothing_but_the_revision():
    state = session()
    do(state, [put("a", 1)], [event("e")], [put("a", 2)], [delete("a")])
    state.compact()
    assert stored(state) == {2: ["Event e"], 4: []}
    do(state, Advance("next"), Checkout(""))  # read again from the store
    assert (state.projection("todo").revision, state.projection("todo").state()) == (4, {})


def test_what_a_child_began_with_stays():
    state = session()
    do(state, [put("a", 1)], [put("a", 2)], Advance("child"), Checkout(""), [put("a", 3)], [delete("a")])
    state.compact()
    assert stored(state) == {2: ["Set a"], 5: ["Delete a"]}
    do(state, Checkout("child"))
    assert state.projection("todo").state() == {"a": 2}


def test_a_deletion_stays_where_the_key_was_inherited():
    state = session()
    do(state, [put("a", 1)], Advance("child"), [put("b", 1)], [delete("b"), delete("a")])
    state.compact()
    assert stored(state) == {1: ["Set a"], 4: ["Delete a"]}


def test_a_context_that_was_replaced_keeps_its_place_with_its_last_content():
    state = session()
    do(state, [section("x", "one")], [section("y", "two")], [section("x", "three")], [event("e")])
    before = contexts(state)
    state.compact()
    assert stored(state) == {1: ["Context x"], 2: ["Context y"], 4: ["Event e"]}
    do(state, Advance("next"), Checkout(""))
    assert contexts(state) == before == [("x", "three"), ("y", "two")]


def test_events_and_markers_stay():
    state = session()
    do(state, [event("e"), put("a", 1)], [event("f"), put("a", 2)])
    do(state, Migrate(base=state.projection("todo"), state={"a": 3}, to_schema=2))
    state.compact()
    assert stored(state) == {1: ["Event e"], 2: ["Event f"], 3: ["Set a", "Migration "]}


def test_extensions_do_not_mix():
    state = session()
    other = Commit(extension="other", schema=1, actions=read_actions([put("a", 1)], extension="other"))
    do(state, [put("a", 1)], other, [put("a", 2)])
    state.compact()
    assert stored(state) == {2: ["Set a"], 3: ["Set a"]}


def test_nothing_to_do_is_nothing_done():
    state = session()
    do(state, [put("a", 1)], Advance("child"), [put("a", 2)])
    before = list(state.history())
    done = state.compact()
    assert list(state.history()) == before
    assert (done.batches_before, done.bytes_before) == (done.batches_after, done.bytes_after)
