"""The agent's life-cycle points as one table: what is told at each, and what may be asked.

An embedder never emits the same thing twice and never misspells an event: the methods of Run look their words up here.
The words, and what an answer may do, are zot's protocol 1.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import attrs


class Event(enum.StrEnum):
    """What extensions can be told: zot's fourteen events."""

    SESSION_START = "session_start"
    SESSION_END = "session_end"
    USER_PROMPT_SUBMIT = "user_prompt_submit"
    TURN_START = "turn_start"
    TURN_END = "turn_end"
    TOOL_CALL = "tool_call"
    TOOL_CONFIRMATION_REQUESTED = "tool_confirmation_requested"
    PERMISSION_DECISION = "permission_decision"
    TOOL_RESULT = "tool_result"
    ASSISTANT_MESSAGE = "assistant_message"
    PRE_COMPACT = "pre_compact"
    POST_COMPACT = "post_compact"
    SUBAGENT_START = "subagent_start"
    SUBAGENT_STOP = "subagent_stop"


NEVER_DROPPED = frozenset({Event.SESSION_START, Event.SESSION_END})
"""Events that reach a subscriber however slowly it reads."""


WHOLE = "*"
"""As a `value_key`: the payload itself is the value."""


@attrs.frozen
class InterceptPoint:
    """What an interceptor may do at a point, and in which words."""

    event: str
    """The point, as in `subscribe.intercept` and `event_intercept.event`."""
    can_block: bool
    """Whether `block` counts; ignored elsewhere."""
    value_key: str | None = None
    """The key of the request whose value an answer may replace."""
    answer_key: str | None = None
    """The key of the answer that replaces it."""
    empty_replaces: bool = False
    """Whether an empty string is a replacement (a system prompt is removed by one; a text is not)."""
    kind: type = object
    """What the replacement must be."""


INTERCEPT_POINTS: Mapping[str, InterceptPoint] = MappingProxyType(
    {
        point.event: point
        for point in (
            InterceptPoint("tool_call", True, "tool_args", "modified_args", True, dict),
            InterceptPoint("turn_start", True),
            InterceptPoint("assistant_message", True, "text", "replace_text", False, str),
            InterceptPoint("before_agent_start", False, "system_prompt", "system_prompt", True, str),
        )
    }
)
"""The four points at which an extension can be asked, by name."""
