"""A policy as the text of a file: only what it says, in one fixed order."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from trio_exthost.policy.checks import EXTENSION_READERS, POINT_READERS, key_path, toml_text
from trio_exthost.policy.extension_policy import ExtensionPolicy, PointPolicy
from trio_exthost.policy.policy import Policy
from trio_exthost.policy.settings import POINTS


def format_policy(policy: Policy) -> str:
    """The text of which `parse_policy` makes an equal policy; empty for one that says nothing."""
    tables: list[str] = []
    if policy.headless_ask is not None:
        tables.append(_table("defaults", _setting("headless_ask", policy.headless_ask)))
    tables += _points("defaults", policy.defaults)
    for name, extension in policy.extensions.items():
        path = key_path("extensions", name)
        tables.append(_table(path, _settings(extension, EXTENSION_READERS)))
        tables += _points(path, extension.points)
    if policy.prefer:
        lines = (_setting(key_path("", key), winner) for key, winner in policy.prefer.items())
        tables.append(_table("conflicts.prefer", *lines))
    return "\n".join(tables)


def _points(path: str, points: Mapping[str, PointPolicy]) -> Iterator[str]:
    for name in (name for name in POINTS if name in points):
        yield _table(f"{path}.{name}", _settings(points[name], POINT_READERS))


def _table(path: str, *lines: str) -> str:
    return f"[{path}]\n{''.join(lines)}"


def _settings(said: ExtensionPolicy | PointPolicy, names: Mapping[str, Any]) -> str:
    return "".join(_setting(name, value) for name in names if _says_something(value := getattr(said, name)))


def _says_something(value: object) -> bool:
    return value is not None and value is not False and value != frozenset()  # 0 s is something, and equals False


def _setting(key: str, value: object) -> str:
    return f"{key} = {_value(value)}\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true"
    if isinstance(value, frozenset):
        return f"[{', '.join(map(toml_text, sorted(value)))}]"
    if isinstance(value, enum.Enum):
        return toml_text(value.value)
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value)
