"""A nursery for services that outlive the body they serve.

Services run in a shielded scope which is unshielded when the body has left: they keep working while the body cleans up, also
when the body is cancelled, and a body that raises does not hang on them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def service_nursery() -> AsyncIterator[trio.Nursery]:
    """Yield a nursery whose tasks are cancelled once the body has left.

    The body's own exception leaves unwrapped, also where everything around is cancelled by then. Only when a service has
    raised does a group leave; it holds what the body raised, too, if that was not the cancellation.
    """
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as outer:
            opened: list[trio.Nursery] = []
            is_open = trio.Event()

            async def serve() -> None:
                with trio.CancelScope(shield=True) as shield:
                    async with trio.open_nursery() as services:
                        try:
                            opened.append(services)
                            is_open.set()
                            await trio.sleep_forever()
                        finally:
                            shield.shield = False

            # Not `outer.start`: where everything around is cancelled already, that never hands a shielded task over.
            outer.start_soon(serve, name="services")  # noqa: ASYNC113 - its first step is awaited right below
            with trio.CancelScope(shield=True):  # the task's first step, and no more
                await is_open.wait()
            (services,) = opened
            try:
                yield services
            except BaseException as exc:  # noqa: ASYNC103 - raised below, outside of the nursery
                if outer.cancel_scope.cancel_called:
                    raise  # a service has failed: its group tells, and the body's Cancelled belongs to this nursery
                failure = exc
            finally:
                services.cancel_scope.cancel("the body has ended")
    except BaseExceptionGroup as group:  # noqa: ASYNC103 - where it is only the cancellation, the body's exception is raised below
        faults = group.split(trio.Cancelled)[1]
        if failure is None or (faults is not None and isinstance(failure, trio.Cancelled)):
            raise
        if faults is not None:
            raise BaseExceptionGroup("the body has failed, and so has a service", [failure, faults]) from None
    if failure is not None:
        raise failure
