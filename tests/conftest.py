"""Async tests run under trio; hypothesis profiles."""

from __future__ import annotations

import inspect
import os

import hypothesis
import pytest
import trio.testing

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile(
    "exthost-ci", max_examples=100, deadline=None, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("soak", max_examples=5000, deadline=None)
hypothesis.settings.register_profile(
    "mutation",  # few examples, the same each time, and no shrinking: any failure kills a mutant
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("exthost-ci" if os.environ.get("CI") else "dev")
)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """A coroutine function is run under trio; a fixture called `mock_clock` or `autojump_clock` becomes its clock."""
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pyfuncitem.obj = trio.testing.trio_test(pyfuncitem.obj)


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    """Time jumps to the next deadline whenever all tasks are blocked."""
    return trio.testing.MockClock(autojump_threshold=0)
