"""HostInstrument: sees everything the host does, as trio's Instrument sees tasks.

Recording, metrics, traces and decision logs are built on it; where there is none, it costs one comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_exthost.effects import Change
    from trio_exthost.policy import Verdict
    from trio_exthost.wire import from_extension


class HostInstrument:
    """Methods that do nothing; override those you care about.

    Called synchronously, on the trio thread, at the moment itself: be quick and do not raise. One that raises is a bug of
    the embedder's and ends the host.
    """

    def frame_received(self, session_id: str, extension: str, frame: from_extension.Frame) -> None:
        """A frame was decoded and is about to be handled."""

    def frame_queued(self, session_id: str, extension: str, data: bytes) -> None:
        """A request or an answer was queued for an extension (events: see `event_emitted`)."""

    def event_emitted(
        self, session_id: str, event: str, sequence: int, payload: Mapping[str, Any], receivers: tuple[str, ...]
    ) -> None:
        """An event was queued for these extensions."""

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:
        """Interceptors were asked, and this was decided. Not called where nobody was there to ask."""

    def call_ended(self, session_id: str, extension: str, kind: str, name: str, outcome: str, seconds: float) -> None:
        """A command or a tool of an extension ended; `outcome` is `ok` or the error's code."""

    def state_changed(self, session_id: str, extension: str, old: str, new: str) -> None:
        """An instance went from one state of its life to the next."""

    def effects_changed(self, session_id: str, changes: tuple[Change, ...]) -> None:
        """The ledger changed; the views already say so."""

    def dropped(self, session_id: str, extension: str, count: int, first_sequence: int, last_sequence: int) -> None:
        """Events were dropped, as the extension reads too slowly."""
