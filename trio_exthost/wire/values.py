"""Values that frames of both directions hold: what JSON has no type for, and how a field is told to the codec."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import attrs

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""
JsonObject = dict[str, Any]
"""A JSON object."""


class Between(NamedTuple):
    """Annotates an int field with its range; a bool is no int."""

    least: int
    most: float
    wanted: str
    """The range in words."""


RegistrationId: TypeAlias = Annotated[int, Between(1, math.inf, "int > 0")]
"""An extension's own number for what it registers, unique in one instance."""
Milliseconds: TypeAlias = Annotated[int, Between(0, 2**53, "int from 0 to 2**53")]
"""A time an extension asks for; bounded so that it fits a float."""


class Absent(enum.Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final[Literal[Absent.ABSENT]] = Absent.ABSENT
"""A field that was left out, where null is a value of its own. Never encoded."""

ALWAYS: Mapping[str, Any] = MappingProxyType({"always": True})
"""Field metadata: encoded even at its default."""
NULL_COUNTS: Mapping[str, Any] = MappingProxyType({"null_counts": True})
"""Field metadata: null is a value, not as good as absent."""


@attrs.frozen
class ErrorDetail:
    """Why something failed."""

    code: str
    """A stable word to branch on."""
    message: str = ""
    """In a sentence."""
