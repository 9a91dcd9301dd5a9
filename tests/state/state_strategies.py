"""Durable actions of every kind, with few names, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

keys = st.sampled_from(["a", "b", "c", "ключ"])
numbers = st.integers(-5, 5) | st.sampled_from([0.5, -0.25, 1.0])
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(alphabet='x"\u2028é😀\n', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=6,
)
revisions = st.none() | st.integers(0, 6)


def _object(kind, required, optional=None):
    return st.fixed_dictionaries({"kind": st.just(kind), **required}, optional=optional or {})


_contexts = st.one_of(
    st.tuples(st.just("system_prompt_section"), st.text(alphabet="sé", max_size=4)),
    st.tuples(st.just("message"), st.dictionaries(st.sampled_from(["role", "content"]), values, max_size=2)),
).flatmap(
    lambda pair: _object(
        "append_model_context",
        {
            "context_id": st.sampled_from(["c1", "c2", "c3"]),
            "placement": st.just(pair[0]),
            "content": st.just(pair[1]),
        },
    )
)
actions = st.one_of(
    _object("set_state", {"key": keys, "value": values}, {"if_revision": revisions}),
    _object("set_state", {"key": keys, "value": values}),
    _object("add_state", {"key": keys, "by": numbers}),
    _object("delete_state", {"key": keys}, {"if_revision": revisions}),
    _object(
        "append_custom_event",
        {
            "event_id": st.sampled_from(["e1", "e2", "e3", "e4"]),
            "custom_type": st.sampled_from(["note", "tick"]),
            "payload": st.sampled_from([None, 1, {"n": 1}]),
        },
    ),
    _contexts,
)
batches = st.lists(actions, max_size=4)
