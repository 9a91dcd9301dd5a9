"""What a recorded conversation is made of, whatever wrote it: plain values, in order."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

import attrs

from trio_exthost.wire.from_extension import ContentBlock


class Format(enum.StrEnum):
    """Who wrote the recording."""

    EVENTS = "events"
    """A host of extensions: one event a line, in zot's words."""
    OPENAI = "openai"
    """A client of the OpenAI chat interface: lists of messages, as trajectories of agents hold them."""
    CLAUDE = "claude"
    """Claude Code: its session files."""


@attrs.frozen
class ConversationBegin:
    """Another conversation: what comes now has nothing to do with what was before, and its ids may be the same."""

    at: str
    """Where it stands in the recording: `line 3`, `message 7`. Every entry has this."""


@attrs.frozen
class SystemText:
    """The system prompt."""

    at: str
    text: str


@attrs.frozen
class UserText:
    """What the user said."""

    at: str
    text: str
    images: int = 0
    """Images that came with it; they are not kept."""


@attrs.frozen
class TurnBegin:
    """The model was asked; what it answered comes next."""

    at: str
    step: int | None = None
    """Its number within the request of the user, if the recording has one."""


@attrs.frozen
class AssistantText:
    """What the model said to the user."""

    at: str
    text: str


@attrs.frozen
class ProposedCall:
    """A call of a tool, as the model proposed it."""

    at: str
    id: str
    """The model's id of it; empty where the recording has none."""
    name: str
    arguments: Mapping[str, Any] | str
    """An object, or the text that the model wrote."""


@attrs.frozen
class RecordedResult:
    """What came of a call."""

    at: str
    id: str
    """Of the call; empty where the recording has none: then it belongs to the oldest call that has no result."""
    content: tuple[ContentBlock, ...]
    is_error: bool = False


@attrs.frozen
class Skipped:
    """Something of the format that is no part of a conversation, or that this version does not know."""

    at: str
    what: str
    """Its type, in the recording's word."""


@attrs.frozen
class Unreadable:
    """Something that could not be read; the reading went on behind it."""

    at: str
    why: str


Entry = (
    ConversationBegin
    | SystemText
    | UserText
    | TurnBegin
    | AssistantText
    | ProposedCall
    | RecordedResult
    | Skipped
    | Unreadable
)
"""One of these."""


def word(value: Any) -> str:
    """A text of the recording that names something; empty where it is none."""
    return value if isinstance(value, str) else ""


def text_of(content: Any) -> str:
    """The text of a content: a text, or a list of parts of which those with a `text` count, a line feed between them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        part if isinstance(part, str) else word(part.get("text")) for part in parts if isinstance(part, (str, dict))
    ]
    return "\n".join(text for text in texts if text)


def images_of(content: Any) -> int:
    """How many images are among the parts of a content."""
    parts = content if isinstance(content, list) else []
    return sum(isinstance(part, dict) and part.get("type") in ("image", "image_url") for part in parts)


def blocks_of(content: Any) -> tuple[ContentBlock, ...]:
    """A tool's result as blocks: texts and images; parts of another type are left out."""
    if isinstance(content, str):
        return (ContentBlock("text", content),) if content else ()
    parts = content if isinstance(content, list) else []
    return tuple(block for part in parts if isinstance(part, dict) and (block := _block(part)) is not None)


def _block(part: Mapping[str, Any]) -> ContentBlock | None:
    if part.get("type") == "text":
        return ContentBlock("text", word(part.get("text")))
    if part.get("type") != "image":
        return None
    source = part.get("source")
    if isinstance(source, dict):  # how the Anthropic interface writes it
        return ContentBlock("image", mime_type=word(source.get("media_type")), data=word(source.get("data")))
    return ContentBlock("image", mime_type=word(part.get("mime_type")), data=word(part.get("data")))


def arguments_of(value: Any) -> Mapping[str, Any] | str:
    """Arguments as they were recorded: an object, or a text; what is neither becomes the text that a model would write."""
    if value is None:
        return {}
    return value if isinstance(value, (dict, str)) else json.dumps(value)
