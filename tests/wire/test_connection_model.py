"""The phase table, tried by generated conversations against a plain model of it; and what the tables must hold."""

from __future__ import annotations

from typing import Any

import pytest
import strategies
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trio_exthost.errors import ProtocolError
from trio_exthost.hooks.points import INTERCEPT_POINTS, Event
from trio_exthost.wire import TRANSITIONS, ZOT, Codec, Connection, Fault, Move, Phase, from_extension

CODEC = Codec(ZOT, max_frame=1 << 16, max_depth=64)
REPLIES = {"tool_result", "command_response", "event_intercept_response"}
LAST_WORDS = REPLIES | {"call_tool_cancel", "notify", "clear_notes", "panel_close", "shutdown_ack"}


class Conversation(RuleBasedStateMachine):
    """The model is the phase's name, moved by plain rules."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = Connection(CODEC, max_line=1 << 16, stop_line=1 << 17)
        self.phase = "handshaking"
        self.greeted = False
        self.sent_ack = False
        self.may_talk = False

    def receive(self, data: bytes) -> Any:
        self.connection.receive_data(data)
        event = self.connection.next_event()
        assert self.connection.next_event() is None
        return event

    @rule(version=st.sampled_from([None, 1, 2]), name=st.sampled_from(["guard", ""]))
    def hello(self, version: int | None, name: str) -> None:
        event = self.receive(CODEC.encode(from_extension.Hello(name, protocol_version=version)))
        good = name != "" and version in (None, 1)
        if self.phase == "handshaking":
            self.phase = "registering" if good else "stopping"
            self.greeted = good
            assert isinstance(event, Fault) != good
            assert good or event.fatal
        else:
            self.expect_illegal(event)

    @rule(frame=strategies.in_frames.filter(lambda frame: frame.TYPE != "hello"))
    def frame(self, frame: Any) -> None:
        event = self.receive(CODEC.encode(frame))
        if self.phase in ("registering", "ready") or (self.phase == "stopping" and frame.TYPE in LAST_WORDS):
            assert event == frame
            if frame.TYPE == "ready":
                self.phase = "ready"
        elif self.phase == "handshaking":
            assert event.fatal
            self.phase = "stopping"
        else:
            self.expect_illegal(event)

    def expect_illegal(self, event: Any) -> None:
        if self.phase == "closed":
            assert event is None
        else:
            assert isinstance(event, Fault)
            assert not event.fatal

    @rule(data=st.sampled_from([b"banner\n", b"[]\n", b"{}\n", b"\n"]))
    def stray(self, data: bytes) -> None:
        event = self.receive(data)
        assert event is None or not event.fatal

    @rule()
    def mark_ready(self) -> None:
        possible = self.phase in ("registering", "ready")
        self.attempt(self.connection.mark_ready, possible)
        if possible:
            self.phase = "ready"

    @rule()
    def acknowledge(self) -> None:
        self.attempt(self.connection.acknowledge, self.greeted)
        self.may_talk = self.may_talk or self.greeted

    @rule(frame=strategies.out_frames)
    def send(self, frame: Any) -> None:
        if frame.TYPE == "hello_ack":
            possible = self.phase in ("registering", "ready") and not self.sent_ack
            if possible:
                self.sent_ack = self.may_talk = True
        elif frame.TYPE == "shutdown":
            possible = self.phase in ("registering", "ready", "stopping")
        else:
            ending = frame.TYPE in {"event", "tool_cancel", "tool_result", "panel_close"}
            possible = self.may_talk and (
                self.phase in ("registering", "ready") or (self.phase == "stopping" and ending)
            )
        self.attempt(lambda: self.connection.send(frame), possible)

    def attempt(self, action: Any, possible: bool) -> None:
        """The invariant sees that a refused action changed nothing."""
        if possible:
            action()
            return
        with pytest.raises(ProtocolError) as caught:
            action()
        assert caught.value.code == "local"

    @rule()
    def stop(self) -> None:
        self.connection.stop()
        self.phase = self.phase if self.phase == "closed" else "stopping"

    @rule(really=st.integers(0, 4))
    def close(self, really: int) -> None:
        if really == 0:
            self.connection.close()
            self.phase = "closed"

    @invariant()
    def they_agree(self) -> None:
        assert self.connection.phase.value == self.phase
        assert self.connection.acknowledged == self.may_talk


TestConversation = Conversation.TestCase
TestConversation.settings = settings(stateful_step_count=20)


def test_every_phase_has_its_row_and_every_legal_word_is_known() -> None:
    assert set(Phase) == set(TRANSITIONS) == set(ZOT.legal) == set(ZOT.sendable)
    assert set(ZOT.inbound) == set().union(*ZOT.legal.values())
    assert set(ZOT.outbound) == set().union(*ZOT.sendable.values())
    assert ZOT.sendable_unacknowledged <= set(ZOT.outbound)
    assert {ZOT.hello, *ZOT.moves} <= set(ZOT.inbound)
    assert ZOT.acknowledgement in ZOT.outbound
    assert set(ZOT.replies) <= set(ZOT.inbound)
    assert set(ZOT.replies.values()) <= set(ZOT.outbound)


def test_a_word_that_moves_is_legal_only_where_its_move_is_possible() -> None:
    for word, move in ZOT.moves.items():
        for phase, legal in ZOT.legal.items():
            assert word not in legal or move in TRANSITIONS[phase]


def test_stop_and_close_are_possible_everywhere_and_lead_on_only() -> None:
    order = list(Phase)
    for phase, row in TRANSITIONS.items():
        assert {Move.STOP, Move.CLOSE} <= set(row)
        assert all(order.index(after) >= order.index(phase) for after in row.values())


def test_a_words_class_is_named_by_it() -> None:
    for words in (ZOT.inbound, ZOT.outbound):
        assert all(word == kind.TYPE for word, kind in words.items())


def test_the_events_and_interceptions_are_those_of_the_life_cycle() -> None:
    assert ZOT.events == tuple(event.value for event in Event)
    assert ZOT.interceptions == tuple(INTERCEPT_POINTS)
