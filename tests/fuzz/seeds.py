"""Legal inputs, made from the classes that describe them: where a fuzzer begins."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, get_args

import attrs
from effects.descriptor_strategies import BASE
from hooks.hook_samples import ACTIONS

from trio_exthost.wire import from_extension, words

_PARTS = {
    kind.__name__: kind
    for kind in (
        from_extension.ContentBlock, from_extension.PanelSpec, from_extension.Binding, from_extension.Decision,
        from_extension.ErrorDetail,
    )
}  # fmt: skip
_WORDS = {kind.__name__: kind for kind in vars(words).values() if isinstance(kind, enum.EnumType)}
_PLAIN: Mapping[str, Any] = {
    "str": "x",
    "bool": True,
    "int": 1,
    "float": 0.5,
    "Json": {"type": "object"},
    "RegistrationId": 1,
    "Milliseconds": 1000,
    "Mapping[str, Any]": {"name": "look"},
}
_OWN: Mapping[str, Any] = {"id": "1", "invocation": "1", "kind": "tool", "action": "display", "level": "warn"}
"""What a field of this name holds, where its type does not say it."""
HELLO = {
    "type": "hello",
    "name": "guest",
    "version": "1",
    "capabilities": ["effects", "gaps", "call_tool"],
    "protocol_version": 1,
}


def _value(annotation: str) -> Any:
    annotation = annotation.removesuffix(" | None")
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation.startswith("tuple["):
        return [_value(annotation[len("tuple[") :].split(", ...")[0])]
    if annotation in _WORDS:
        return next(iter(_WORDS[annotation])).value
    return _fields(_PARTS[annotation], whole=True)


def _fields(kind: type[Any], *, whole: bool) -> dict[str, Any]:
    result = {}
    for field in attrs.fields(kind):
        if whole or field.default is attrs.NOTHING:
            annotation = kind.__annotations__[field.name]
            result[field.name] = _OWN[field.name] if annotation == "str" and field.name in _OWN else _value(annotation)
    return result


def keys_of(value: Any) -> set[str]:
    """All keys in it, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def _of_class(kind: type[Any]) -> list[dict[str, Any]]:
    """With what it must have, and with all it may have."""
    both = [{"type": kind.TYPE, **_fields(kind, whole=whole)} for whole in (False, True)]
    return both if both[0] != both[1] else both[:1]


_HOOK = {"event": "tool_call", "class": "gate"}
_DESCRIPTORS: dict[str, Any] = {**BASE, "hook": _HOOK}
_REGISTER = [
    {"type": "register", "registration_id": number, "kind": kind, "descriptor": descriptor}
    for number, (kind, descriptor) in enumerate(_DESCRIPTORS.items(), 1)
]
_STORING = [{"kind": kind, **action} for kind, action in ACTIONS.items()]
_COMMIT = [
    {"type": "state_commit", "id": str(number), "space": space, "actions": [action]}
    for space in ("session", "extension")
    for number, action in enumerate(_STORING)
    if action["kind"].endswith(("_state", "_event", "_context"))
]
_RESULTS = [{"type": "invoke_result", "id": "1", "actions": [action]} for action in _STORING]

FRAMES: tuple[dict[str, Any], ...] = tuple(
    [HELLO, {"type": "hello", "name": "guest"}, {"type": "ready"}]
    + [frame for kind in get_args(from_extension.ZotFrame) for frame in _of_class(kind)]
    + [frame for kind in get_args(from_extension.EffectsFrame) for frame in _of_class(kind)]
    + _REGISTER
    + _COMMIT
    + _RESULTS
)
"""A frame of every class, least and whole; a registration of every kind, an action of every kind."""
WORDS: tuple[str, ...] = tuple(
    sorted(
        {key for frame in FRAMES for key in keys_of(frame)}
        | {frame["type"] for frame in FRAMES}
        | {member.value for kind in _WORDS.values() for member in kind}
        | set(ACTIONS)
        | {"tick", "tool_call", "turn_start", "assistant_message", "effects", "gaps", "guest"}
    )
)  # fmt: skip
"""Keys and closed words of frames: the dictionary."""
