"""The words of a policy: what its settings can say, and the points they can speak about."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from trio_exthost.hooks import INTERCEPT_POINTS, LIFE_POINTS, Event, HookClass

POINTS: Mapping[str, bool] = MappingProxyType(
    {point.event: point.can_block for point in INTERCEPT_POINTS.values()}
    | {
        point.event.value: point.default_class is HookClass.GATE
        for point in LIFE_POINTS.values()
        if point.default_class in (HookClass.GATE, HookClass.TRANSFORM)
    }
)
"""The points at which extensions are asked, and whether anything can be refused there: the interceptions, then the gates
and the transforms of the hook contract (its gate `tool_call` shares the chain of the interception of that name)."""

TOOL_POINT = Event.TOOL_CALL.value
"""The point that guards can narrow to tools."""
STREAM_POINT = Event.ASSISTANT_MESSAGE.value
"""The point that has a `stream`."""
TOOL_PREFIX = "tool:"
"""Before the name of a tool, in `guards` and `prefer`."""
COMMAND_PREFIX = "command:"
"""Before the name of a command, in `prefer`."""
EVERY_TOOL = "tool:*"
"""Guards every tool."""


class OnAbsent(enum.StrEnum):
    """What an overridden tool's name stands for while the extension that overrides it is not there."""

    REFUSE = "refuse"
    """Nothing: calls are refused with the reason."""
    RESTORE = "restore"
    """What was overridden."""


class RestartMode(enum.StrEnum):
    """When an extension is started again."""

    NEVER = "never"
    ON_CRASH = "on_crash"


class HeadlessAsk(enum.StrEnum):
    """What counts when a person should be asked and there is no client to ask one."""

    ALLOW = "allow"
    BLOCK = "block"


class Stream(enum.StrEnum):
    """What happens to assistant text while somebody may still hide or replace it."""

    HOLD = "hold"
    """It waits for the verdict."""
    SHOW = "show"
    """It is shown as it streams."""
