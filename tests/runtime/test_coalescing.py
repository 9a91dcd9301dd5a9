"""Coalescing against a small model: never reordered, the newest never lost, exactly counted, whatever is written when."""

from __future__ import annotations

import os

import trio
from hypothesis import given
from hypothesis import strategies as st
from runtime.outboxes import plain_outbox

from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.flusher import Flusher
from trio_exthost.runtime.observing import Coalescing

PAD = b"." * 4000

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.sampled_from("ab")),
        st.tuples(st.just("event"), st.just("e")),
        st.tuples(st.just("read"), st.integers(1, 30_000)),
        st.tuples(st.just("flush"), st.just("")),
        st.tuples(st.just("end"), st.sampled_from("ab")),
    ),
    max_size=120,
)


@given(steps=_STEPS, room=st.integers(2, 40))
def test_what_arrives_is_in_order_complete_and_counted(steps, room) -> None:
    trio.run(_check, steps, room)


async def _check(steps, room) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    dropped = 0

    def on_drop(count, _first, _last) -> None:
        nonlocal dropped
        dropped += count

    outbox = plain_outbox(
        writing, Flusher(), on_drop, max_frames=room
    )  # its flusher is not run: flushing is the test's
    streams = Coalescing()
    put = {"a": 0, "b": 0, "e": 0}
    newest = {"a": 0, "b": 0}
    sequence = 0
    received = b""

    def read(most: int) -> None:
        nonlocal received
        try:
            received += os.read(reading, most)
        except BlockingIOError:
            return
        outbox._is_blocked = False

    try:
        for step, argument in steps:
            if step == "update":
                sequence += 1
                put[argument] += 1
                newest[argument] = sequence
                line = (argument.encode(), str(sequence).encode())

                def encode(replaced, line=line) -> bytes:
                    return b" ".join([*line, str(replaced).encode(), PAD]) + b"\n"

                streams.put(argument, 1, outbox, sequence, encode)
            elif step == "event":
                sequence += 1
                put["e"] += 1
                outbox.post(Entry(b"e %d 0 %s\n" % (sequence, PAD), Kind.EVENT, sequence))
            elif step == "read":
                read(argument)
            elif step == "flush":
                outbox.flush()
            else:
                streams.end(argument)
        while outbox.waiting_frames:
            read(1 << 20)
            outbox.flush()
        read(1 << 20)
    finally:
        outbox.close()
        os.close(reading)
    lines = [line.split(b" ") for line in received.splitlines()]
    numbers = [int(number) for _, number, _, _ in lines]
    assert numbers == sorted(numbers)
    assert len(lines) + sum(int(replaced) for _, _, replaced, _ in lines) + dropped == sum(put.values())
    if not dropped:
        for name, last in newest.items():
            seen = [int(number) for word, number, _, _ in lines if word == name.encode()]
            assert (seen[-1] if seen else 0) == last
