"""An outbox of which only the drops are told: for tests of what goes through it."""

from __future__ import annotations

from collections.abc import Callable

from trio_exthost.runtime.flusher import Flusher
from trio_exthost.runtime.outbox import Outbox


def plain_outbox(fd: int, flusher: Flusher, on_drop: Callable[[int, int, int], None], *, max_frames: int) -> Outbox:
    """With room for a MiB."""
    return Outbox(
        fd,
        flusher,
        max_frames=max_frames,
        max_bytes=1 << 20,
        on_broken=lambda _why: None,
        on_stalled=lambda _why: None,
        on_drop=on_drop,
        on_full=lambda _full: None,
    )
