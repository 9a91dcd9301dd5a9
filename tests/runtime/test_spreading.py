"""What is told to many is dealt late: nobody can see that it was."""

from __future__ import annotations

import os
from collections import defaultdict

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from runtime.outboxes import plain_outbox

from trio_exthost.errors import Overloaded
from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.flusher import SPREAD_FRAMES, Flusher

PAD = b"." * 900


class Place:
    """A receiver, its pipe, and what its outbox told."""

    def __init__(self, flusher: Flusher, on_drop, *, max_frames: int) -> None:
        self.reading, writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.dropped: list[tuple[int, int, int]] = []

        def drop(count: int, first: int, last: int) -> None:
            self.dropped.append((count, first, last))
            on_drop()

        self.outbox = plain_outbox(writing, flusher, drop, max_frames=max_frames)
        self.data = b""

    def read(self) -> None:
        try:
            self.data += os.read(self.reading, 1 << 20)
        except BlockingIOError:
            return
        self.outbox._is_blocked = False

    def lines(self) -> list[bytes]:
        while self.outbox.waiting_frames:
            self.read()
            self.outbox.flush()
        self.read()
        return [line.removesuffix(PAD) for line in self.data.splitlines()]

    def close(self) -> None:
        self.outbox.close()
        os.close(self.reading)


def entry(number: int, kind: Kind = Kind.EVENT) -> Entry:
    return Entry(b"%d" % number + PAD + b"\n", kind, number)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.integers(0, 3)),
        st.tuples(st.just("post"), st.integers(0, 2)),
        st.tuples(st.just("call"), st.integers(0, 2)),
        st.tuples(st.just("tick"), st.just(0)),
        st.tuples(st.just("read"), st.integers(0, 2)),
    ),
    max_size=150,
)


@given(steps=_STEPS, room=st.integers(2, 12))
def test_each_receives_in_order_what_it_did_not_drop(steps, room) -> None:
    trio.run(_check, steps, room)


async def _check(steps, room) -> None:
    flusher = Flusher()
    places = [Place(flusher, lambda: None, max_frames=room) for _ in range(3)]
    groups = [tuple(places), tuple(places[:2]), tuple(places[2:]), tuple(places[::-1])]
    sent: dict[int, list[int]] = defaultdict(list)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.run)
            await trio.testing.wait_all_tasks_blocked()
            for number, (step, which) in enumerate(steps, 1):
                if step == "tell":
                    flusher.tell(groups[which], entry(number))
                    for place in groups[which]:
                        sent[places.index(place)].append(number)
                elif step == "post":
                    places[which].outbox.post(entry(number, Kind.ANSWER))
                    sent[which].append(number)
                elif step == "call":
                    try:
                        places[which].outbox.post_call(entry(number, Kind.CALL))
                    except Overloaded:
                        continue
                    sent[which].append(number)
                elif step == "tick":
                    await trio.testing.wait_all_tasks_blocked()
                    assert not flusher.spread
                else:
                    places[which].read()
            flusher.deal()
            for index, place in enumerate(places):
                gone = sum(count for count, _, _ in place.dropped)
                lines = [int(line) for line in place.lines()]
                assert len(lines) + gone == len(sent[index])
                assert lines == [number for number in sent[index] if number in set(lines)], "in order, none twice"
            nursery.cancel_scope.cancel()
    finally:
        for place in places:
            place.close()


async def test_what_is_told_while_drops_are_told_comes_after_what_is_being_dealt() -> None:
    flusher = Flusher()
    again = [entry(100)]

    def on_drop() -> None:
        if again:
            flusher.tell(everybody, again.pop())

    places = [Place(flusher, on_drop, max_frames=2) for _ in range(2)]
    everybody = tuple(places)
    try:
        for place in places:
            place.outbox._is_blocked = True
        for number in range(1, 5):
            flusher.tell(everybody, entry(number))
        flusher.deal()
        assert len(flusher.spread) == 1
        flusher.deal()
        for place in places:
            place.outbox._is_blocked = False
            place.outbox.flush()
            assert place.lines() == [b"4", b"100"]
            assert sum(count for count, _, _ in place.dropped) == 3
    finally:
        for place in places:
            place.close()


async def test_what_waits_to_be_dealt_is_bounded() -> None:
    flusher = Flusher()
    place = Place(flusher, lambda: None, max_frames=10)
    everybody = (place,)
    try:
        for number in range(10 * SPREAD_FRAMES):
            flusher.tell(everybody, entry(number))
            assert sum(len(entries) for _, entries in flusher.spread) < SPREAD_FRAMES
        for number in range(10):
            flusher.tell(everybody, Entry(b"x" * (1 << 17), Kind.EVENT, number))
            assert sum(len(each.data) for _, entries in flusher.spread for each in entries) <= 1 << 18
        assert place.outbox.waiting_frames <= 10
    finally:
        place.close()
