"""Bytes of an extension into a connection in every state, as raw as they come or as frames with something wrong in them.

What must hold: nothing is raised; a refused frame changes nothing (a fatal one: the phase to STOPPING); what is let
through is legal in its phase and can be written again; however the bytes are cut, the same comes out; a message is short.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz.choices import Choices
from fuzz.hostile import changed, spoiled, write
from fuzz.seeds import FRAMES, HELLO, WORDS

from trio_exthost.errors import PayloadError
from trio_exthost.wire import ZOT, Codec, Connection, Fault, Phase

MAX_LINE = 1 << 18
STOP_LINE = 1 << 20
MESSAGE = 1200
"""Characters of a fault's message at most: it is logged, and shown."""
CODEC = Codec(ZOT, max_frame=4 * MAX_LINE, max_depth=128)
_ZOT_HELLO = b'{"type":"hello","name":"guest"}\n'
_HELLO = write(HELLO) + b"\n"
_READY = b'{"type":"ready"}\n'
PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"", ""),
    (_ZOT_HELLO, ""),
    (_HELLO, ""),
    (_ZOT_HELLO, "acknowledge"),
    (_HELLO, "acknowledge"),
    (_ZOT_HELLO + _READY, "acknowledge"),
    (_HELLO + _READY, "acknowledge"),
    (_ZOT_HELLO, "mark_ready"),
    (_HELLO + _READY, "stop"),
    (_ZOT_HELLO, "stop"),
    (b"", "stop"),
    (_HELLO + _READY, "close"),
    (b'{"type":"hel', ""),
    (_ZOT_HELLO + b'{"type":"notify","mess', "acknowledge"),
    (_HELLO + b'{"type":"register","registration_id":', "acknowledge"),
    (_HELLO + b"x" * (MAX_LINE + 5), "acknowledge"),
    (b"banner\n[1]\n", ""),
    (_HELLO[:-1], ""),
)
"""What came before, and what the host did after it: a state each."""
DICTIONARY = tuple(write(word) for word in WORDS)


def seeds() -> Iterator[bytes]:
    """Each frame in each state, raw."""
    for state in range(len(PREFIXES)):
        for number, frame in enumerate(FRAMES):
            yield bytes([state, 64 + number % 6]) + write(frame) + b"\n"


def in_state(number: int) -> Connection:
    connection = Connection(CODEC, max_line=MAX_LINE, stop_line=STOP_LINE)
    data, move = PREFIXES[number]
    connection.receive_data(data)
    while connection.next_event() is not None:
        pass
    if move:
        getattr(connection, move)()
    return connection


def lines(choices: Choices) -> Iterator[bytes]:
    """Frames as an extension would send them, and most of them not quite."""
    while not choices.is_over:
        frame: Any = choices.pick(FRAMES)
        for _ in range(choices.below(4)):
            frame = changed(frame, choices, WORDS, FRAMES)
        line = write(frame)
        if choices.one_in(8):
            line = spoiled(line, choices)
        yield line + choices.pick((b"\n", b"\n", b"\n", b"\r\n", b"", b"\n\n\r\n"))


def fuzz_one(data: bytes) -> None:
    """The first byte is the state; the second how the bytes are cut, and whether they are raw."""
    choices = Choices(data)
    state, how = choices.below(len(PREFIXES)), choices.byte()
    size = (1, 2, 7, 64, 1000, 65536)[how % 6]
    stream = choices.rest() if how & 64 else b"".join(lines(choices))
    if size < 64:
        stream = stream[:5000]
    whole = converse(in_state(state), [stream])
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert converse(in_state(state), pieces) == whole, "another cut, another outcome"
    each = stream.splitlines(keepends=True) if b"\r" not in stream else [stream]
    assert converse(in_state(state), each, by_frame=True) == whole, "another way in, another outcome"


def converse(connection: Connection, pieces: list[bytes], *, by_frame: bool = False) -> list[Any]:
    """Give it these, look at everything that comes out."""
    seen: list[Any] = []
    for piece in pieces:
        before = facts(connection)
        if by_frame and piece:
            event = connection.receive_frame(piece)
            if event is not None:
                check(connection, before, event)
                seen.append(event)
                continue
        else:
            connection.receive_data(piece)
        drain(connection, seen, len(piece))
    before = facts(connection)
    if (fault := connection.receive_eof()) is not None:
        check(connection, before, fault)
        seen.append(fault)
    return [*map(repr, seen), facts(connection)]


def drain(connection: Connection, seen: list[Any], length: int) -> None:
    for _ in range(length + 3):  # each line gives one event, a long one two
        before = facts(connection)
        event = connection.next_event()
        if event is None:
            return
        check(connection, before, event)
        seen.append(event)
    raise AssertionError("there is no end to what one piece gives")


def facts(connection: Connection) -> tuple[Any, ...]:
    return (
        connection.phase,
        connection.dialect.name,
        connection.capabilities,
        connection.acknowledged,
        connection._sendable,
    )


def check(connection: Connection, before: tuple[Any, ...], event: Any) -> None:
    after = facts(connection)
    phase, dialect = before[0], before[1]
    assert phase is not Phase.CLOSED, "something came out of what is closed"
    if isinstance(event, Fault):
        assert len(event.message) <= MESSAGE, f"a message of {len(event.message)} characters"
        event.message.encode()
        assert event.message.isprintable() or "\n" not in event.message, event.message
        assert not event.fatal or after[0] is Phase.STOPPING
        assert event.fatal or after == before, "a refused frame changed something"
        assert after[1:4] == before[1:4], "a refused frame changed more than the phase"
        return
    spoken = ZOT if dialect == "zot" else ZOT.upgrades[dialect]
    assert event.TYPE in spoken.legal[phase], f"{event.TYPE} while {phase}"
    codec = CODEC.upgraded([dialect])
    try:
        text = codec.encode(event)
    except PayloadError:
        return  # a line of the longest size can be longer when it is written as we write
    assert codec.decode(text) == event, "written and read, it is another"
