"""A dialect as data: which words there are, which class each is, what is legal when.

The codec and the connection know no word by heart. Another dialect is another instance of `Dialect`, with frame
classes of its own where it needs them; it adds no branch anywhere. A conversation begins in one dialect; a capability
word of its `hello` may take it to another, which the first one's table names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, get_args

import attrs

from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.phases import Move, Phase


@attrs.frozen(kw_only=True)
class Dialect:
    """What one protocol says, in tables. Immutable."""

    name: str
    """The word a manifest names it by."""
    protocol: int
    """The number in `hello` and `hello_ack`."""
    inbound: Mapping[str, type[Any]]
    """Type word to class, for frames an extension sends."""
    outbound: Mapping[str, type[Any]]
    """Type word to class, for frames the host sends."""
    hello: str
    """The word of the first frame; its class has `name` and `protocol_version`."""
    acknowledgement: str
    """The word the host answers it with, before all else."""
    moves: Mapping[str, Move]
    """Inbound words that move the connection; `hello` is one of them."""
    legal: Mapping[Phase, frozenset[str]]
    """The inbound words that are legal in each phase. What is illegal while HANDSHAKING is fatal."""
    sendable: Mapping[Phase, frozenset[str]]
    """The outbound words that are legal in each phase."""
    sendable_unacknowledged: frozenset[str]
    """Of those, the ones that need no `acknowledgement` before them."""
    replies: Mapping[str, str]
    """Inbound word that answers, to the outbound word it answers."""
    registrations: frozenset[str]
    """Inbound words that name what they are about by `registration_id`."""
    events: tuple[str, ...]
    """What extensions can be told, in the order of a conversation."""
    interceptions: tuple[str, ...]
    """What extensions can be asked."""
    capabilities: tuple[str, ...]
    """Words of `hello.capabilities` that mean something; others are ignored."""
    upgrades: Mapping[str, Dialect]
    """Words of `hello.capabilities` that take the conversation to another dialect. The first in this order counts."""


def _words(frames: Iterable[type[Any]]) -> Mapping[str, type[Any]]:
    return MappingProxyType({each.TYPE: each for each in frames})


_IN = _words(get_args(from_extension.ZotFrame))
_OUT = _words(get_args(to_extension.ZotFrame))
_REPLIES = MappingProxyType(
    {
        "tool_result": "tool_call",
        "command_response": "command_invoked",
        "event_intercept_response": "event_intercept",
    }
)
_WHILE_STOPPING = frozenset({*_REPLIES, "call_tool_cancel", "notify", "clear_notes", "panel_close", "shutdown_ack"})
_AFTER_HELLO = frozenset(_IN) - {"hello"}
_SENT_AFTER_HELLO = frozenset(_OUT)
_SENT_WHILE_STOPPING = frozenset(
    {"event", "tool_cancel", "tool_result", "panel_close", "register_rejected", "shutdown"}
)

_ZOT_ALONE = Dialect(
    name="zot",
    protocol=1,
    inbound=_IN,
    outbound=_OUT,
    hello="hello",
    acknowledgement="hello_ack",
    moves=MappingProxyType({"hello": Move.HELLO, "ready": Move.READY}),
    legal=MappingProxyType(
        {
            Phase.HANDSHAKING: frozenset({"hello"}),
            Phase.REGISTERING: _AFTER_HELLO,
            Phase.READY: _AFTER_HELLO,
            Phase.STOPPING: _WHILE_STOPPING,
            Phase.CLOSED: frozenset(),
        }
    ),
    sendable=MappingProxyType(
        {
            Phase.HANDSHAKING: frozenset(),
            Phase.REGISTERING: _SENT_AFTER_HELLO,
            Phase.READY: _SENT_AFTER_HELLO,
            Phase.STOPPING: _SENT_WHILE_STOPPING,
            Phase.CLOSED: frozenset(),
        }
    ),
    sendable_unacknowledged=frozenset({"hello_ack", "shutdown"}),
    replies=_REPLIES,
    registrations=frozenset(),
    events=(
        "session_start",
        "session_end",
        "user_prompt_submit",
        "turn_start",
        "turn_end",
        "tool_call",
        "tool_confirmation_requested",
        "permission_decision",
        "tool_result",
        "assistant_message",
        "pre_compact",
        "post_compact",
        "subagent_start",
        "subagent_stop",
    ),
    interceptions=("tool_call", "turn_start", "assistant_message", "before_agent_start"),
    capabilities=("commands", "tools", "events", "panels", "tool_cancel", "call_tool", "register_rejected"),
    upgrades=MappingProxyType({}),
)

_EFFECTS_IN = _words(get_args(from_extension.EffectsFrame))
_EFFECTS_OUT = _words(get_args(to_extension.EffectsFrame))
# `invoke` is not among them: it begins something. What it brought about before still ends in the usual way, and
# what an extension asked for before it was asked to stop is still answered.
_EFFECTS_SENT_WHILE_STOPPING = frozenset(_EFFECTS_OUT) - {"invoke"}

EFFECTS = attrs.evolve(
    _ZOT_ALONE,
    name="effects",
    inbound=MappingProxyType({**_IN, **_EFFECTS_IN}),
    outbound=MappingProxyType({**_OUT, **_EFFECTS_OUT}),
    legal=MappingProxyType(
        {
            **_ZOT_ALONE.legal,
            # Nothing is stored by an extension that may yet turn out not to become ready.
            Phase.REGISTERING: _AFTER_HELLO | frozenset(_EFFECTS_IN) - {"state_commit"},
            Phase.READY: _AFTER_HELLO | frozenset(_EFFECTS_IN),
            # What it saves because it is asked to stop counts, though nobody may be there to say so.
            Phase.STOPPING: _WHILE_STOPPING | {"invoke_result", "progress", "dispose", "state_commit"},
        }
    ),
    sendable=MappingProxyType(
        {
            **_ZOT_ALONE.sendable,
            Phase.REGISTERING: _SENT_AFTER_HELLO | frozenset(_EFFECTS_OUT),
            Phase.READY: _SENT_AFTER_HELLO | frozenset(_EFFECTS_OUT),
            Phase.STOPPING: _SENT_WHILE_STOPPING | _EFFECTS_SENT_WHILE_STOPPING,
        }
    ),
    replies=MappingProxyType({**_REPLIES, "invoke_result": "invoke"}),
    registrations=frozenset({"register", "update", "dispose"}),
    capabilities=(*_ZOT_ALONE.capabilities, "effects", "gaps"),
)
"""The effect dialect, revision 1: all of zot's, and frames for registrations, invocations and durable writes."""

ZOT = attrs.evolve(_ZOT_ALONE, upgrades=MappingProxyType({"effects": EFFECTS}))
"""zot's protocol 1, as its extensions rely on it. Each conversation begins in it."""
