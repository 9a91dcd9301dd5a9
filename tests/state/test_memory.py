"""The stores in memory: the same rules as on a disk, for as long as the process lives."""

import os

import pytest

from trio_exthost.errors import SessionBusy, StoreFailed
from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.memory import MemoryStores


def actions(value):
    return read_actions([{"kind": "set_state", "key": "k", "value": value}], extension="todo")


def test_a_session_is_open_once_and_keeps_its_state():
    stores = MemoryStores()
    state = SessionState(stores.open_session("s"))
    with pytest.raises(SessionBusy, match=rf"session 's' is open in process {os.getpid()} \(this one\)"):
        stores.open_session("s")
    state.publish(state.write([Commit(extension="todo", schema=1, actions=actions(1))]))
    state.close()
    again = SessionState(stores.open_session("s"))
    assert again.projection("todo").get("k") == 1


def test_a_store_that_was_closed_says_so():
    stores = MemoryStores()
    state = SessionState(stores.open_session("s"))
    state.close()
    (outcome,) = state.write([Commit(extension="todo", schema=1, actions=actions(1))]).outcomes
    assert isinstance(outcome, StoreFailed)
    assert "the store of session 's' is closed" in str(outcome)


def test_who_has_closed_it_cannot_close_it_for_who_comes_after():
    stores = MemoryStores()
    first = stores.open_session("s")
    first.close()
    second = stores.open_session("s")
    first.close()
    second.append_group((), selected=0)
    with pytest.raises(StoreFailed, match="the store of session 's' is closed"):
        first.load_tree()


def test_sessions_and_extensions_are_listed_by_name():
    stores = MemoryStores()
    for name in ("b", "a"):
        stores.open_session(name).close()
        stores.open_extension(name).commit(actions(name), schema=1)
    stores.open_extension("never used")
    assert [each.name for each in stores.sessions()] == ["a", "b"]
    assert [(each.name, each.size_bytes, each.problem) for each in stores.extensions()] == [("a", 4, ""), ("b", 4, "")]
