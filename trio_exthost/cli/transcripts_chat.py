"""Recordings in the OpenAI chat format: lists of messages with `tool_calls`.

Read are a list, an object that holds one under `messages`, a list of such objects or lists, and any of these, or one
message, a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trio_exthost.cli.transcripts import (
    AssistantText,
    ConversationBegin,
    Entry,
    ProposedCall,
    RecordedResult,
    Skipped,
    SystemText,
    TurnBegin,
    Unreadable,
    UserText,
    arguments_of,
    blocks_of,
    images_of,
    text_of,
    word,
)
from trio_exthost.cli.transcripts_document import KEY, DocumentBegin, Fault, split_items
from trio_exthost.cli.transcripts_json import NotJson, decode
from trio_exthost.cli.transcripts_lines import read_values


def read_chat_lines(chunks: Iterable[bytes]) -> Iterator[Entry]:
    """Entries of a file with one conversation, or one message, a line."""
    for line in read_values(chunks):
        if isinstance(line, Unreadable):
            yield line
        else:
            yield from _item(line.value, line.at)


def read_chat_document(chunks: Iterable[bytes]) -> Iterator[Entry]:
    """Entries of a file that is one JSON document, or several one after the other."""
    number = 0
    for piece in split_items(chunks):
        number += isinstance(piece, bytes)
        at = f"message {number if isinstance(piece, bytes) else number + 1}"
        if isinstance(piece, DocumentBegin):
            yield ConversationBegin(at)
        elif isinstance(piece, Fault):
            yield Unreadable(at, piece.why)
        else:
            try:
                yield from _item(decode(piece), at)
            except NotJson as exc:
                yield Unreadable(at, str(exc))


def _item(value: Any, at: str) -> Iterator[Entry]:
    """What one line or one item of a list holds: a message, or a conversation."""
    try:
        messages = messages_of(value)
    except NotJson as exc:
        yield Unreadable(at, f"{KEY} {exc}")
        return
    if messages is None:
        yield from _message(value, at)
        return
    yield ConversationBegin(at)
    for number, message in enumerate(messages, 1):
        yield from _message(message, f"{at}, message {number}")


def messages_of(value: Any) -> list[Any] | None:
    """The list of messages that a value is or holds, be it as a text that is JSON; None where it is no conversation.

    Raises:
      NotJson: It holds a text that is none.
    """
    held = value.get(KEY) if isinstance(value, dict) else value
    if isinstance(held, str) and isinstance(value, dict):
        held = decode(held.encode())
    return held if isinstance(held, list) else None


def _message(message: Any, at: str) -> Iterator[Entry]:
    if not isinstance(message, dict):
        yield Unreadable(at, "is no message: no object")
        return
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            yield SystemText(at, text_of(content))
        case "user":
            yield UserText(at, text_of(content), images_of(content))
        case "assistant":
            yield TurnBegin(at)
            # A model that refuses says why in a field, or in a part, of its own.
            if text := text_of(content) or word(message.get("refusal")) or _refusal_in(content):
                yield AssistantText(at, text)
            yield from _calls(message, at)
        case "tool" | "function":
            yield RecordedResult(at, word(message.get("tool_call_id")), blocks_of(content))
        case str(role):
            yield Skipped(at, f"role {role}")
        case _:
            yield Unreadable(at, "is no message: no role")


def _refusal_in(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "\n".join(word(part.get("refusal")) for part in parts if isinstance(part, dict))


def _calls(message: dict[str, Any], at: str) -> Iterator[Entry]:
    proposed = message.get("tool_calls") or []
    if message.get("function_call") is not None:  # how it was written before there were several at a time
        proposed = [{"function": message["function_call"]}]
    if not isinstance(proposed, list):
        yield Unreadable(at, "has tool_calls that are no list")
        return
    for place, call in enumerate(proposed):
        function = call.get("function") if isinstance(call, dict) else None
        custom = call.get("custom") if isinstance(call, dict) else None
        if isinstance(custom, dict) and isinstance(custom.get("name"), str):
            # Its input is a text without a schema; extensions see arguments, which are an object.
            yield ProposedCall(at, word(call.get("id")), custom["name"], {"input": custom.get("input")})
        elif isinstance(function, dict) and isinstance(function.get("name"), str):
            yield ProposedCall(at, word(call.get("id")), function["name"], arguments_of(function.get("arguments")))
        else:
            yield Unreadable(at, f"has no name in tool_calls[{place}]")
