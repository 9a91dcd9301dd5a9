"""A connection as a pure state machine: bytes in, frames and faults out; frames in, bytes out.

Theory of operation. The runtime is a thin pump around this object: `receive_data`, then `next_event` until None or
until its time slice is over. Which moves there are stands in `phases.py`, which words are legal when in the dialect;
here both are looked up, first checked, then acted on, so that an illegal frame changes nothing. Peers do not raise:
what an extension does wrong is a `Fault`, a value. What the host does wrong is a `ProtocolError` with the code
`local`.

Faults drop one line and go on, except the fatal ones, which move the connection to STOPPING: a first frame that is
not a good `hello`, and a line without end. Before and after `hello`, a line that is no JSON object is stray output (a
banner, a warning), never fatal.
"""

from __future__ import annotations

from types import MappingProxyType

import attrs

from trio_exthost.diagnostics import Code
from trio_exthost.errors import ProtocolError
from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.codec import Codec
from trio_exthost.wire.dialect import Dialect
from trio_exthost.wire.glance import show
from trio_exthost.wire.lines import LineSplitter, LineTooLong
from trio_exthost.wire.phases import TRANSITIONS, Move, Phase

__all__ = ["Connection", "Fault", "Phase"]


@attrs.frozen
class Fault:
    """Something an extension sent that was not accepted; it changed nothing but, if `fatal`, the phase to STOPPING."""

    code: Code
    """What kind of fault."""
    message: str
    """In a sentence, with the bad text shown."""
    frame_type: str | None = None
    """The frame's type, as far as it could be read."""
    frame_id: str | None = None
    """The id of the call it was about, as far as it could be read: that call gets no other answer."""
    fatal: bool = False
    """Whether the extension has to be stopped."""
    registration_id: int | None = None
    """The registration it was about, as far as it could be read: it gets no other answer."""


_CODES = MappingProxyType(
    {
        "not_json": Code.STRAY_OUTPUT,
        "not_an_object": Code.STRAY_OUTPUT,
        "no_type": Code.FRAME_INVALID,
        "too_deep": Code.FRAME_INVALID,
        "invalid_frame": Code.FRAME_INVALID,
        "unknown_type": Code.FRAME_UNKNOWN,
    }
)
_FATAL_FIRST = frozenset({"invalid_frame", "unknown_type"})
"""Certainly a frame, and no good hello. (A program that logs JSON objects to stdout has not begun to speak yet.)"""


