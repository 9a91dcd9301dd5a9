"""The restart window against a table, and against a naive model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.policy.restarts import JITTER, RestartWindow


@pytest.mark.parametrize(
    ("crashes", "delays"),
    [
        ([0], [1]),
        ([0, 0, 0, 0], [1, 2, 4, None]),
        ([0, 5, 10, 59, 60], [1, 2, 4, None, 4]),
        ([0, 60, 120], [1, 1, 1]),
        ([0, 0, 0, 61, 61, 61, 61], [1, 2, 4, 1, 2, 4, None]),
    ],
)
def test_delays_double_within_the_window_and_the_budget_ends_them(crashes, delays):
    window = RestartWindow(budget=3, window_s=60, delay_s=1, delay_max_s=30)
    assert [window.next_delay(at, 0) for at in crashes] == delays


def test_the_delay_has_a_maximum_and_jitter_on_top():
    window = RestartWindow(budget=100, window_s=60, delay_s=1, delay_max_s=5)
    assert [window.next_delay(0, 0) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert window.next_delay(0, 1) == 5 * (1 + JITTER)
    assert window.used == 6
    assert RestartWindow(budget=2, window_s=1, delay_s=0, delay_max_s=0).next_delay(0, 1) == 0


@given(
    st.lists(st.floats(0, 20), max_size=40),
    st.integers(1, 5),
    st.floats(1, 50),
    st.floats(0, 1),
)
def test_against_a_naive_model(gaps, budget, window_s, chance):
    window = RestartWindow(budget=budget, window_s=window_s, delay_s=0.5, delay_max_s=4)
    now, restarts = 0.0, []
    for gap in gaps:
        now += gap
        recent = [at for at in restarts if at > now - window_s]
        expected = None
        if len(recent) < budget:
            expected = min(0.5 * 2 ** len(recent), 4) * (1 + JITTER * chance)
            restarts.append(now)
        assert window.next_delay(now, chance) == expected
        assert window.used <= budget
