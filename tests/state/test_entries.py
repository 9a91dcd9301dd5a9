"""Entries: compact text that comes back as it was, and sameness that neither order nor space decides."""

import json

import msgspec
import pytest
from action_strategies import ids, values
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import StoreDamaged
from trio_exthost.state.entries import (
    Batch,
    ContextEntry,
    DeleteEntry,
    EventEntry,
    MigrationEntry,
    Placement,
    SetEntry,
    decode_batch,
    decode_value,
    encode_batch,
    encode_entry,
    encode_value,
    same_json,
)

raws = values.map(lambda value: msgspec.Raw(encode_value(value)))
schemas = st.integers(1, 2**31)
entries = st.one_of(
    st.builds(SetEntry, key=ids, value=raws, by=st.none() | st.integers(-9, 9) | st.floats(-9, 9)),
    st.builds(DeleteEntry, key=ids),
    st.builds(EventEntry, event_id=ids, custom_type=st.just("t"), payload=raws),
    st.builds(ContextEntry, context_id=ids, placement=st.sampled_from(Placement), content=raws),
    st.builds(MigrationEntry, from_schema=schemas, to_schema=schemas),
)
batches = st.builds(
    Batch,
    extension=st.just("todo"),
    schema=schemas,
    sequence=st.integers(0, 2**62),
    revision=schemas,
    entries=st.lists(entries, max_size=5).map(tuple),
)


@given(batches)
def test_a_batch_comes_back_as_it_was(batch):
    body = encode_batch(batch)
    assert decode_batch(body) == batch
    assert b"\n" not in body
    assert json.loads(body)["extension"] == "todo"


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"extension":1}', b"\xff", b"[1", b'{"op":"set"}'])
def test_a_text_that_is_no_batch_is_damage_and_shown(body):
    with pytest.raises(StoreDamaged, match="a stored batch cannot be read") as caught:
        decode_batch(body)
    assert caught.value.code == "store_damaged"
    assert repr(body) in str(caught.value)


@given(batches)
def test_a_batch_that_was_cut_anywhere_is_damage(batch):
    body = encode_batch(batch)
    with pytest.raises(StoreDamaged):
        decode_batch(body[: len(body) // 2])


def test_an_entry_is_compact_text():
    assert encode_entry(SetEntry(key="k", value=msgspec.Raw(b"[1]"))) == b'{"op":"set","key":"k","value":[1]}'


@given(values)
def test_a_value_comes_back_as_it_was(value):
    text = encode_value(value)
    assert json.dumps(decode_value(text)) == json.dumps(value)
    assert same_json(text, text)


@given(st.dictionaries(ids, values, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_count(value, random):
    items = list(value.items())
    random.shuffle(items)
    assert same_json(encode_value(value), encode_value(dict(items)))


@given(values, values)
def test_two_values_are_the_same_if_their_texts_in_order_are(one, other):
    assert same_json(encode_value(one), encode_value(other)) == (
        json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    )
