"""What leaves a nursery of services, whoever fails and whoever is cancelled: never less than was raised."""

from __future__ import annotations

import pytest
import trio
from runtime.fakes import world
from trio.testing import wait_all_tasks_blocked

from trio_exthost.runtime.services import service_nursery


async def fail_when_cancelled() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise LookupError("a service")


async def body(*, fails: bool, is_cancelled: bool, scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    if is_cancelled:
        scope.cancel("everything around")
    try:
        if is_cancelled:
            await trio.sleep_forever()
    finally:
        if fails:
            raise ValueError("the body")


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
async def test_what_the_body_raises_leaves_unwrapped(is_cancelled, depth) -> None:
    with pytest.raises(ValueError, match="the body"), trio.CancelScope() as scope:
        async with service_nursery() as outer:
            if depth == 1:
                await body(fails=True, is_cancelled=is_cancelled, scope=scope)
            else:
                async with service_nursery():
                    await body(fails=True, is_cancelled=is_cancelled, scope=scope)
            outer.start_soon(trio.sleep_forever)


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_service_raises_leaves_as_a_group_beside_what_the_body_raises(is_cancelled, fails) -> None:
    with pytest.raises(BaseExceptionGroup) as caught, trio.CancelScope() as scope:
        async with service_nursery(), service_nursery() as inner:
            inner.start_soon(fail_when_cancelled)
            await body(fails=fails, is_cancelled=is_cancelled, scope=scope)
    assert caught.value.subgroup(LookupError) is not None
    assert (caught.value.subgroup(ValueError) is not None) is fails
    assert caught.value.subgroup(trio.Cancelled) is None


async def test_a_cancellation_leaves_as_what_it_is() -> None:
    with trio.CancelScope() as scope:
        try:
            async with service_nursery():
                await body(fails=False, is_cancelled=True, scope=scope)
        except trio.Cancelled as exc:
            left = exc
            raise
    assert scope.cancelled_caught
    assert left is not None


async def test_what_the_body_of_a_host_raises_while_everything_is_cancelled_is_not_lost(
    tmp_path, autojump_clock
) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="the body")), trio.CancelScope() as scope:
        async with world(tmp_path) as (_, host), host.open_session("s"):
            await body(fails=True, is_cancelled=True, scope=scope)
