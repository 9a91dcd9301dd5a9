"""Any bytes as a recording for `exthost replay`: what reads it, whatever the format.

What must hold: `UnknownFormat`, or entries; each of them can be sent and written as JSON; however the file is cut into
chunks, they are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
from cli.transcript_texts import CLAUDE, EVENTS, MESSAGES, lines
from fuzz.choices import Choices
from fuzz.hostile import changed, spoiled, write
from fuzz.seeds import keys_of

from trio_exthost.cli.transcripts import Entry, Format
from trio_exthost.cli.transcripts_open import UnknownFormat, open_recording

SAMPLES: tuple[list[dict[str, Any]], ...] = (EVENTS, MESSAGES, CLAUDE)
WORDS = tuple(
    sorted(
        {
            *keys_of([*EVENTS, *MESSAGES, *CLAUDE]),
            "messages",
            "user",
            "assistant",
            "tool",
            "system",
            "tool_use",
            "event",
        }
    )
)
DICTIONARY = tuple(map(write, WORDS))
FORMATS = (None, *Format)


def seeds() -> Iterator[bytes]:
    for sample in SAMPLES:
        yield b"\x00\x00\x00" + lines(sample)
        yield b"\x00\x00\x00" + write({"messages": sample})
    yield b"\x00\x00\x00" + write(MESSAGES)
    yield from (bytes([1, 0, number, number % 3, *range(number, number + 30)]) for number in range(60))


def text(choices: Choices) -> bytes:
    """A recording with something wrong in it: of lines, or one document."""
    sample: Any = list(choices.pick(SAMPLES))
    is_document = choices.below(3) == 0
    for _ in range(choices.below(6)):
        at = choices.below(len(sample))
        sample[at] = (
            changed(sample[at], choices, WORDS, sample) if choices.below(4) else sample[choices.below(len(sample))]
        )
    whole = write({"messages": sample}) if is_document else b"".join(write(each) + b"\n" for each in sample)
    return spoiled(whole, choices) if choices.one_in(3) else whole


def content(data: bytes) -> tuple[bytes, Format | None, int]:
    """The file, the format that was asked for, and the size of a chunk."""
    choices = Choices(data)
    is_made, asked, size = choices.byte() % 2 == 1, choices.pick(FORMATS), choices.pick((1 << 18, 1, 3, 17, 256))
    found = text(choices) if is_made else choices.rest()
    return (found[:20_000] if size < 256 else found), asked, size


def read(file: bytes, asked: Format | None, size: int) -> tuple[Format, list[Entry]] | str:
    try:
        recording = open_recording((file[at : at + size] for at in range(0, len(file), size)), asked)
    except UnknownFormat as exc:
        return str(exc)
    return recording.format, list(recording.entries)


def fuzz_one(data: bytes) -> None:
    file, asked, size = content(data)
    found = read(file, asked, size)
    assert repr(found) == repr(read(file, asked, 1 << 18)), "another cut, another outcome"
    if not isinstance(found, str):
        for entry in found[1]:
            json.dumps(attrs.asdict(entry), allow_nan=False, ensure_ascii=False).encode()
