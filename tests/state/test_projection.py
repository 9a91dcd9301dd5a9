"""Projections: what batches add up to, whatever was left out of them, and shared with no caller."""

import msgspec
import pytest

from trio_exthost.errors import StoreDamaged
from trio_exthost.state.entries import (
    Batch,
    ContextEntry,
    DeleteEntry,
    EventEntry,
    MigrationEntry,
    Placement,
    SetEntry,
    encode_batch,
    encode_value,
)
from trio_exthost.state.projection import Projection, ProjectionDraft, replay


def put(key, value):
    return SetEntry(key=key, value=msgspec.Raw(encode_value(value)))


def body(revision, *entries, extension="todo", schema=1, sequence=0):
    return encode_batch(Batch(extension, schema, sequence, revision, entries))


def test_nothing_stored_is_nobody_s_projection():
    assert replay([]) == {}
    empty = Projection(extension="todo")
    assert (empty.schema, empty.revision, empty.state(), empty.usage.live_bytes) == (None, 0, {}, 0)
    assert empty.get("a", "else") == "else"
    assert empty.get("a") is None
    assert empty.revision_of("a") == 0


def test_each_extension_has_its_own():
    found = replay([body(1, put("a", 1)), body(1, put("a", 2), extension="other"), body(2, put("b", 3))])
    assert {name: each.state() for name, each in found.items()} == {"todo": {"a": 1, "b": 3}, "other": {"a": 2}}
    assert {name: each.revision for name, each in found.items()} == {"todo": 2, "other": 1}


def test_revisions_that_were_compacted_away_leave_gaps():
    found = replay([body(3, put("a", 1)), body(9, DeleteEntry(key="gone"), put("b", 1))])["todo"]
    assert (found.state(), found.revision, found.revision_of("b")) == ({"a": 1, "b": 1}, 9, 9)
    assert found.usage.values == 2


@pytest.mark.parametrize("later", [1, 2])
def test_a_batch_out_of_turn_is_damage(later):
    with pytest.raises(StoreDamaged, match=f"todo: a stored batch has revision {later} after 2"):
        replay([body(2, put("a", 1)), body(later, put("a", 2))])


def test_a_body_that_is_none_is_damage():
    with pytest.raises(StoreDamaged, match="cannot be read"):
        replay([body(1, put("a", 1)), b"{"])


def test_a_marker_changes_the_schema_and_no_value():
    found = replay([body(1, put("a", 1)), body(2, MigrationEntry(from_schema=1, to_schema=4), schema=4)])["todo"]
    assert (found.schema, found.state()) == (4, {"a": 1})


def test_values_are_the_caller_s_to_change():
    found = replay([body(1, put("a", [1]), EventEntry(event_id="e", custom_type="t", payload=msgspec.Raw(b"[1]")))])[
        "todo"
    ]
    found.get("a").append(2)
    found.state()["a"].append(2)
    next(found.replay_events()).payload.append(2)
    assert (found.get("a"), next(found.replay_events()).payload) == ([1], [1])


def test_a_draft_leaves_what_it_began_with():
    before = replay([body(1, put("a", 1), put("b", 2))])["todo"]
    draft = ProjectionDraft(before)
    draft.delete("a")
    draft.delete("not there")
    after = draft.finish()
    assert (before.state(), after.state()) == ({"a": 1, "b": 2}, {"b": 2})
    assert (before.usage.value_bytes, after.usage.value_bytes) == (4, 2)


def test_a_context_that_is_replaced_is_counted_once():
    entries = [
        ContextEntry(context_id="c", placement=Placement.MESSAGE, content=msgspec.Raw(text))
        for text in (b'"1234"', b'"12"')
    ]
    found = replay([body(1, entries[0]), body(2, entries[1])])["todo"]
    assert (found.usage.contexts, found.usage.context_bytes) == (1, len("c") + len(b'"12"'))
