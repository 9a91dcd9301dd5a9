"""Any bytes as a recording that `exthost replay` plays to an extension which refuses, rewrites and asks.

What must hold: nothing but `UnknownFormat` is raised, the extension goes on, and the report can be written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import trio
import trio.testing
from fuzz import target_transcripts
from fuzz.scratch import scratch
from runtime.fakes import Guest, world

from trio_exthost import Limits
from trio_exthost.cli.replay_player import Player
from trio_exthost.cli.replay_report import Report
from trio_exthost.cli.transcripts_open import Recording, UnknownFormat, open_recording

DICTIONARY = target_transcripts.DICTIONARY
LIMITS = Limits(frame_bytes=16_384, event_body_bytes=2000, system_prompt_bytes=2000)
_FOLDER = scratch()


def seeds() -> Iterator[bytes]:
    yield from target_transcripts.seeds()


def fuzz_one(data: bytes) -> None:
    file, asked, _ = target_transcripts.content(data)
    try:
        recording = open_recording([file], asked)
    except UnknownFormat:
        return
    trio.run(play, recording, clock=trio.testing.MockClock(autojump_threshold=0))


async def guard(guest: Guest) -> None:
    """Answers each question in another way than the last."""
    guest.greet(
        events=["session_start", "user_prompt_submit", "turn_start", "turn_end", "tool_call", "tool_result", "assistant_message"],
        intercept=["tool_call", "turn_start", "assistant_message", "before_agent_start"],
    )  # fmt: skip
    number = 0
    while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
        if frame["type"] == "event_intercept":
            number += 1
            answers = (
                {},
                {"block": True, "reason": "no " * number},
                {"modified_args": {"command": "ls", "n": number}},
                {"replace_text": "another"},
                {"system_prompt": "Be kind."},
            )
            guest.send(type="event_intercept_response", id=frame["id"], **answers[number % len(answers)])


async def play(recording: Recording) -> None:
    report = Report()
    async with world(_FOLDER, limits=LIMITS) as (around, host):
        around.add("guard", guard)
        async with host.open_session("replay") as session:
            await session.load_all()
            player = Player(session, report)
            for entry in recording.entries:
                await player.play(entry)
            await player.finish()
            assert [row.state for row in session.extensions()] == ["ready"]
    json.dumps(report.to_json(), allow_nan=False)
