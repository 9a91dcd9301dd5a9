"""Every public async call, cancelled at each of its checkpoints: nothing is left of it, nothing is half done, all goes on."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import trio
from runtime.fakes import codes
from runtime.sweep_actors import LATENCY_S, Everybody, add_actors
from runtime.sweep_checks import descriptors, everybody_has_left
from runtime.sweep_lives import WHOLE_LIFE, whole_life
from runtime.sweep_scenarios import SCENARIOS, Scenario
from runtime.sweep_several import IN_COMPANY
from runtime.sweep_stage import DEADLINES, quiet, staged
from runtime.sweeping import NEVER, Cut, Moment, cut, sweep, virtual

import trio_exthost
from trio_exthost import CallError


async def play(directory: Path, scenario: Scenario, at: int, moment: Moment, after_s: float = math.inf) -> Cut:
    """One cut, and what has to hold after it."""
    async with staged(directory, loaded=scenario.loaded, present=scenario.present) as stage:
        await scenario.prepare(stage)
        done = await cut(lambda: scenario.act(stage), at, moment, after_s=after_s)
        if moment is Moment.WAITS and at != NEVER:  # whoever is woken out of a wait lets the cancellation through
            assert done.was_cancelled is (done.was_reached and not scenario.is_shielded)
        await quiet(stage, at_once=scenario.is_alone)
        stage.notes["was_cut"] = True
        await scenario.check(stage)
        if not stage.session.is_closed:
            await scenario.act(stage)  # the same call works now
            await quiet(stage)
        assert "callback_failed" not in codes(stage.host)
    return done


@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.value)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_can_be_given_up_at_each_checkpoint(tmp_path: Path, name: str, moment: Moment) -> None:
    assert sweep(lambda at: virtual(lambda: play(tmp_path, SCENARIOS[name], at, moment))) > 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_can_have_a_deadline_at_any_moment(tmp_path: Path, name: str) -> None:
    """Half way between two answers, and at the very moment of each, in whichever order trio looks at the two."""

    def at_moment(number: int) -> Cut:
        after_s = (number + 1) * LATENCY_S / 2
        return virtual(lambda: play(tmp_path, SCENARIOS[name], NEVER, Moment.WAITS, after_s))

    sweep(at_moment)


async def play_tight(directory: Path, scenario: Scenario, at: int) -> Cut:
    """As `play` where each of the host's own time-outs is at the moment of the answer: calls may end either way."""

    async def either_way() -> None:
        with suppress(CallError, AssertionError):
            await scenario.act(stage)

    async with staged(directory, loaded=scenario.loaded, present=scenario.present, tight=True) as stage:
        await scenario.prepare(stage)
        done = await cut(either_way, at)
        await quiet(stage)
        await either_way()
        await quiet(stage)
    return done


@pytest.mark.parametrize(
    "name", [name for name, each in SCENARIOS.items() if each.loaded == ("e", "z") and each.is_alone]
)
def test_a_call_can_be_given_up_while_it_times_out(tmp_path: Path, name: str) -> None:
    sweep(lambda at: virtual(lambda: play_tight(tmp_path, SCENARIOS[name], at)))


@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.value)
def test_a_host_can_be_given_up_at_each_checkpoint_from_its_begin_to_its_end(tmp_path: Path, moment: Moment) -> None:
    async def play_life(at: int) -> Cut:
        before = descriptors()
        async with trio.open_nursery() as nursery:
            around = Everybody(nursery)
            add_actors(around, ("e", "z", "m"))
            begun = trio.current_time()
            done = await cut(lambda: whole_life(tmp_path, around), at, moment)
            assert trio.current_time() - begun < 2 * DEADLINES.stop_total_s + 10
            assert trio.lowlevel.current_statistics().tasks_living <= tasks + len(around.every)
        everybody_has_left(around)
        assert descriptors() == before
        return done

    async def main(at: int) -> Cut:
        nonlocal tasks
        tasks = trio.lowlevel.current_statistics().tasks_living
        return await play_life(at)

    tasks = 0
    assert sweep(lambda at: virtual(lambda: main(at))) > 20


# --- the sweep is complete ---


def public_async_calls() -> Iterator[tuple[str, CodeType]]:
    """Everything public that is awaited or entered with `async with`, by its name."""
    for name in trio_exthost.__all__:
        value = getattr(trio_exthost, name)
        if inspect.isclass(value):
            for member in dir(value):
                function = getattr(inspect.unwrap(inspect.getattr_static(value, member)), "__func__", None)
                function = function or inspect.unwrap(inspect.getattr_static(value, member))
                is_public = not member.startswith("_") or member in PROTOCOL
                if is_public and inspect.isfunction(function) and is_async(function):
                    yield f"{name}.{member}", function.__code__
        elif inspect.isfunction(value) and is_async(inspect.unwrap(value)):
            yield name, inspect.unwrap(value).__code__


PROTOCOL = ("__call__", "__aenter__", "__aexit__", "__aiter__", "__anext__", "__await__")


def is_async(function: Any) -> bool:
    returns = str(inspect.signature(function).return_annotation)
    is_returned = returns.startswith(("Abstract" + "Async", "Async", "Await", "Coroutine"))
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or is_returned


def test_scenarios_in_company_are_among_those_that_are_swept() -> None:
    assert set(IN_COMPANY) <= set(SCENARIOS)


def test_the_sweep_names_every_public_async_call_and_nothing_else() -> None:
    swept = {call for each in SCENARIOS.values() for call in each.calls} | set(WHOLE_LIFE)
    assert swept == {name for name, _ in public_async_calls()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_calls_what_it_says(tmp_path: Path, name: str) -> None:
    """So that the table of the sweep is no mere list of names."""
    scenario = SCENARIOS[name]
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    async def main() -> Cut:
        async with staged(tmp_path, loaded=scenario.loaded, present=scenario.present) as stage:
            await scenario.prepare(stage)
            sys.setprofile(note)
            try:
                done = await cut(lambda: scenario.act(stage))
            finally:
                sys.setprofile(None)
            await quiet(stage, at_once=scenario.is_alone)
            return done

    virtual(main)
    code_of = dict(public_async_calls())
    is_called = {call: code_of[call] in called for call in scenario.calls if call != "HostTool.__call__"}
    assert all(is_called.values()), is_called
