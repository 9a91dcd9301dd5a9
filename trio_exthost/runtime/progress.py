"""Progress of a running tool on its way to whoever watches: status notes may be dropped, output may not."""

from __future__ import annotations

import math

import trio

from trio_exthost.runtime.tools import Progress

NOTES_KEPT = 64
"""Notes without output that wait for a reader; then only the newest is kept, as each replaces the one before."""


class ProgressQueue:
    """From the tool to one reader, in order; never blocks.

    Output is bounded where it comes in, so it is all kept here.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        channel = trio.open_memory_channel[Progress](math.inf)
        self._send = channel[0]
        self.receive: trio.MemoryReceiveChannel[Progress] = channel[1]
        """What comes out; it ends with the call."""
        self._room = NOTES_KEPT  # what may wait before the notes are thinned out: outputs do not count

    def put(self, progress: Progress) -> None:
        """Add one; nothing where nobody reads any more."""
        try:
            if progress.output:
                self._room += 1
            elif self._send.statistics().current_buffer_used >= self._room:
                self._thin_out()
            self._send.send_nowait(progress)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            """Nobody listens (any more)."""

    def _thin_out(self) -> None:
        """Drop the notes without output; the one that is about to come replaces them."""
        waiting = [self.receive.receive_nowait() for _ in range(self._send.statistics().current_buffer_used)]
        outputs = [each for each in waiting if each.output]
        for each in outputs:
            self._send.send_nowait(each)
        self._room = NOTES_KEPT + len(outputs)

    def close(self) -> None:
        """Nothing more comes."""
        self._send.close()
