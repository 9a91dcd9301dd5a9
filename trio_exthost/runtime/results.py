"""What tools give back: content blocks, and the result as the agent and its model see it."""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from trio_exthost.wire.from_extension import ContentBlock
from trio_exthost.wire.from_extension import ToolResult as ToolResultFrame

NO_CONTENT = "(the extension returned no content)"
"""Stands where a tool answered without anything to show, as a model takes an empty result for a fault of its own."""


class ToolStatus(enum.StrEnum):
    """How a tool call ended; zot's words."""

    COMPLETED = "completed"
    FAILED = "failed"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD: what a program printed or a model wrote must not end a call."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def text_block(text: str) -> ContentBlock:
    """A block of plain text; lone surrogates become U+FFFD."""
    return ContentBlock(type="text", text=clean_text(text))


@attrs.frozen
class ToolResult:
    """The end of a tool call. Exactly one for each."""

    content: tuple[ContentBlock, ...] = ()
    """What the model is shown, in order."""
    is_error: bool = False
    """Whether the model should take it as a failure."""
    status: ToolStatus = ToolStatus.COMPLETED
    """How it ended."""
    structured_content: Any = None
    """The same as JSON, for programs."""
    details: Mapping[str, Any] = attrs.field(factory=dict)
    """For the transcript: `extension` and `tool` where an extension ran it."""
    activate_tools: tuple[str, ...] = ()
    """Deferred tools to be offered from now on."""
    truncated: bool = False
    """Whether something was cut to fit a limit."""
    may_have_run: bool = True
    """Whether the tool can have had an effect."""

    @property
    def text(self) -> str:
        """All text blocks, a line feed between them."""
        return "\n".join(block.text for block in self.content if block.type == "text")

    @classmethod
    def of(cls, value: object) -> ToolResult:
        """A result from what an embedder's tool may return: a result, a text, a block, or several blocks.

        Raises:
          TypeError: It is none of these.
        """
        if isinstance(value, ToolResult):
            return attrs.evolve(value, content=tuple(map(_clean_block, value.content)))
        if isinstance(value, str):
            return cls((text_block(value),))
        blocks = value if isinstance(value, (list, tuple)) else (value,)
        if all(isinstance(each, ContentBlock) for each in blocks):
            return cls(tuple(map(_clean_block, blocks)))
        raise TypeError(f"a tool returns a ToolResult, a str or content blocks, not {type(value).__name__}")

    @classmethod
    def error(cls, message: str, status: ToolStatus = ToolStatus.FAILED, *, may_have_run: bool = True) -> ToolResult:
        """A failure in words."""
        return cls((text_block(message),), is_error=True, status=status, may_have_run=may_have_run)


def _clean_block(block: ContentBlock) -> ContentBlock:
    text = clean_text(block.text)
    return block if text is block.text else attrs.evolve(block, text=text)


def from_frame(frame: ToolResultFrame, extension: str, tool: str) -> ToolResult:
    """An extension's answer in zot's dialect as a result."""
    return from_blocks(
        frame.content,
        is_error=frame.is_error,
        structured_content=frame.structured_content,
        details={"extension": extension, "tool": tool},
        activate_tools=frame.activate_tools,
    )


def from_blocks(
    content: Iterable[ContentBlock],
    *,
    is_error: bool,
    structured_content: Any,
    details: Mapping[str, Any],
    activate_tools: tuple[str, ...] = (),
) -> ToolResult:
    """An extension's answer as a result: unusable blocks become text that says so, nothing becomes a placeholder."""
    blocks: list[ContentBlock] = []
    for block in content:
        if block.type == "text":
            if block.text:
                blocks.append(block)
        elif block.type == "image":
            problem = _image_problem(block)
            is_error = is_error or bool(problem)
            blocks.append(text_block(f"[{problem}]") if problem else block)
        else:
            blocks.append(text_block(f"[a content block of unknown type {block.type!r} was left out]"))
    return ToolResult(
        content=tuple(blocks) or (text_block(NO_CONTENT),),
        is_error=is_error,
        status=ToolStatus.FAILED if is_error else ToolStatus.COMPLETED,
        structured_content=structured_content,
        details=details,
        activate_tools=activate_tools,
    )


def _image_problem(block: ContentBlock) -> str:
    """Why an image cannot be used, or nothing."""
    try:
        base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return "an image whose data is not base64 was left out"
    return "" if block.data else "an image without data was left out"


def bounded(result: ToolResult, max_bytes: int, max_blocks: int) -> ToolResult:
    """The result cut to fit: text at a character boundary, images that do not fit left out whole; marked `truncated`."""
    room = max_bytes
    blocks: list[ContentBlock] = []
    is_cut = len(result.content) > max_blocks
    for block in result.content[:max_blocks]:
        size = len(block.text.encode("utf-8", "surrogatepass")) + len(block.data) + len(block.mime_type)
        if size <= room:
            blocks.append(block)
            room -= size
            continue
        is_cut = True
        if block.type == "text" and room > 0:
            blocks.append(attrs.evolve(block, text=cut_text(block.text, room)))
            room = 0
    return attrs.evolve(result, content=tuple(blocks), truncated=True) if is_cut else result


def cut_text(text: str, max_bytes: int) -> str:
    """The longest beginning of `text` whose UTF-8 fits into `max_bytes`."""
    return text.encode("utf-8", "surrogatepass")[:max_bytes].decode("utf-8", "ignore")
