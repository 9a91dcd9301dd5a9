"""One JSON value of a recording, which may be anybody's: bounded, and told precisely where it is none."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from trio_exthost.wire.depth import is_deeper

MOST_BYTES = 16 * 1024 * 1024
"""One line, or one message of a document; what is longer is left out."""
MOST_LEVELS = 128
"""Nesting of one value, as of a frame."""


class NotJson(ValueError):
    """Why some bytes are no JSON."""


def decode(data: bytes) -> Any:
    """The value; lone surrogates in it become U+FFFD, since who cuts a text in half writes such.

    Raises:
      NotJson: It is none, no UTF-8, or nested deeper than `MOST_LEVELS`.
    """
    if is_deeper(data, MOST_LEVELS):
        raise NotJson(f"is nested deeper than {MOST_LEVELS} levels")
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        """It may be JSON all the same: half of a surrogate pair is not, to that decoder."""
    try:
        text = data.decode("utf-8")
        return _without_surrogates(json.loads(text, parse_constant=_no_constant, parse_float=_finite))
    except UnicodeDecodeError:
        raise NotJson("is no UTF-8") from None
    except json.JSONDecodeError as exc:
        raise NotJson(f"is no JSON: {exc.msg[:1].lower()}{exc.msg[1:]} at character {exc.pos + 1}") from None
    except NotJson:
        raise
    except ValueError:
        raise NotJson("is no JSON: a number has too many digits") from None


def _no_constant(name: str) -> Any:
    raise NotJson(f"is no JSON: {name}")


def _finite(digits: str) -> float:
    """The number; one that is too large would be infinite, which can be sent to nobody."""
    number = float(digits)
    if math.isinf(number):
        raise NotJson("is no JSON: a number is too large")
    return number


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
