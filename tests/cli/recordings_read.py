"""Recordings as entries, and the one conversation that each of them holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
from cli.transcript_texts import PUSH, WIPE

from trio_exthost.cli.transcripts import (
    AssistantText,
    Entry,
    Format,
    ProposedCall,
    RecordedResult,
    TurnBegin,
    UserText,
)
from trio_exthost.cli.transcripts_open import open_recording
from trio_exthost.wire.from_extension import ContentBlock


def read(data: bytes, format: Format | None = None, step: int = 0) -> list[Entry]:
    return list(open_recording(cut(data, step or len(data) or 1), format).entries)


def cut(data: bytes, step: int) -> Iterator[bytes]:
    return (data[start : start + step] for start in range(0, len(data), step))


def said(entries: list[Entry]) -> list[tuple[Any, ...]]:
    """What is said in a conversation, without places, steps and what one format has and another has not."""
    kept = [
        each for each in entries if isinstance(each, (UserText, TurnBegin, AssistantText, ProposedCall, RecordedResult))
    ]
    plain = [
        attrs.evolve(each, arguments=json.loads(each.arguments))
        if isinstance(each, ProposedCall) and isinstance(each.arguments, str)
        else each
        for each in kept
    ]
    drop = {"at", "step", "images", "is_error"}
    return [
        (type(each), {key: value for key, value in attrs.asdict(each, recurse=False).items() if key not in drop})
        for each in plain
    ]


CONVERSATION = [
    (UserText, {"text": "tidy up"}),
    (TurnBegin, {}),
    (AssistantText, {"text": "the key is sk-0123456789abcdefghij"}),
    (ProposedCall, {"id": "c1", "name": "bash", "arguments": WIPE}),
    (RecordedResult, {"id": "c1", "content": (ContentBlock("text", "no"),)}),
    (TurnBegin, {}),
    (ProposedCall, {"id": "c2", "name": "bash", "arguments": PUSH}),
    (RecordedResult, {"id": "c2", "content": (ContentBlock("text", "done"),)}),
]
