"""The contract of each point and class: what a hook may answer, how long it has, and what holds if it fails.

Nothing of it can be bargained for. A descriptor may spell it out, and is refused where it says something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from trio_exthost.hooks.events import DeadlineClass, Delivery, HookClass, HookEvent, HookFailure
from trio_exthost.hooks.life_points import LIFE_POINTS

DURABLE = frozenset({"set_state", "add_state", "delete_state", "append_custom_event", "append_model_context"})
"""The kinds of action that store something."""
COMMON = DURABLE | {"enqueue_follow_up", "emit_diagnostic"}
"""What a gate and a transform may always answer."""
REGISTERING = frozenset({"register_effect", "dispose_effect", "emit_diagnostic"})
"""What a hook of class register may answer."""

PRIMARY: Mapping[HookEvent, tuple[str, ...]] = MappingProxyType(
    {
        HookEvent.INPUT: ("replace_input", "emit_command_outcome"),
        HookEvent.BEFORE_RUN: ("patch_run_context",),
        HookEvent.CONTEXT: ("replace_context",),
        HookEvent.BEFORE_MODEL_REQUEST: ("replace_model_request",),
        HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS: ("replace_provider_headers",),
        HookEvent.BEFORE_PROVIDER_REQUEST_RAW: ("replace_provider_payload",),
        HookEvent.MESSAGE_DELTA: ("replace_text",),
        HookEvent.MESSAGE_END: ("replace_message",),
        HookEvent.TOOL_CALL: ("replace_arguments",),
        HookEvent.TOOL_RESULT: ("replace_tool_result",),
    }
)
"""The actions that change what a point is about; an answer holds one of them at most."""

_LONG = (
    HookEvent.EXTENSION_LOAD, HookEvent.SESSION_START, HookEvent.SESSION_SHUTDOWN, HookEvent.EXTENSION_UNLOAD,
)  # fmt: skip
_STREAMING = (HookEvent.MESSAGE_UPDATE, HookEvent.TOOL_EXECUTION_UPDATE)


@attrs.frozen
class Contract:
    """What holds for the hooks of one class at one point."""

    event: HookEvent
    """The point."""
    hook_class: HookClass
    """The class."""
    primary: tuple[str, ...]
    """Actions that change what the point is about, or take its place; one of them at most."""
    allowed_actions: frozenset[str]
    """Every kind of action that an answer may hold, `primary` among them."""
    deadline: DeadlineClass
    """How long it may take."""
    delivery: Delivery
    """How it is reached."""
    failure: HookFailure
    """What holds where it gives no usable answer."""


def contract_of(event: HookEvent, hook_class: HookClass) -> Contract | None:
    """The contract of a class at a point; None where there can be no such hook."""
    return _CONTRACTS.get((event, hook_class))


def classes_of(event: HookEvent) -> tuple[HookClass, ...]:
    """The classes that hooks can have at a point; the first is what a descriptor that names none has."""
    return tuple(each for at, each in _CONTRACTS if at is event)


def _contract(event: HookEvent, hook_class: HookClass) -> Contract:
    primary = PRIMARY.get(event, ()) if hook_class in (HookClass.GATE, HookClass.TRANSFORM) else ()
    common, failure = _OF_CLASS[hook_class]
    is_streaming = event in _STREAMING
    deadline = DeadlineClass.LONG if event in _LONG else DeadlineClass.FAST if is_streaming else DeadlineClass.STANDARD
    return Contract(
        event=event,
        hook_class=hook_class,
        primary=primary,
        allowed_actions=common | frozenset(primary),
        deadline=deadline,
        delivery=Delivery.BOUNDED_COALESCING if is_streaming else Delivery.INLINE,
        failure=failure,
    )


_OF_CLASS: Mapping[HookClass, tuple[frozenset[str], HookFailure]] = MappingProxyType(
    {
        HookClass.OBSERVE: (frozenset(), HookFailure.CONTINUE),
        HookClass.TRANSFORM: (COMMON, HookFailure.KEEP_LAST_VALUE),
        HookClass.GATE: (COMMON, HookFailure.DENY),
        HookClass.REGISTER: (REGISTERING, HookFailure.REJECT_REGISTRATION),
    }
)


def _classes(event: HookEvent) -> tuple[HookClass, ...]:
    also = (HookClass.REGISTER,) if event is HookEvent.EXTENSION_LOAD else ()
    return tuple(dict.fromkeys((LIFE_POINTS[event].default_class, HookClass.OBSERVE, *also)))


_CONTRACTS: Mapping[tuple[HookEvent, HookClass], Contract] = MappingProxyType(
    {(event, each): _contract(event, each) for event in LIFE_POINTS for each in _classes(event)}
)
