"""The points of an agent's life as one table: in the hook contract's words, and in zot's."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from trio_exthost.hooks.events import HookClass, HookEvent
from trio_exthost.hooks.payloads import PAYLOADS
from trio_exthost.hooks.points import Event

_G, _T, _O = HookClass.GATE, HookClass.TRANSFORM, HookClass.OBSERVE


@attrs.frozen(kw_only=True)
class LifePoint:
    """One point: who is asked or told there, and what."""

    event: HookEvent
    """Its name in the hook contract."""
    zot_event: str | None
    """The event of zot's protocol that subscribers are told at the same point, if there is one."""
    interception: str | None
    """The interception of zot's protocol at the same point, if there is one."""
    default_class: HookClass
    """The class of a hook whose descriptor names none."""
    awaited: bool
    """Whether those that observe it are waited for; the others are told by one-way frames."""
    dispatched: bool
    """Whether the runtime has it. An agent can have fewer; `hello_ack.dialect.events` names those it has."""
    payload_schema: Mapping[str, Any] = attrs.field(hash=False)
    """What a hook is shown, as a JSON Schema. Shared: not to be changed."""


def _point(
    event: HookEvent,
    default_class: HookClass,
    zot_event: Event | None = None,
    interception: str | None = None,
    *,
    awaited: bool = False,
    dispatched: bool = True,
) -> LifePoint:
    return LifePoint(
        event=event,
        zot_event=zot_event.value if zot_event is not None else None,
        interception=interception,
        default_class=default_class,
        awaited=awaited,
        dispatched=dispatched,
        payload_schema=PAYLOADS[event],
    )


LIFE_POINTS: Mapping[HookEvent, LifePoint] = MappingProxyType(
    {
        point.event: point
        for point in (
            _point(HookEvent.EXTENSION_LOAD, _O, awaited=True),
            _point(HookEvent.SESSION_START, _O, Event.SESSION_START),
            _point(HookEvent.INPUT, _T, Event.USER_PROMPT_SUBMIT),
            _point(HookEvent.BEFORE_SESSION_SWITCH, _G),
            _point(HookEvent.SESSION_SWITCHED, _O),
            _point(HookEvent.BEFORE_SESSION_FORK, _G),
            _point(HookEvent.SESSION_FORKED, _O),
            _point(HookEvent.BEFORE_MODEL_SELECTION, _G),
            _point(HookEvent.MODEL_SELECTED, _O),
            _point(HookEvent.BEFORE_RUN, _T, None, "before_agent_start"),
            _point(HookEvent.RUN_STARTED, _O),
            _point(HookEvent.TURN_STARTED, _O, Event.TURN_START, "turn_start"),
            _point(HookEvent.CONTEXT, _T),
            _point(HookEvent.BEFORE_MODEL_REQUEST, _T),
            _point(HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS, _T, dispatched=False),
            _point(HookEvent.BEFORE_PROVIDER_REQUEST_RAW, _T, dispatched=False),
            _point(HookEvent.PROVIDER_RESPONSE, _O, Event.TURN_END),
            _point(HookEvent.PROVIDER_REQUEST_FAILED, _O, Event.TURN_END),
            _point(HookEvent.MESSAGE_START, _O),
            _point(HookEvent.MESSAGE_DELTA, _T),
            _point(HookEvent.MESSAGE_UPDATE, _O),
            _point(HookEvent.MESSAGE_END, _T, Event.ASSISTANT_MESSAGE, "assistant_message"),
            _point(HookEvent.TOOL_CALL, _G, Event.TOOL_CALL, "tool_call"),
            _point(HookEvent.TOOL_EXECUTION_START, _O),
            _point(HookEvent.TOOL_EXECUTION_UPDATE, _O),
            _point(HookEvent.TOOL_EXECUTION_END, _O),
            _point(HookEvent.TOOL_RESULT, _T, Event.TOOL_RESULT),
            _point(HookEvent.TURN_COMPLETED, _O),
            _point(HookEvent.RUN_ENDED, _O),
            _point(HookEvent.RUN_ERROR, _O),
            _point(HookEvent.RUN_SETTLED, _O),
            _point(HookEvent.BEFORE_COMPACTION, _G, Event.PRE_COMPACT),
            _point(HookEvent.COMPACTION_SUCCEEDED, _O, Event.POST_COMPACT),
            _point(HookEvent.COMPACTION_FAILED, _O, Event.POST_COMPACT),
            _point(HookEvent.SESSION_SHUTDOWN, _O, Event.SESSION_END, awaited=True),
            _point(HookEvent.EXTENSION_UNLOAD, _O, awaited=True),
        )
    }
)
"""Every point, in about the order in which they come."""

DISPATCHED: frozenset[HookEvent] = frozenset(point.event for point in LIFE_POINTS.values() if point.dispatched)
"""The points that the runtime has. It never sees what goes to a provider, so the two points about that are not in it."""
