"""Quantiles against the sorted list they stand for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.policy.quantiles import BUCKETS, ERROR, LEAST_S, MOST_S, Durations

durations = st.lists(
    st.floats(LEAST_S, MOST_S) | st.sampled_from([0.001, 0.01, 5.0, LEAST_S, MOST_S]), min_size=1, max_size=60
)
SHARES = [0.01, 0.5, 0.95, 0.99, 1]


def filled(samples):
    found = Durations()
    for sample in samples:
        found.add(sample)
    return found


@given(durations, st.sampled_from(SHARES) | st.floats(0.001, 1))
def test_quantile_is_off_by_at_most_the_error(samples, share):
    true = sorted(samples)[math.ceil(share * len(samples)) - 1]
    assert filled(samples).quantile(share) == pytest.approx(true, rel=ERROR + 1e-9)


@given(durations)
def test_count_and_maximum_are_exact_and_quantiles_never_fall(samples):
    found = filled(samples)
    assert (found.count, found.maximum_s) == (len(samples), max(samples))
    quantiles = [found.quantile(share) for share in SHARES]
    assert quantiles == sorted(quantiles)
    assert quantiles[-1] <= found.maximum_s


@given(durations, durations)
def test_order_does_not_matter(one, other):
    assert [filled(one + other).quantile(share) for share in SHARES] == [
        filled(other + one).quantile(share) for share in SHARES
    ]


def test_memory_is_bounded_whatever_comes():
    found = Durations()
    for exponent in range(-400, 400):
        for step in range(100):
            found.add(10 ** (exponent / 30) * (1 + step / 100))
    for odd in (0.0, -1.0, 1e300, 5e-324):
        found.add(odd)
    assert len(found._buckets) <= BUCKETS
    assert (found.maximum_s, found.quantile(1) <= MOST_S * (1 + ERROR)) == (1e300, True)


def test_what_is_too_short_to_tell_counts_as_a_microsecond_or_less():
    found = filled([0.0, -1.0])
    assert (found.count, found.maximum_s, found.quantile(0.5)) == (2, 0.0, 0.0)


def test_of_nothing_every_quantile_is_zero():
    assert (Durations().quantile(0.5), Durations().maximum_s) == (0.0, 0.0)
