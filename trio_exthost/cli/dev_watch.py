"""Watching an extension's folder: what the operating system tells of it, and of the folder's own coming and going."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import trio

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_GROUP_MS = 50
"""What comes within this time is told together."""
_STEP_MS = 10
_FOR_EVER_MS = 0


async def watch(  # noqa: ASYNC114 - it is started in a nursery that outlives whoever needs it
    directory: Path,
    tell: Callable[[Iterable[str]], object],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Tell of every path that changes in a folder, from `started` on, until cancelled.

    A folder that is moved away and put back (some tools replace all of it) goes on being watched, and counts as changed.

    Args:
      directory: Absolute, links resolved; it must be there when this begins.
      tell: Told the paths, in this task.
      task_status: Told once nothing is missed any more.

    Raises:
      click.ClickException: The operating system does not let us watch; in a group, as all of a nursery's.
    """
    came = trio.Event()
    is_again = False

    def about(paths: Iterable[str]) -> None:
        nonlocal came
        if str(directory) in paths:
            came.set()
            came = trio.Event()

    async with trio.open_nursery() as nursery:
        await nursery.start(_follow, directory.parent, False, about)
        while True:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as inner:
                    inner.start_soon(_end_after, came, scope)
                    with suppress(FileNotFoundError):  # it is gone; its parent's watcher tells when it is back
                        await inner.start(_follow, directory, True, tell)
                    if is_again:
                        tell([str(directory)])  # only now: what has changed in it since it was put back is not told
                    is_again = True
                    task_status.started()
                    task_status = trio.TASK_STATUS_IGNORED


async def _end_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel("the folder itself has come or gone")


async def _follow(  # noqa: ASYNC114 - as `watch`
    path: Path,
    is_recursive: bool,
    tell: Callable[[Iterable[str]], object],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Tell of changes below one path. Raises FileNotFoundError where it is not there."""
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - not everybody has it; `check_installed` has looked

    stop = threading.Event()
    try:
        watcher = RustNotify([str(path)], False, False, 0, is_recursive, True)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as exc:  # the second is what it makes of errors it does not know
        raise click.ClickException(f"{path} cannot be watched: {exc}") from exc
    with watcher:
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_when_cancelled, stop)
            # Not abandoned: the thread must have left the watcher before that is closed.
            while isinstance(found := await trio.to_thread.run_sync(_next, watcher, stop), set):
                tell({changed for _, changed in found})


def _next(watcher: RustNotify, stop: threading.Event) -> set[tuple[int, str]] | Literal["signal", "stop", "timeout"]:
    return watcher.watch(_GROUP_MS, _STEP_MS, _FOR_EVER_MS, stop)


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await trio.sleep_forever()
    finally:
        stop.set()


def check_installed() -> None:
    """Raise where folders cannot be watched here.

    Raises:
      click.ClickException: `watchfiles` is not installed; says how to.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise click.ClickException("exthost dev needs the package watchfiles: pip install 'trio-exthost[demo]'")
