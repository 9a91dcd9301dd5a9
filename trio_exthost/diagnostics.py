"""Diagnostics and their codes; the bounded log of them.

Nothing that went wrong, was dropped, was late or was decided by a policy is silent: it becomes a `Diagnostic`, is
counted by code for ever, and the newest ones are kept whole.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import attrs


class Severity(enum.Enum):
    """How bad it is for the person who runs the agent."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Code(enum.StrEnum):
    """Stable words for what happened; branch on these, not on messages."""

    # discovery and start
    MANIFEST_INVALID = "manifest_invalid"
    MANIFEST_WARNING = "manifest_warning"
    SHADOWED = "shadowed"
    TRUST_REQUIRED = "trust_required"
    LOAD_FAILED = "load_failed"
    AUTO_READY = "auto_ready"
    READY_LATE = "ready_late"
    # input
    STRAY_OUTPUT = "stray_output"
    FRAME_TOO_LONG = "frame_too_long"
    FRAME_INVALID = "frame_invalid"
    FRAME_UNKNOWN = "frame_unknown"
    FRAME_ILLEGAL = "frame_illegal"
    REPLY_UNKNOWN = "reply_unknown"
    REPLY_LATE = "reply_late"
    REPLY_WRONG_TYPE = "reply_wrong_type"
    INPUT_THROTTLED = "input_throttled"
    # registrations
    REGISTRATION_REFUSED = "registration_refused"
    SECTION_LEFT_OUT = "section_left_out"
    STATE_MIGRATION_FAILED = "state_migration_failed"
    STATE_REFUSED = "state_refused"
    # output
    EVENTS_DROPPED = "events_dropped"
    OVERLOADED = "overloaded"
    EVENT_TRUNCATED = "event_truncated"
    PANEL_REFUSED = "panel_refused"
    SUBMIT_REFUSED = "submit_refused"
    # calls
    CALL_TIMED_OUT = "call_timed_out"
    CALL_FAILED = "call_failed"
    RESULT_TRUNCATED = "result_truncated"
    POLICY_UNKNOWN = "policy_unknown"
    POLICY_DECIDED = "policy_decided"
    REWRITE_IGNORED = "rewrite_ignored"
    EXTENSION_SAYS = "extension_says"
    # health and end
    TRIPPED = "tripped"
    RECOVERED = "recovered"
    RESTARTING = "restarting"
    GAVE_UP = "gave_up"
    GUARD_ABSENT = "guard_absent"
    UNRESPONSIVE = "unresponsive"
    INPUT_CLOSED = "input_closed"
    OUTPUT_CLOSED = "output_closed"
    EXITED = "exited"
    KILLED = "killed"
    UNKILLABLE = "unkillable"
    WATCHDOG_LOST = "watchdog_lost"
    # the host's own
    CALLBACK_FAILED = "callback_failed"
    LOG_WRITE_FAILED = "log_write_failed"


MESSAGE_CHARACTERS = 4000
"""The longest message; of a longer one the beginning and the end are kept. An id that it shows may fill a frame."""


def cut_message(message: str) -> str:
    """The message, in at most `MESSAGE_CHARACTERS`."""
    if len(message) <= MESSAGE_CHARACTERS:
        return message
    half = MESSAGE_CHARACTERS // 2 - 3
    return f"{message[:half]} ... {message[-half:]}"


@attrs.frozen
class Diagnostic:
    """One thing worth knowing."""

    code: Code
    """What happened."""
    severity: Severity
    """How bad it is."""
    message: str = attrs.field(converter=cut_message)
    """In a sentence, with the bad value shown and the way out; at most `MESSAGE_CHARACTERS`."""
    extension: str | None = None
    """Whom it concerns; None for the host itself."""
    session_id: str | None = None
    """In which session."""
    instance: int | None = None
    """Which incarnation."""
    time: float = 0.0
    """Seconds since the epoch, as the host's clock read when it was reported."""


class DiagnosticLog:
    """The newest diagnostics whole, and a count by code that never forgets. Not for use from other threads."""

    def __init__(self, keep: int) -> None:
        """Keep at most `keep` diagnostics whole."""
        self._recent: deque[Diagnostic] = deque(maxlen=keep)
        self._counts: Counter[Code] = Counter()
        self._listeners: tuple[Callable[[Diagnostic], None], ...] = ()

    def add(self, diagnostic: Diagnostic) -> None:
        """Count it, keep it, and tell who listens (the listener must not raise)."""
        self._counts[diagnostic.code] += 1
        self._recent.append(diagnostic)
        for listener in self._listeners:
            listener(diagnostic)

    def count(self, code: Code) -> None:
        """Count one without keeping or telling it: it repeats what was told before."""
        self._counts[code] += 1

    def listen(self, listener: Callable[[Diagnostic], None]) -> None:
        """Call `listener` with each diagnostic from now on, in order."""
        self._listeners += (listener,)

    def __iter__(self) -> Iterator[Diagnostic]:
        """The kept ones, oldest first, as they were when iteration began."""
        return iter(tuple(self._recent))

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._recent)

    @property
    def counts(self) -> Mapping[Code, int]:
        """How often each code was reported, dropped ones included."""
        return MappingProxyType(self._counts)

    def of(self, extension: str) -> tuple[Diagnostic, ...]:
        """The kept ones that concern this extension, oldest first."""
        return tuple(each for each in self._recent if each.extension == extension)
