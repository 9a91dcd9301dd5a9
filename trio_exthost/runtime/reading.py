"""What an instance writes to its stdout: bytes to frames, and each frame to what it does, on arrival."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trio_exthost.errors import PayloadError
from trio_exthost.runtime.inbound import HANDLERS
from trio_exthost.runtime.lifecycle import State
from trio_exthost.wire import Fault, from_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


class Reading:
    """A `pump.Sink`: called by the pump, synchronously. A bug of ours in here ends the instance, loudly."""

    def __init__(self, instance: Instance) -> None:
        """Read what this one writes."""
        self._instance = instance
        self._connection = instance.connection

    def take(self, data: bytes, until: float) -> bool:
        """Take what it wrote, and handle it as `handle` does."""
        event = self._connection.receive_frame(data)
        return self.handle(until) if event is None else self.handle(until, event)

    def handle(self, until: float, only: from_extension.Frame | Fault | None = None) -> bool:
        """Handle buffered frames until `time.perf_counter()` passes `until`, or only this one; True when some are left."""
        next_event = self._connection.next_event if only is None else iter((only, None)).__next__
        instance = self._instance
        instrument = instance.host.instrument
        is_left = False
        count = 0
        try:
            while (event := next_event()) is not None:
                if instrument is not None and isinstance(event, from_extension.Frame):
                    instrument.frame_received(instance.session.id, instance.name, event)
                try:
                    HANDLERS[type(event)](instance, event)
                except PayloadError as exc:
                    instance.cannot_answer("a frame", exc)
                count += 1
                if not count & 7 and time.perf_counter() >= until:
                    is_left = True
                    break
        except Exception as exc:  # noqa: BLE001 - handed to the instance's own task, which raises it in its nursery
            instance.on_bug(exc)
        if count and instance.state is State.REGISTERING:
            instance.registering.saw_frames()
        return is_left

    def ended(self) -> None:
        """Its stdout has ended."""
        fault = self._connection.receive_eof()
        if fault is not None:
            HANDLERS[type(fault)](self._instance, fault)
        self._instance.on_output_closed()
