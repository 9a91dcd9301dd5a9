"""Recordings of a host's events: one JSON object a line, with `event` and what belongs to it, in zot's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    word,
)
from trio_exthost.cli.transcripts_lines import read_values
from trio_exthost.hooks import Event


def event_of(value: Any) -> Mapping[str, Any] | None:
    """The event that a line holds, everything at its top level; None where it holds none.

    Its payload may stand beside `event`, or in an object under `payload`, which may hold `event`, too.
    """
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    event = {**value, **payload} if isinstance(payload, dict) else value
    return event if isinstance(event.get("event"), str) else None


def read_events(chunks: Iterable[bytes]) -> Iterator[Entry]:
    """Entries of a log of events.

    Where a log does not tell when turns begin, one begins with what the model says after a result.
    """
    tells_turns = False
    is_answered = False
    for line in read_values(chunks):
        if isinstance(line, Unreadable):
            yield line
            continue
        event = event_of(line.value)
        if event is None:
            yield Unreadable(line.at, "is no event: it has no `event` that is a text")
            continue
        for entry in _entries(event, line.at):
            tells_turns = tells_turns or isinstance(entry, TurnBegin)
            if isinstance(entry, AssistantText) and is_answered and not tells_turns:
                yield TurnBegin(line.at)
            is_answered = isinstance(entry, RecordedResult) or (is_answered and isinstance(entry, Skipped))
            yield entry


def _entries(event: Mapping[str, Any], at: str) -> Iterator[Entry]:
    name = event["event"]
    if event.get("type", "event") != "event" and str(event["type"]).startswith("event_"):
        # Of a log of all frames: a question about what is told as an event, too.
        yield Skipped(at, str(event["type"]))
        return
    match name:
        case Event.SESSION_START:
            yield ConversationBegin(at)
        case Event.USER_PROMPT_SUBMIT:
            images = event.get("image_count")
            yield UserText(at, word(event.get("text")), images if type(images) is int and images > 0 else 0)
        case "before_agent_start":
            yield SystemText(at, word(event.get("system_prompt")))
        case Event.TURN_START:
            step = event.get("step")
            yield TurnBegin(at, step if type(step) is int else None)
        case Event.ASSISTANT_MESSAGE:
            yield AssistantText(at, word(event.get("text")))
        case Event.TOOL_CALL if isinstance(event.get("tool_name"), str):
            arguments = event.get("tool_args", event.get("tool_args_raw"))
            yield ProposedCall(at, word(event.get("tool_id")), event["tool_name"], arguments_of(arguments))
        case Event.TOOL_RESULT:
            yield _result(event, at)
        case Event.TOOL_CALL:
            yield Unreadable(at, "is a tool_call without a tool_name")
        case _:
            yield Skipped(at, name)


def _result(event: Mapping[str, Any], at: str) -> RecordedResult:
    result = event.get("result")
    body: Mapping[str, Any] = result if isinstance(result, dict) else event
    content = body.get("content", body.get("text", result))
    return RecordedResult(at, word(event.get("tool_id")), blocks_of(content), body.get("is_error") is True)
