"""The fuzz targets as ordinary tests: their seeds, those with some bytes of them altered, and bytes of no meaning."""

from __future__ import annotations

import functools

import pytest
from fuzz.catalogue import NAMES, dictionary, load, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EACH = pytest.mark.parametrize("name", NAMES)
SOME = 40
"""Seeds that are tried each time, spread over all of them."""


@functools.cache
def begins(name: str) -> list[bytes]:
    return list(seeds(name))


@EACH
def test_what_a_fuzzer_begins_with_does_no_harm(name: str) -> None:
    all_of_them = begins(name)
    for seed in all_of_them[:: max(1, len(all_of_them) // SOME)]:
        load(name)(seed)


@st.composite
def altered(draw: st.DrawFn, name: str) -> bytes:
    """A seed with bytes cut out, put in and doubled, as a fuzzer does it; words of its dictionary among them."""
    data = draw(st.sampled_from(begins(name)))
    new = st.binary(max_size=8) | st.sampled_from([*dictionary(name), b""])
    for at, length, text in draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 8), new), max_size=5)):
        place = at % (len(data) + 1)
        data = data[:place] + text + data[place + length :]
    return data


@EACH
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_input_does_harm(name: str, data: st.DataObject) -> None:
    load(name)(data.draw(altered(name) | st.binary(max_size=200)))
