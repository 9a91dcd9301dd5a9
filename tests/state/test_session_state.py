"""A session's state: written before it is seen, failing group by group, forked into what is empty only."""

import pytest

from trio_exthost.errors import PositionError, StateRefused, StoreDamaged, StoreFailed
from trio_exthost.state import Advance, Checkout, Commit, SessionState, read_actions
from trio_exthost.state.memory import MemoryStores


class Fragile:
    """A store that fails when it is told to, and counts its transactions."""

    def __init__(self, store):
        self._store = store
        self.groups = []
        self.failing = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def append_group(self, records, *, selected):
        self.groups.append(len(records))
        if "append" in self.failing:
            raise StoreFailed("the disk is full", path="s.db", hint="make room")
        self._store.append_group(records, selected=selected)

    def load_branch(self, path):
        if "load" in self.failing:
            raise StoreDamaged("a batch was altered", path="s.db", kept="aside.db")
        return self._store.load_branch(path)


def put(key, value, **more):
    raw = [{"kind": "set_state", "key": key, "value": value, **more}]
    return Commit(extension="todo", schema=1, sequence=value, actions=read_actions(raw, extension="todo"))


@pytest.fixture
def store():
    return Fragile(MemoryStores().open_session("s"))


def values(state):
    return state.projection("todo").state()


def test_what_is_written_is_seen_when_it_is_published(store):
    state = SessionState(store)
    written = state.write([put("a", 1), Advance("one")])
    assert (values(state), state.tree.selected.name, dict(state.projections)) == ({}, "", {})
    state.publish(written)
    assert (values(state), state.tree.selected.name, list(state.projections)) == ({"a": 1}, "one", ["todo"])
    assert state.session_id == "s"


def test_a_group_that_nobody_published_counts_for_the_next_one(store):
    state = SessionState(store)
    state.write([put("a", 1)])
    state.publish(state.write([put("b", 2, if_revision=0)]))
    assert values(state) == {"a": 1, "b": 2}
    assert state.projection("todo").revision == 2


def test_operations_that_come_together_are_one_transaction(store):
    state = SessionState(store)
    state.write([put("a", 1), put("b", 2), Advance("one"), put("a", 3)])
    assert store.groups == [4]


def test_what_changes_nothing_needs_no_transaction(store):
    state = SessionState(store)
    state.write([put("a", 1)])
    (again, refused) = state.write([put("a", 1), put("a", 1, if_revision=7)]).outcomes
    assert not again.changed
    assert isinstance(refused, StateRefused)
    assert store.groups == [1]
    assert state.write([]).outcomes == ()


def test_a_checkout_begins_a_transaction_and_reads_what_was_stored(store):
    state = SessionState(store)
    written = state.write([put("a", 1), Advance("one"), put("a", 2), Checkout(""), put("b", 3), Checkout("one")])
    assert store.groups == [3, 1, 0]  # the last one stores what is selected
    assert [each.name for each in (written.outcomes[3], written.outcomes[5])] == ["", "one"]
    state.publish(written)
    assert values(state) == {"a": 2}
    assert SessionState(store).tree.selected.name == "one"


def test_a_failed_transaction_fails_all_of_it_each_with_an_error_of_its_own(store):
    state = SessionState(store)
    state.publish(state.write([put("a", 1)]))
    store.failing.append("append")
    written = state.write([put("a", 2), put("a", 3, if_revision=0), Advance("one"), put("a", 1)])
    first, refused, moved, last = written.outcomes
    for each in (first, moved, last):
        assert type(each) is StoreFailed
        assert (str(each), each.path, each.code) == (
            "s.db: the disk is full (make room)", "s.db", "persistence_failed",
        )  # fmt: skip
    assert len({id(each) for each in written.outcomes}) == 4
    assert refused.code == "conflict"
    state.publish(written)
    assert (values(state), state.tree.selected.name) == ({"a": 1}, "")
    store.failing.clear()
    state.publish(state.write([put("a", 2), Advance("one")]))
    assert (values(state), state.tree.selected.name) == ({"a": 2}, "one")


def test_what_was_stored_before_the_failure_stays(store):
    state = SessionState(store)
    state.publish(state.write([put("a", 1), Advance("one"), put("a", 2)]))
    store.failing.append("load")
    written = state.write([put("b", 1), Checkout(""), put("b", 2)])
    assert [type(each).__name__ for each in written.outcomes] == ["Committed", "StoreDamaged", "Committed"]
    assert written.outcomes[1].kept == "aside.db"
    state.publish(written)
    assert (values(state), state.tree.selected.name) == ({"a": 2, "b": 2}, "one")  # it did not move


def test_a_checkout_that_cannot_be_stored_does_not_move(store):
    state = SessionState(store)
    state.publish(state.write([put("a", 1), Advance("one"), put("a", 2)]))
    store.failing.append("append")
    (outcome,) = state.write([Checkout("")]).outcomes
    assert type(outcome) is StoreFailed
    store.failing.clear()
    state.publish(state.write([put("b", 1)]))
    assert (values(state), state.tree.selected.name) == ({"a": 2, "b": 1}, "one")


def test_a_store_that_cannot_be_read_opens_no_session(store):
    store.failing.append("load")
    with pytest.raises(StoreDamaged, match=r"s.db: a batch was altered"):
        SessionState(store)
    with pytest.raises(StoreFailed, match="is closed"):  # others can open it
        store.load_tree()


def test_sequences_go_on_above_what_was_stored(store):
    state = SessionState(store)
    assert state.last_sequence == 0
    state.write([put("a", 7), put("b", 5)])
    assert SessionState(store).last_sequence == 7


def test_a_fork_of_nowhere_and_into_something_is_refused():
    stores = MemoryStores()
    state = SessionState(stores.open_session("s"))
    state.publish(state.write([put("a", 1), Advance("one")]))
    target = stores.open_session("fork")
    with pytest.raises(PositionError, match='the session has no position "two"'):
        state.fork("two", target)
    state.fork("one", target)
    with pytest.raises(StoreFailed, match="session 'fork' has a state already") as caught:
        state.fork("one", target)
    assert caught.value.hint == "fork into a new session id"
    assert SessionState(target).projection("todo").state() == {"a": 1}


def test_a_fork_of_the_beginning_has_what_was_stored_before_the_first_entry():
    stores = MemoryStores()
    state = SessionState(stores.open_session("s"))
    state.publish(state.write([put("a", 1), Advance("one"), put("a", 2)]))
    target = stores.open_session("fork")
    state.fork("", target)
    forked = SessionState(target)
    assert (values(forked), list(forked.tree.positions)) == ({"a": 1}, [""])
    forked.publish(forked.write([Advance("one")]))
    assert values(forked) == {"a": 1}


def test_what_was_read_stays_readable_after_the_end(store):
    state = SessionState(store)
    state.publish(state.write([put("a", 1)]))
    state.close()
    assert values(state) == {"a": 1}
    (outcome,) = state.write([Checkout("")]).outcomes
    assert isinstance(outcome, StoreFailed)
