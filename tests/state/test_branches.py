"""A group: operations in the order in which they count, each standing or falling by itself, before any store has them."""

import pytest

from trio_exthost.errors import MigrationRefused, PositionError, StateRefused
from trio_exthost.state.actions import AddState, SetState, read_actions
from trio_exthost.state.branches import Branches, Commit, Group, Migrate
from trio_exthost.state.entries import StoredBatch, decode_batch
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.tree import Position

EMPTY = Branches()


def commit(key, value, *, extension="todo", schema=1, sequence=0):
    raw = [{"kind": "set_state", "key": key, "value": value}]
    return Commit(extension=extension, schema=schema, sequence=sequence, actions=read_actions(raw, extension=extension))


def states(branches):
    return {name: projection.state() for name, projection in branches.projections.items()}


def test_each_operation_meets_what_those_before_it_left():
    group = Group(EMPTY, DEFAULT_LIMITS)
    add = Commit(extension="todo", schema=1, actions=(AddState("n", 1),))
    assert [group.commit(add).values for _ in range(3)] == [{"n": 1}, {"n": 2}, {"n": 3}]
    group.commit(commit("n", 9, extension="other"))
    assert states(group.after) == {"todo": {"n": 3}, "other": {"n": 9}}
    assert states(EMPTY) == {}


def test_records_have_growing_rows_under_the_selected_position():
    group = Group(EMPTY, DEFAULT_LIMITS)
    group.commit(commit("a", 1, sequence=5))
    position = group.advance("first")
    group.commit(commit("a", 2, sequence=6))
    first, moved, second = group.records
    assert (first.row, first.position, moved.row, second.row, second.position) == (1, 0, 2, 3, 2)
    assert moved is position is group.after.tree.selected
    assert isinstance(moved, Position)
    assert isinstance(second, StoredBatch)
    assert (decode_batch(second.body).sequence, second.sequence) == (6, 6)
    assert group.after.tree.next_row == 4


def test_what_changes_nothing_makes_no_record():
    group = Group(EMPTY, DEFAULT_LIMITS)
    group.commit(commit("a", 1))
    again = group.commit(commit("a", 1))
    assert (again.changed, again.revision, again.values) == (False, 1, {"a": 1})
    assert len(group.records) == 1


def test_what_is_refused_leaves_the_group_as_it_was():
    group = Group(EMPTY, StateLimits(live_bytes=20))
    group.commit(commit("a", 1))
    group.advance("first")
    before, records = group.after, list(group.records)
    for refused, kind in [
        (lambda: group.commit(commit("a", "x" * 30)), StateRefused),
        (lambda: group.commit(commit("a", 2, schema=2)), MigrationRefused),
        (lambda: group.commit(Commit(extension="todo", schema=1, actions=(SetState("a", b"1", 7),))), StateRefused),
        (lambda: group.advance("first"), PositionError),
        (lambda: group.migrate(Migrate(base=before.projection("todo"), state=[], to_schema=2)), MigrationRefused),
    ]:
        with pytest.raises(kind):
            refused()
        assert group.after is before
        assert group.records == records


def test_a_migration_is_one_record_and_tells_all_values():
    group = Group(EMPTY, DEFAULT_LIMITS)
    group.commit(commit("a", 1))
    base = group.after.projection("todo")
    done = group.migrate(Migrate(base=base, state={"b": 2}, to_schema=2, sequence=8))
    assert (done.revision, done.values, done.changed) == (2, {"b": 2}, True)
    assert len(group.records) == 2
    assert group.after.projection("todo").schema == 2
    assert group.commit(commit("c", 1, schema=2)).revision == 3


def test_a_migration_of_what_is_not_there_any_more_is_refused():
    group = Group(EMPTY, DEFAULT_LIMITS)
    group.commit(commit("a", 1))
    base = group.after.projection("todo")
    group.commit(commit("a", 2))
    with pytest.raises(StateRefused, match="has become another one while it was migrated") as caught:
        group.migrate(Migrate(base=base, state={}, to_schema=2))
    assert (caught.value.code, caught.value.extension) == ("conflict", "todo")
    assert len(group.records) == 2


def test_who_has_stored_nothing_has_an_empty_state():
    projection = EMPTY.projection("todo")
    assert (projection.extension, projection.state(), projection.schema) == ("todo", {}, None)
