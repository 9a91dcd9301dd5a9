"""Recordings of Claude Code: its session files, one JSON object a line.

The format is not documented by its makers; what is read here is what its files have in common. A line has a `type`; that of
a `user` or `assistant` line holds a message as the Anthropic interface has them, whose content is a text or blocks. Each
block of one answer of the model may stand in a line of its own, with the message's id again. All other types are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trio_exthost.cli.transcripts import (
    AssistantText,
    Entry,
    ProposedCall,
    RecordedResult,
    Skipped,
    TurnBegin,
    Unreadable,
    UserText,
    arguments_of,
    blocks_of,
    images_of,
    word,
)
from trio_exthost.cli.transcripts_lines import read_values

_OF_THE_PROGRAM = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Marks of `user` lines that the user did not write."""


def read_claude(chunks: Iterable[bytes]) -> Iterator[Entry]:
    """Entries of a session file. What sub-agents did in it (`isSidechain`) counts, what they were told does not."""
    answers: dict[bool, str] = {}  # the id of the newest answer, of the agent and of its sub-agents
    for line in read_values(chunks):
        if isinstance(line, Unreadable):
            yield line
            continue
        kind = line.value.get("type") if isinstance(line.value, dict) else None
        if not isinstance(kind, str):
            yield Unreadable(line.at, "has no `type` that is a text")
        elif kind not in ("user", "assistant"):
            yield Skipped(line.at, kind)
        elif not isinstance(message := line.value.get("message"), dict):
            yield Unreadable(line.at, f"is a line of type {kind} without a message")
        elif kind == "user":
            yield from _said_to_model(line.value, message, line.at)
        else:
            is_side = line.value.get("isSidechain") is True
            answer = word(message.get("id"))
            if not answer or answer != answers.get(is_side):
                yield TurnBegin(line.at)
            answers[is_side] = answer
            yield from _said_by_model(message, line.at)


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _said_by_model(message: Mapping[str, Any], at: str) -> Iterator[Entry]:
    for block in _blocks(message):
        match block.get("type"):
            case "text":
                if text := word(block.get("text")):
                    yield AssistantText(at, text)
            case "tool_use" if isinstance(block.get("name"), str):
                yield ProposedCall(at, word(block.get("id")), block["name"], arguments_of(block.get("input")))
            case "tool_use":
                yield Unreadable(at, "has a tool_use without a name")
            case kind:
                yield Skipped(at, f"block {word(kind) or 'without a type'}")


def _said_to_model(line: Mapping[str, Any], message: Mapping[str, Any], at: str) -> Iterator[Entry]:
    """Results of tools first, as they belong to what was before; then what the user says."""
    texts: list[str] = []
    blocks = _blocks(message)
    for block in blocks:
        match block.get("type"):
            case "tool_result":
                content = blocks_of(block.get("content"))
                yield RecordedResult(at, word(block.get("tool_use_id")), content, block.get("is_error") is True)
            case "text":
                texts.append(word(block.get("text")))
            case "image":
                """Counted below."""
            case kind:
                yield Skipped(at, f"block {word(kind) or 'without a type'}")
    images = images_of(blocks)
    if not any(texts) and not images:
        return
    mark = next((mark for mark in _OF_THE_PROGRAM if line.get(mark) is True), None)
    if mark is not None:
        yield Skipped(at, f"user {mark}")
    elif line.get("isSidechain") is True:
        yield Skipped(at, "user isSidechain")
    else:
        yield UserText(at, "\n".join(filter(None, texts)), images)