class Connection:
    """One extension's side of the conversation. Not for use from two threads.

    Frames come out in the order of the stream. A `ready` frame is passed on each time it comes, also after
    `mark_ready`: the second says nothing new and harms nothing. Registrations are legal from `hello` on, before
    `hello_ack` was written and after `ready`.

    A conversation begins in the codec's dialect. A good `hello` that names a word of its table goes on in another, from
    the next line on, wherever the bytes were cut.
    """

    def __init__(self, codec: Codec, *, max_line: int, stop_line: int) -> None:
        """Begin in HANDSHAKING.

        Args:
          codec: Of the dialect in which `hello` is spoken.
          max_line: Bytes of a line; a longer one is a fault.
          stop_line: Bytes of a line; a longer one is a fatal fault.
        """
        self._codec = codec
        self._dialect = codec.dialect
        self._capabilities: frozenset[str] = frozenset()
        self._lines = LineSplitter(max_line, stop_line)
        self._enter(Phase.HANDSHAKING)
        self._met = False
        self._ack_sent = False
        self._acknowledged = False
        self._ended = False

    @property
    def phase(self) -> Phase:
        """How far it is."""
        return self._phase

    @property
    def acknowledged(self) -> bool:
        """Whether `hello_ack` went out."""
        return self._acknowledged

    @property
    def dialect(self) -> Dialect:
        """What is spoken; settled by `hello`."""
        return self._dialect

    @property
    def capabilities(self) -> frozenset[str]:
        """The words of `hello.capabilities` that mean something in this dialect; empty before it."""
        return self._capabilities

    # --- in ------------------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Take in what was read, in pieces of any size; dropped when CLOSED.

        Memory is bounded if `next_event` is called until it gives None before the next read.
        """
        if self._phase is Phase.CLOSED:
            return
        if self._ended:
            raise _local("bytes after the end of the stream")
        self._lines.feed(data)

    def receive_frame(self, data: bytes) -> from_extension.Frame | Fault | None:
        """As `receive_data` and the first `next_event`, in less time, for what a read gives mostly: one whole frame.

        Returns:
          What `next_event` would give first, and nothing is left; or None: `next_event` has to be asked.
        """
        if self._lines.is_line(data) and not self._ended:
            try:
                frame = self._codec.decode(data)  # to JSON, its line end is a blank
            except ProtocolError:
                pass  # told by `next_event`
            else:
                return frame if frame.TYPE in self._plain else self._admit(frame)
        self.receive_data(data)
        return None

    def next_event(self) -> from_extension.Frame | Fault | None:
        """The next frame or fault, or None if more bytes are needed (or it is CLOSED).

        One call handles one line, so a caller can stop after any of them; bytes received stay.
        """
        line = self._lines.next_line()
        if line is None:
            return None
        if isinstance(line, LineTooLong):
            return self._too_long(line)
        try:
            frame = self._codec.decode(line)
        except ProtocolError as exc:
            fatal = self._phase is Phase.HANDSHAKING and exc.code in _FATAL_FIRST
            registration_id = self._codec.registration_id(line, exc.frame_type)
            return self._fault(
                _CODES[exc.code], exc.message, exc.frame_type, exc.frame_id, registration_id, fatal=fatal
            )
        # Most words move nothing: where they are legal there is nothing more to look at.
        return frame if frame.TYPE in self._plain else self._admit(frame)

    def receive_eof(self) -> Fault | None:
        """The stream has ended; `next_event` still gives what was received before.

        What stands there without a line end is a fault, not fatal. The phase stays: a program that closed its stdout
        may still read its stdin.
        """
        if self._ended or self._phase is Phase.CLOSED:
            return None
        self._ended = True
        rest = self._lines.end()
        if rest is None:
            return None
        seen = self._codec.glance(rest)
        code = Code.FRAME_INVALID if rest.lstrip().startswith(b"{") else Code.STRAY_OUTPUT
        return self._fault(code, f"output ended inside a line: {show(rest)}", seen.frame_type, seen.frame_id)

    # --- moves of the host ---------------------------------------------------------------------------------------

    def acknowledge(self) -> None:
        """`hello_ack` is written or queued: other frames may follow it. Idempotent; `send` of one does it too."""
        if not self._met:
            raise _local("hello_ack before hello")
        self._acknowledged = True

    def mark_ready(self) -> None:
        """Take the registrations for complete, where no `ready` frame came. Idempotent until stopped."""
        self._move(Move.READY)

    def stop(self) -> None:
        """Accept only what ends what was begun. Idempotent; nothing happens when CLOSED."""
        self._move(Move.STOP)

    def close(self) -> None:
        """Read and send nothing any more; what was received and not drained is dropped. Idempotent."""
        self._move(Move.CLOSE)
        self._lines = LineSplitter(0, 0)

    # --- out -----------------------------------------------------------------------------------------------------

    def send(self, frame: to_extension.Frame) -> bytes:
        """Encode a frame that is legal now. Sending the acknowledgement acknowledges; it is sent once.

        Raises:
          ProtocolError: The host may not send this now (code `local`); nothing changed.
          PayloadError: It cannot be encoded; nothing changed.
        """
        word = frame.TYPE
        if word not in self._sendable:
            is_known = word in self._dialect.outbound
            why = (
                f"may not be sent while {self._phase.value}"
                if is_known
                else f"is not of the {self._dialect.name} dialect"
            )
            raise _local(f"{word} {why}", word)
        if not self._acknowledged and word not in self._dialect.sendable_unacknowledged:
            raise _local(f"{word} before {self._dialect.acknowledgement}", word)
        is_ack = word == self._dialect.acknowledgement
        if is_ack and self._ack_sent:
            raise _local(f"a second {word}", word)
        data = self._codec.encode(frame)
        if is_ack:
            self._ack_sent = self._acknowledged = True
        return data

    # --- inside --------------------------------------------------------------------------------------------------

    def _admit(self, frame: from_extension.Frame) -> from_extension.Frame | Fault:
        """Check a frame against the phase, then act on it."""
        word = frame.TYPE
        if word not in self._legal:
            is_first = self._phase is Phase.HANDSHAKING
            message = (
                f"the first frame is {word}, not {self._dialect.hello}"
                if is_first
                else f"{word} is not legal while {self._phase.value}"
            )
            about = getattr(frame, "id", None), getattr(frame, "registration_id", None)
            return self._fault(Code.FRAME_ILLEGAL, message, word, *about, fatal=is_first)
        if word == self._dialect.hello:
            if (complaint := self._complain(frame)) is not None:
                return self._fault(Code.FRAME_INVALID, complaint, word, fatal=True)
            self._met = True
            self._speak(getattr(frame, "capabilities", ()))
        self._move(self._dialect.moves[word])
        return frame

    def _complain(self, hello: from_extension.Frame) -> str | None:
        """Why this hello is refused, or None. Its name need not be the manifest's."""
        if not getattr(hello, "name", "").strip():
            return "hello without a name"
        spoken = getattr(hello, "protocol_version", None)
        if spoken is not None and spoken != self._dialect.protocol:
            return f"speaks {spoken}, host speaks {self._dialect.protocol}"
        return None

    def _speak(self, capabilities: tuple[str, ...]) -> None:
        """Go on in the dialect that these words opt in to."""
        self._codec = self._codec.upgraded(capabilities)
        self._dialect = self._codec.dialect
        self._enter(self._phase)
        self._capabilities = frozenset(capabilities).intersection(self._dialect.capabilities)

    def _too_long(self, line: LineTooLong) -> Fault:
        seen = self._codec.glance(line.head)
        message = f"a line of {line.length_so_far} bytes or more is thrown away: {show(line.head)}"
        return self._fault(Code.FRAME_TOO_LONG, message, seen.frame_type, seen.frame_id, fatal=line.stop)

    def _fault(
        self,
        code: Code,
        message: str,
        frame_type: str | None = None,
        frame_id: str | None = None,
        registration_id: int | None = None,
        *,
        fatal: bool = False,
    ) -> Fault:
        if fatal:
            self._move(Move.STOP)
        return Fault(code, message, frame_type, frame_id, fatal, registration_id)

    def _move(self, move: Move) -> None:
        phase = TRANSITIONS[self._phase].get(move)
        if phase is None:
            raise _local(f"{move.value} is not possible while {self._phase.value}")
        if phase is not self._phase:
            self._enter(phase)

    def _enter(self, phase: Phase) -> None:
        """What is legal now is looked up once, not for each frame."""
        dialect = self._dialect
        self._phase = phase
        self._sendable = dialect.sendable[phase]
        self._legal = dialect.legal[phase]
        self._plain = self._legal.difference(dialect.moves)


def _local(message: str, word: str | None = None) -> ProtocolError:
    return ProtocolError(message, code="local", frame_type=word)
