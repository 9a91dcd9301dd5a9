"""The arguments of a tool call, as models write them: JSON text, and not always well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trio_exthost.wire.codec import dumps
from trio_exthost.wire.depth import is_deeper
from trio_exthost.wire.payload import find_fault

if TYPE_CHECKING:
    from trio_exthost.config import Limits


def parse_arguments(arguments: Mapping[str, Any] | str, limits: Limits) -> tuple[Mapping[str, Any], str]:
    """Arguments as an object, and why they cannot be used, or nothing. What cannot be sent is refused.

    Args:
      arguments: JSON text, or a mapping of JSON values.
      limits: Bounds of a frame.
    """
    size = limits.frame_bytes // 2  # room for the rest of a frame, and for escapes
    try:
        text = arguments.encode() if isinstance(arguments, str) else dumps(arguments)
        if len(text) > size:  # told before they are gone through, which would take long
            return {}, f"the arguments have {len(text)} bytes, more than {size}"
        value = msgspec.json.decode(text or b"{}")
    except (msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError) as exc:
        return {}, f"the arguments are not JSON: {exc}"
    depth = limits.json_depth
    problem = ""
    if not isinstance(value, dict):
        problem = f"the arguments must be a JSON object, not {type(value).__name__}"
    elif not isinstance(arguments, str) and value != arguments and (fault := find_fault(arguments, depth)):
        problem = f"the arguments are not JSON: {fault}"  # NaN came back as null, the key 1 as "1"
    elif is_deeper(text, depth - 2):  # a frame adds a level, and an event's result another
        problem = f"the arguments are nested deeper than {depth - 2} levels"
    return ({}, problem) if problem else (value, "")
