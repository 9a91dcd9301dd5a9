"""Tables: every version stays as it is, whatever is made of it, and costs no more than what changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.state.table import Table

# Runs of keys, so that a layer outgrows its base within a few steps.
spans = st.tuples(st.integers(0, 120), st.integers(1, 90)).map(lambda span: range(span[0], span[0] + span[1]))
steps = st.tuples(st.sampled_from(["set", "set", "delete"]), spans, st.integers(1, 9))
drafts = st.tuples(st.integers(0, 30), st.lists(steps, max_size=4))


def apply(draft, model, step):
    """The step on both; a key that is not there is not deleted."""
    what, span, value = step
    for key in map(str, span):
        if what == "set":
            draft.set(key, value)
            model[key] = value
        elif draft.get(key) is not None:
            draft.delete(key)
            del model[key]


@given(st.lists(drafts, max_size=12))
def test_every_version_equals_its_dict_for_ever(plan):
    versions = [(Table(), {})]
    for parent, changes in plan:
        table, model = versions[parent % len(versions)]
        draft, model = table.draft(), dict(model)
        for step in changes:
            apply(draft, model, step)
            assert len(draft) == len(model)
            assert all(draft.get(str(key)) == model.get(str(key)) for key in range(0, 215, 7))
        versions.append((draft.finish(), model))
    for table, model in versions:
        assert dict(table) == model
        assert len(table) == len(model)
        assert all((str(key) in table) == (str(key) in model) for key in range(215))


@given(st.lists(st.lists(st.integers(0, 300), max_size=90), max_size=6))
def test_keys_stay_in_the_order_in_which_they_were_first_set(rounds):
    table, model = Table(), {}
    for keys in rounds:
        draft = table.draft()
        for key in map(str, keys):
            draft.set(key, key)
            model[key] = key
        table = draft.finish()
    assert list(table) == list(model)


def test_a_key_that_is_not_there_or_was_deleted_is_a_key_error():
    draft = Table({"a": 1, "b": 2}).draft()
    draft.delete("a")
    table = draft.finish()
    for key in ("a", "c"):
        with pytest.raises(KeyError, match=key):
            table[key]
    assert table["b"] == 2


def test_what_it_was_made_from_may_change():
    values = {"a": 1}
    table = Table(values)
    values["a"] = 2
    assert table["a"] == 1
