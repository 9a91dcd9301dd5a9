"""Durable actions as extensions write them: any that are well-formed."""

from __future__ import annotations

from hypothesis import strategies as st
from strategies import json_objects, json_values, text

IDS = ("a", "b", "c", "key with spaces", "schlüssel", "k" * 256)
ids = st.sampled_from(IDS) | st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
revisions = st.none() | st.integers(0, 9)
numbers = st.integers(-(2**31), 2**31) | st.floats(-1e9, 1e9, allow_nan=False)


def _fits(value: object) -> bool:
    """Whether it is within what the JSON parsers of all languages keep."""
    if isinstance(value, dict):
        return all(map(_fits, value.values()))
    if isinstance(value, list):
        return all(map(_fits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


values = st.sampled_from([0, 1, 1.0, True, None, "", [], {}, {"x": 1, "y": 2}, {"y": 2, "x": 1}]) | json_values.filter(
    _fits
)


def _action(kind: str, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({"kind": st.just(kind), **fields})


def _conditioned(kind: str, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({"kind": st.just(kind), **fields}, optional={"if_revision": revisions})


set_states = _conditioned("set_state", key=ids, value=values)
add_states = _action("add_state", key=ids, by=numbers)
delete_states = _conditioned("delete_state", key=ids)
custom_events = _action(
    "append_custom_event",
    event_id=ids,
    custom_type=st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True),
    payload=values,
)
model_contexts = _action(
    "append_model_context", context_id=ids, placement=st.just("system_prompt_section"), content=text
) | _action("append_model_context", context_id=ids, placement=st.just("message"), content=json_objects.filter(_fits))
actions = st.one_of(set_states, add_states, delete_states, custom_events, model_contexts)
