"""Several instruments as one: each hears everything, in the order in which they were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trio_exthost.runtime.instrument import HostInstrument

if TYPE_CHECKING:
    from trio_exthost.effects import Change
    from trio_exthost.policy import Verdict
    from trio_exthost.wire import from_extension


class Instruments(HostInstrument):
    """Passes every call on. One that raises ends the host, as any instrument does; those after it do not hear that call."""

    def __init__(self, *instruments: HostInstrument) -> None:
        """Pass on to these, in this order."""
        self.instruments: tuple[HostInstrument, ...] = instruments

    @staticmethod
    def of(*instruments: HostInstrument | None) -> HostInstrument | None:
        """One for all of them: None where there is none, and the one itself where there is one, so neither costs more."""
        given = tuple(each for each in instruments if each is not None)
        return Instruments(*given) if len(given) > 1 else given[0] if given else None

    def frame_received(self, session_id: str, extension: str, frame: from_extension.Frame) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.frame_received(session_id, extension, frame)

    def frame_queued(self, session_id: str, extension: str, data: bytes) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.frame_queued(session_id, extension, data)

    def event_emitted(
        self, session_id: str, event: str, sequence: int, payload: Mapping[str, Any], receivers: tuple[str, ...]
    ) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.event_emitted(session_id, event, sequence, payload, receivers)

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.chain_ended(session_id, verdict, seconds)

    def call_ended(self, session_id: str, extension: str, kind: str, name: str, outcome: str, seconds: float) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.call_ended(session_id, extension, kind, name, outcome, seconds)

    def state_changed(self, session_id: str, extension: str, old: str, new: str) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.state_changed(session_id, extension, old, new)

    def effects_changed(self, session_id: str, changes: tuple[Change, ...]) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.effects_changed(session_id, changes)

    def dropped(self, session_id: str, extension: str, count: int, first_sequence: int, last_sequence: int) -> None:
        """See `HostInstrument`."""
        for each in self.instruments:
            each.dropped(session_id, extension, count, first_sequence, last_sequence)
