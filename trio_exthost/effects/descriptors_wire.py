"""Descriptors back to what was on the wire."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

import attrs
import msgspec

from trio_exthost.effects.descriptors import Command, Migration, PromptSection, RequestPolicy, Tool
from trio_exthost.effects.descriptors_contribution import CONTRIBUTION_KINDS, Contribution
from trio_exthost.effects.descriptors_provider import Provider
from trio_exthost.effects.schemas import Schema
from trio_exthost.effects.scopes import Scope

Descriptor: TypeAlias = Tool | Command | Provider | PromptSection | RequestPolicy | Contribution | Migration


def to_wire(descriptor: Descriptor) -> dict[str, Any]:
    """The raw object of a descriptor, as plain JSON that shares nothing with it.

    Reading it again for the same registrant gives an equal descriptor. Defaults are written out; what is None or an
    empty label is left out.
    """
    raw = _raw_object(descriptor)
    if isinstance(descriptor, Migration):
        del raw["scope"]
    return raw


def _raw_object(value: Any) -> dict[str, Any]:
    kind = CONTRIBUTION_KINDS.get(type(value))
    raw: dict[str, Any] = {} if kind is None else {"kind": kind}
    for field in attrs.fields(type(value)):
        each = getattr(value, field.name)
        if each is not None and not (field.name == "label" and not each):
            raw[field.name] = _raw(each)
    return raw


def _raw(value: Any) -> Any:
    if isinstance(value, Scope):
        return value.word
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_raw(each) for each in value]
    if isinstance(value, Schema):
        return _raw(value.raw)
    if attrs.has(type(value)):
        return _raw_object(value)
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value
