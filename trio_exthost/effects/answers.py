"""What an `invoke_result` carries as its value: the answer of a tool or of a command, checked."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from trio_exthost.wire.from_extension import ContentBlock

T = TypeVar("T")


@attrs.frozen
class ToolAnswer:
    """The value of a tool's answer."""

    content: tuple[ContentBlock, ...]
    """What the model is shown, in order."""
    is_error: bool = False
    """Whether the model should take it as a failure."""
    structured_content: Any = None
    """The same as JSON, for programs; checked against the tool's result schema."""
    details: Mapping[str, Any] = attrs.field(factory=dict)
    """For the transcript."""


class CommandStatus(enum.StrEnum):
    """How a command ended."""

    SUCCESS = "success"
    """It did what it was asked to."""
    REJECTED = "rejected"
    """It would not."""
    CANCELLED = "cancelled"
    """It was given up."""


@attrs.frozen
class CommandAnswer:
    """The value of a command's answer."""

    status: str
    """A `CommandStatus`."""
    message: str = ""
    """For the user."""
    data: Any = None
    """For programs; of a success only."""
    code: str = ""
    """Why not, as a word; of the other two only."""


def read_tool_answer(value: object) -> ToolAnswer:
    """The value of a tool's answer.

    Raises:
      ValueError: It is not one; says where and why.
    """
    return _read(ToolAnswer, value)


def read_command_answer(value: object) -> CommandAnswer:
    """The value of a command's answer.

    Raises:
      ValueError: It is not one; says where and why.
    """
    answer = _read(CommandAnswer, value)
    if answer.status not in set(CommandStatus):
        raise ValueError(f"$.status: {answer.status!r:.80} is none of {', '.join(CommandStatus)}")
    return answer


def _read(kind: type[T], value: object) -> T:
    from trio_exthost.wire import structuring  # noqa: PLC0415 - cattrs, which the first codec pays for

    if not isinstance(value, dict):
        raise ValueError(f"$: expected object, got {'null' if value is None else type(value).__name__}")  # noqa: TRY004
    try:
        return structuring.structure(kind, exact=True)(value)  # type: ignore[no-any-return]
    except Exception as exc:  # noqa: BLE001 - cattrs raises groups of what the hooks raised; one error leaves here
        raise ValueError(structuring.explain(exc)) from None
