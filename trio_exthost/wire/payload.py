"""Which part of a payload is not JSON, and why.

The encoder is lenient where a peer would be misled: it writes NaN as null, a set as a list, bytes as base64, the key
1 as "1". The codec notices that what comes back is not what went in, and asks here for the place; this walk is never
on the fast path.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

_Path = tuple["_Path | None", str]


def find_fault(value: object, max_depth: int) -> str | None:
    """Where and why `value` is not JSON, as `$.result.mean: nan is not JSON`; None if it is (tuples count as arrays).

    Depth first and bounded by `max_depth`, so a value that contains itself is found out.
    """
    stack: list[tuple[object, _Path, int]] = [(value, (None, "$"), 0)]
    while stack:
        item, path, depth = stack.pop()
        if isinstance(item, (Mapping, list, tuple)):
            if depth == max_depth:
                return f"{_render(path)}: nested deeper than {max_depth} levels"
            if isinstance(item, Mapping):
                if (fault := _key_fault(item)) is not None:
                    return f"{_render(path)}: {fault}"
                children: Iterable[tuple[str, Any]] = ((f".{key:.80}", child) for key, child in item.items())
            else:
                children = ((f"[{index}]", child) for index, child in enumerate(item))
            stack.extend((child, (path, step), depth + 1) for step, child in children)
        elif (fault := _scalar_fault(item)) is not None:
            return f"{_render(path)}: {fault}"
    return None


def _key_fault(item: Mapping[Any, Any]) -> str | None:
    for key in item:
        if not isinstance(key, str):
            return f"the key {key!r:.40} is not a string"
        if (fault := _scalar_fault(key)) is not None:
            return f"in the key {key!r:.40}: {fault}"
    return None


def _scalar_fault(item: object) -> str | None:
    if isinstance(item, str):
        try:
            item.encode()
        except UnicodeEncodeError as exc:
            return f"the lone surrogate {item[exc.start]!r} at character {exc.start} is not JSON"
        return None
    if isinstance(item, float):
        return None if math.isfinite(item) else f"{item!r} is not JSON"
    if item is None or isinstance(item, int):
        return None
    return f"a value of type {type(item).__name__} is not JSON"


def _render(path: _Path | None) -> str:
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps))
