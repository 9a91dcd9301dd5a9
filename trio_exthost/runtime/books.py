"""What a host remembers of itself, always: its newest decisions, a log of them if one is kept, and its statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trio_exthost.config import HostConfig
from trio_exthost.runtime.decisions import DecisionLog, DecisionRecorder, Decisions
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.instruments import Instruments
from trio_exthost.runtime.stats import HostStats, Stats

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session


class Books:
    """Decisions and statistics of one host, and who is told of what becomes one."""

    def __init__(
        self,
        config: HostConfig,
        sessions: Mapping[str, Session],
        *,
        instrument: HostInstrument | None,
        log: Path | None,
        on_failure: Callable[[str], None],
    ) -> None:
        """Begin with nothing.

        Args:
          config: Says how much is kept, and what is masked.
          sessions: The open sessions; looked at when somebody asks what waits.
          instrument: The embedder's; it hears of outcomes, too.
          log: Where decisions are written, rotated as the logs of extensions are; nowhere if None.
          on_failure: Told once when that cannot be written.
        """
        limits = config.limits
        self.decisions: Decisions = Decisions(limits.decisions)
        self._sessions = sessions
        self._stats = Stats(self._waiting)
        self._log = (
            DecisionLog(log.absolute(), max_bytes=limits.log_bytes, files=limits.log_files, on_failure=on_failure)
            if log is not None
            else None
        )
        recorder = DecisionRecorder(self.decisions, log=self._log, mask=config.mask)
        # Ours come first: what happened is on record also where the embedder's raises.
        mine = (recorder, self._stats)
        self.outcomes: Instruments = Instruments(*mine) if instrument is None else Instruments(*mine, instrument)
        """Told each `chain_ended`, `call_ended` and `dropped`, once per outcome; frames and events are not its business."""

    def stats(self) -> HostStats:
        """The statistics as they are now."""
        return self._stats.snapshot()

    def close(self) -> None:
        """Close the log, if there is one."""
        if self._log is not None:
            self._log.close()

    def _waiting(self) -> Mapping[str, int]:
        """Frames that wait for each extension, all sessions together."""
        waiting: Counter[str] = Counter()
        for session in self._sessions.values():
            running = (session.loader.running(row.name) for row in session.extensions())
            # One that is just being started, or could not be, has no outbox.
            spawned = [each for each in running if each is not None and each.pid_was is not None]
            waiting.update({each.name: each.outbox.waiting_frames for each in spawned})
        return waiting
