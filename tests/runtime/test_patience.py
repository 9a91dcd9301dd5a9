"""Patience against a model that keeps what is left of each limit, and takes off it only what goes by."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.runtime.patience import Patience, standing_still

SECONDS = st.integers(0, 20)
ACTS = st.lists(
    st.one_of(SECONDS, st.sampled_from(["restart", "pause", "resume", "pause inner", "resume inner"])), max_size=30
)


class Model:
    """What is left, in seconds."""

    def __init__(self, idle_s: float, total_s: float) -> None:
        self.idle_s = idle_s
        self.left_idle, self.left_total = float(idle_s), float(total_s)
        self.pauses = 0

    def go_by(self, seconds: float) -> None:
        if not self.pauses:
            self.left_idle -= seconds
            self.left_total -= seconds

    @property
    def left_s(self) -> float:
        return max(min(self.left_idle, self.left_total), 0)


@given(SECONDS, SECONDS, SECONDS, ACTS)
def test_what_is_left_is_what_has_not_gone_by(idle_s: int, total_s: int, inner_s: int, acts: list[Any]) -> None:
    async def main() -> None:
        outer = Patience(idle_s, total_s)
        inner = Patience(inner_s, within=outer)
        model, model_inner = Model(idle_s, total_s), Model(inner_s, math.inf)
        for act in acts:
            match act:
                case "restart":
                    outer.restart()
                    model.left_idle = idle_s
                case "pause":
                    outer.pause()
                    model.pauses += 1
                case "resume" if model.pauses > model_inner.pauses:
                    outer.resume()
                    model.pauses -= 1
                case "pause inner":
                    inner.pause()
                    model.pauses += 1
                    model_inner.pauses += 1
                case "resume inner" if model_inner.pauses:
                    inner.resume()
                    model.pauses -= 1
                    model_inner.pauses -= 1
                case int():
                    await trio.sleep(act)
                    model.go_by(act)
                    model_inner.go_by(act)
            for patience, expected in ((outer, model), (inner, model_inner)):
                assert patience.left_s == expected.left_s
                assert patience.is_paused is bool(expected.pauses)
                assert patience.is_over is (expected.left_s == 0 and not expected.pauses)
                if expected.pauses:
                    assert patience.deadline == math.inf
                elif expected.left_s:
                    assert patience.deadline == trio.current_time() + expected.left_s

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_scope_that_is_waited_in_moves_with_it(autojump_clock) -> None:
    patience = Patience(5)
    begun = trio.current_time()

    async def hold_up() -> None:
        await trio.sleep(3)
        with standing_still(patience):
            await trio.sleep(100)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold_up)
        with patience.scope() as scope:
            await trio.sleep_forever()
        assert scope.cancelled_caught
        assert trio.current_time() - begun == 105


async def test_without_a_patience_nothing_stands_still_and_errors_pass(autojump_clock) -> None:
    with pytest.raises(KeyError), standing_still(None):
        raise KeyError
    patience = Patience(5)
    with pytest.raises(KeyError), standing_still(patience):
        raise KeyError
    assert not patience.is_paused
