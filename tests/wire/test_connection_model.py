"""The phase table, tried by generated conversations against a plain model of it; and what the tables must hold."""

from __future__ import annotations

from typing import Any

import pytest
import strategies
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trio_exthost.diagnostics import Code
from trio_exthost.errors import ProtocolError
from trio_exthost.hooks.points import INTERCEPT_POINTS, Event
from trio_exthost.wire import EFFECTS, TRANSITIONS, ZOT, Codec, Connection, Dialect, Fault, Move, Phase, from_extension

CODEC = Codec(ZOT, max_frame=1 << 16, max_depth=64)
GUEST = Codec(EFFECTS, max_frame=1 << 16, max_depth=64)
"""An extension that knows all words; whether it may use them is the question."""
REPLIES = {"tool_result", "command_response", "event_intercept_response"}
LAST_WORDS = REPLIES | {"call_tool_cancel", "notify", "clear_notes", "panel_close", "shutdown_ack"}
LAST_WORDS |= {"invoke_result", "progress", "dispose"}
ENDINGS = {"event", "tool_cancel", "tool_result", "panel_close"}
ENDINGS |= {kind.TYPE for kind in strategies.EFFECTS_OUT_CLASSES if kind.TYPE != "invoke"}
ONLY_EFFECTS = {kind.TYPE for kind in (*strategies.EFFECTS_IN_CLASSES, *strategies.EFFECTS_OUT_CLASSES)}


class Conversation(RuleBasedStateMachine):
    """The model is the names of phase and dialect, moved by plain rules."""

    def __init__(self) -> None:
        super().__init__()
        self.connection = Connection(CODEC, max_line=1 << 16, stop_line=1 << 17)
        self.phase = "handshaking"
        self.dialect = "zot"
        self.capabilities: set[str] = set()
        self.greeted = False
        self.sent_ack = False
        self.may_talk = False

    def receive(self, data: bytes) -> Any:
        self.connection.receive_data(data)
        event = self.connection.next_event()
        assert self.connection.next_event() is None
        return event

    @rule(
        version=st.sampled_from([None, 1, 2]),
        name=st.sampled_from(["guard", ""]),
        capabilities=st.lists(st.sampled_from(["effects", "gaps", "tool_cancel", "telepathy"])).map(tuple),
    )
    def hello(self, version: int | None, name: str, capabilities: tuple[str, ...]) -> None:
        event = self.receive(CODEC.encode(from_extension.Hello(name, "", capabilities, version)))
        good = name != "" and version in (None, 1)
        if self.phase == "handshaking":
            self.phase = "registering" if good else "stopping"
            self.greeted = good
            if good and "effects" in capabilities:
                self.dialect = "effects"
            if good:
                known = {"tool_cancel"} if self.dialect == "zot" else {"effects", "gaps", "tool_cancel"}
                self.capabilities = known & set(capabilities)
            assert isinstance(event, Fault) != good
            assert good or event.fatal
        else:
            self.expect_illegal(event)

    def may_come(self, word: str) -> bool:
        if self.dialect == "zot" and word in ONLY_EFFECTS:
            return False
        if word == "state_commit":
            return self.phase in ("ready", "stopping")
        return self.phase in ("registering", "ready") or (self.phase == "stopping" and word in LAST_WORDS)

    @rule(frame=strategies.in_frames.filter(lambda frame: frame.TYPE != "hello") | strategies.effects_in_frames)
    def frame(self, frame: Any) -> None:
        event = self.receive(GUEST.encode(frame))
        if self.may_come(frame.TYPE):
            assert event == frame
            if frame.TYPE == "ready":
                self.phase = "ready"
        elif self.phase == "handshaking":
            assert event.fatal
            self.phase = "stopping"
        else:
            self.expect_illegal(event)
            if self.phase != "closed":
                is_unknown = self.dialect == "zot" and frame.TYPE in ONLY_EFFECTS
                assert event.code is (Code.FRAME_UNKNOWN if is_unknown else Code.FRAME_ILLEGAL)
                assert event.frame_id == getattr(frame, "id", None)

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

    @rule(frame=strategies.out_frames | strategies.effects_out_frames)
    def send(self, frame: Any) -> None:
        if frame.TYPE == "hello_ack":
            possible = self.phase in ("registering", "ready") and not self.sent_ack
            if possible:
                self.sent_ack = self.may_talk = True
        elif frame.TYPE == "shutdown":
            possible = self.phase in ("registering", "ready", "stopping")
        elif self.dialect == "zot" and frame.TYPE in ONLY_EFFECTS:
            possible = False
        else:
            ending = frame.TYPE in ENDINGS
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
        assert self.connection.dialect.name == self.dialect
        assert self.connection.capabilities == self.capabilities


TestConversation = Conversation.TestCase
TestConversation.settings = settings(stateful_step_count=20)


DIALECTS = pytest.mark.parametrize("dialect", [ZOT, EFFECTS], ids=lambda dialect: dialect.name)


@DIALECTS
def test_every_phase_has_its_row_and_every_legal_word_is_known(dialect: Dialect) -> None:
    assert set(Phase) == set(TRANSITIONS) == set(dialect.legal) == set(dialect.sendable)
    assert set(dialect.inbound) == set().union(*dialect.legal.values())
    assert set(dialect.outbound) == set().union(*dialect.sendable.values())
    assert dialect.sendable_unacknowledged <= set(dialect.outbound)
    assert {dialect.hello, *dialect.moves} <= set(dialect.inbound)
    assert dialect.acknowledgement in dialect.outbound
    assert set(dialect.replies) <= set(dialect.inbound)
    assert set(dialect.replies.values()) <= set(dialect.outbound)
    naming = {word for word, kind in dialect.inbound.items() if "registration_id" in kind.__annotations__}
    assert dialect.registrations == naming


@DIALECTS
def test_a_word_that_moves_is_legal_only_where_its_move_is_possible(dialect: Dialect) -> None:
    for word, move in dialect.moves.items():
        for phase, legal in dialect.legal.items():
            assert word not in legal or move in TRANSITIONS[phase]


def test_stop_and_close_are_possible_everywhere_and_lead_on_only() -> None:
    order = list(Phase)
    for phase, row in TRANSITIONS.items():
        assert {Move.STOP, Move.CLOSE} <= set(row)
        assert all(order.index(after) >= order.index(phase) for after in row.values())


@DIALECTS
def test_a_words_class_is_named_by_it(dialect: Dialect) -> None:
    for words in (dialect.inbound, dialect.outbound):
        assert all(word == kind.TYPE for word, kind in words.items())


def test_the_events_and_interceptions_are_those_of_the_life_cycle() -> None:
    assert ZOT.events == tuple(event.value for event in Event)
    assert ZOT.interceptions == tuple(INTERCEPT_POINTS)


def test_the_effect_dialect_takes_nothing_of_zots_away() -> None:
    assert dict(ZOT.upgrades) == {"effects": EFFECTS}
    assert not EFFECTS.upgrades
    for ours, zots in ((EFFECTS.inbound, ZOT.inbound), (EFFECTS.outbound, ZOT.outbound)):
        assert {word: ours[word] for word in zots} == zots
    for phase in Phase:
        assert EFFECTS.legal[phase] & set(ZOT.inbound) == ZOT.legal[phase]
        assert EFFECTS.sendable[phase] & set(ZOT.outbound) == ZOT.sendable[phase]
    assert set(ZOT.capabilities) < set(EFFECTS.capabilities)
    assert EFFECTS.protocol == ZOT.protocol
