"""What the codec lets through unread: descriptors, actions, values of answers, and schemas with what they check.

What must hold: a refusal is one of ours, and its message can be shown; what is taken is JSON, and reads the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from effects.descriptor_strategies import BASE, EVERYTHING
from fuzz.choices import Choices
from fuzz.hostile import changed, write
from fuzz.seeds import WORDS as FRAME_WORDS
from hooks.hook_samples import ACTIONS, answers

from trio_exthost.effects import compile_schema, read_descriptor
from trio_exthost.effects.admission import REGISTRABLE
from trio_exthost.effects.answers import read_command_answer, read_tool_answer
from trio_exthost.errors import HostError
from trio_exthost.hooks import read_batch
from trio_exthost.hooks.descriptors import hook_rules
from trio_exthost.state import read_actions
from trio_exthost.wire.depth import is_deeper
from trio_exthost.wire.words import RegistrationKind

KINDS = {**REGISTRABLE, RegistrationKind.HOOK: hook_rules()}
_SCHEMA = {
    "type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$"}, "b": {"$ref": "#/$defs/x"}},
    "required": ["a"], "$defs": {"x": {"type": ["integer", "null"], "enum": [1, None]}}, "additionalProperties": False,
}  # fmt: skip
_FORM = {"kind": "form", "title": "T", "schema": _SCHEMA}
_RAW: dict[str, Any] = {
    **{kind: {**descriptor} for kind, descriptor in BASE.items()},
    "hook": {"event": "tool_call", "class": "gate", "priority": 1, "filter": _SCHEMA},
}
_RAW["tool"] = {**BASE["tool"], "input_schema": _SCHEMA, "scope": "run", "override": True, "timeout_s": 5}
VALUES = (
    {
        "content": [{"type": "text", "text": "x"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}],
        "is_error": False,
    },
    {"status": "success", "message": "done", "display": "x"},
)
SCHEMA_WORDS = (
    "type", "object", "string", "integer", "array", "properties", "items", "prefixItems", "$ref", "#", "#/$defs/x", "$defs",
    "$dynamicRef", "$id", "$schema", "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#",
    "pattern", "(a+)+$", "patternProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "uniqueItems",
    "additionalProperties", "unevaluatedProperties", "multipleOf", "minimum", "maxLength", "contains", "minContains", "format",
)  # fmt: skip
WORDS = (*FRAME_WORDS, *SCHEMA_WORDS)
DICTIONARY = tuple(map(write, WORDS))
MESSAGE = 4000


def _descriptor(value: Any) -> None:
    for kind in KINDS:
        if kind.value == value.get("kind"):
            read_descriptor(kind, value.get("descriptor"), registrant=EVERYTHING, kinds=KINDS)


def _actions(value: Any) -> None:
    for action in value if isinstance(value, list) else [value]:
        if isinstance(action, dict):
            read_actions([action], extension="guard")


def _batch(value: Any) -> None:
    found = value.get("kind") if isinstance(value, dict) else None
    if isinstance(found, str) and found in ACTIONS:
        batch = read_batch(answers(found), None, [value], extension="guard", what="a hook", granted={"session.write"})
        assert batch.primary is not None or batch.common


def _values(value: Any) -> None:
    for read in (read_tool_answer, read_command_answer):
        try:
            read(value)
        except ValueError as exc:  # the caller says whose answer it was
            check_message(str(exc))


def _schema(value: Any) -> None:
    if isinstance(value, dict) and "schema" in value:
        schema = compile_schema(value["schema"], extension="guard")
        for each in (value.get("value"), value["schema"], [], {}, "aaaa", 1, None):
            errors = schema.errors(each)
            assert schema.matches(each) == (not errors)
            assert all(len(str(error)) < MESSAGE for error in errors)


READERS: tuple[tuple[Callable[[Any], None], tuple[Any, ...]], ...] = (
    (_descriptor, tuple({"kind": kind, "descriptor": raw} for kind, raw in _RAW.items())),
    (_actions, tuple({"kind": kind, **action} for kind, action in ACTIONS.items())),
    (_batch, tuple({"kind": kind, **action} for kind, action in ACTIONS.items())),
    (_values, VALUES),
    (_schema, ({"schema": _SCHEMA, "value": {"a": "aa"}}, {"schema": True, "value": 1})),
)
"""What reads, and what it is meant for."""


def seeds() -> Iterator[bytes]:
    for number, (_, samples) in enumerate(READERS):
        yield from (bytes([number, 0]) + write(each) for each in samples)
        yield from (
            bytes([number, 1, sample, 1, change, change]) for sample in range(len(samples)) for change in range(10)
        )


def fuzz_one(data: bytes) -> None:
    """The first byte says which reader, the second whether the rest is JSON as it is."""
    choices = Choices(data)
    read, samples = choices.pick(READERS)
    if choices.byte() % 2 == 0:
        text = choices.rest()
    else:
        value: Any = choices.pick(samples)
        for _ in range(choices.below(5)):
            value = changed(value, choices, WORDS, samples)
        text = write(value)
    if is_deeper(text, 128):
        return  # as the codec does
    try:
        received = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(received, dict) or read is not _descriptor:
        try:
            read(received)
        except HostError as exc:
            check_message(str(exc))


def check_message(message: str) -> None:
    message.encode()
    assert len(message) <= MESSAGE, f"a message of {len(message)} characters"
