"""Another dialect is data: words of its own, frames of its own, no branch anywhere."""

from __future__ import annotations

from typing import ClassVar

import attrs

from trio_exthost.wire import ZOT, Codec, Connection, Fault, Phase, from_extension


@attrs.frozen
class Bootstrap:
    """A sign of life before hello."""

    TYPE: ClassVar[str] = "bootstrap"
    message: str = ""


@attrs.frozen
class Greeting:
    """A hello under another word."""

    TYPE: ClassVar[str] = "greeting"
    name: str
    protocol_version: int


@attrs.frozen
class Nameless:
    """A hello that says nothing of who speaks."""

    TYPE: ClassVar[str] = "hello"


def test_a_hello_that_has_no_name_at_all_is_refused_as_one_of_a_blank_name() -> None:
    nameless = attrs.evolve(ZOT, inbound={**ZOT.inbound, "hello": Nameless})
    connection = Connection(Codec(nameless, max_frame=1000, max_depth=8), max_line=1000, stop_line=1000)
    connection.receive_data(b'{"type":"hello","name":"x"}\n')
    fault = connection.next_event()
    assert isinstance(fault, Fault)
    assert (fault.message, fault.fatal) == ("hello without a name", True)


def test_a_dialect_with_other_words_needs_no_other_code() -> None:
    inbound = {word: kind for word, kind in ZOT.inbound.items() if word != "hello"}
    other = attrs.evolve(
        ZOT,
        name="other",
        protocol=6,
        inbound={**inbound, "bootstrap": Bootstrap, "greeting": Greeting},
        hello="greeting",
        moves={"greeting": ZOT.moves["hello"], "ready": ZOT.moves["ready"]},
        legal={**ZOT.legal, Phase.HANDSHAKING: frozenset({"bootstrap", "greeting"})},
    )
    connection = Connection(Codec(other, max_frame=1000, max_depth=8), max_line=1000, stop_line=1000)
    connection.receive_data(
        b'{"type":"bootstrap","message":"warming up"}\n'
        b'{"type":"greeting","name":"x","protocol_version":6}\n'
        b'{"type":"hello","name":"x"}\n{"type":"ready"}\n'
    )
    assert connection.next_event() == Bootstrap("warming up")
    assert connection.phase is Phase.HANDSHAKING
    assert connection.next_event() == Greeting("x", 6)
    unknown = connection.next_event()
    assert isinstance(unknown, Fault)
    assert not unknown.fatal
    assert connection.next_event() == from_extension.Ready()
    assert connection.phase is Phase.READY
