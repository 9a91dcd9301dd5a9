"""A recorded conversation played to the extensions of a session: they are told and asked, and nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import attrs
import trio

from trio_exthost.cli.replay_report import Report
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
)
from trio_exthost.errors import PayloadError
from trio_exthost.hooks import Event
from trio_exthost.policy import Verdict
from trio_exthost.runtime.arguments import parse_arguments
from trio_exthost.runtime.bodies import block_body
from trio_exthost.runtime.results import ToolStatus, clean_text
from trio_exthost.runtime.run import Run
from trio_exthost.runtime.session import Session

OPEN_CALLS = 256
"""Calls that wait for their result; beyond, the oldest is taken to have none."""
DRAINED_S = 10.0
"""So long, in the end, for what extensions have not read yet."""
_POLL_S = 0.002


@attrs.frozen
class _OpenCall:
    recorded_id: str
    tool_id: str
    name: str
    arguments: Mapping[str, Any]
    raw: str
    """The arguments as they were written, where they are of no use."""


class Player:
    """Plays entries in order. Made for one session, in which it opens a run for each thing the user says."""

    def __init__(self, session: Session, report: Report) -> None:
        """Play into this session, and count here."""
        self._session = session
        self._report = report
        self._stack = ExitStack()
        self._run: Run | None = None
        self._is_prompted = False  # whether the user has said something in this run
        self._is_counted = False  # whether this conversation is
        self._in_turn = False
        self._steps = 0
        self._messages = 0
        self._calls = 0
        self._open: list[_OpenCall] = []

    async def play(self, entry: Entry) -> None:
        """Tell and ask what belongs to one entry, once the extensions have been sent what was before.

        What is too large for a frame is a problem of the recording, and counted.
        """
        await self.catch_up()
        try:
            match entry:
                case Skipped():
                    self._report.add_skipped(entry.what)
                case Unreadable():
                    self._report.add_problem(entry)
                case ConversationBegin():
                    self._end_conversation()
                case _:
                    self._count(entry)
                    await self._play(entry)
        except PayloadError as exc:
            self._report.add_problem(Unreadable(entry.at, f"cannot be sent: {exc}"))

    async def finish(self) -> None:
        """The recording has ended: so does the run, and extensions get to read what they were told."""
        self._end_conversation()
        with trio.move_on_after(DRAINED_S):
            await self.catch_up()

    async def catch_up(self) -> None:
        """Wait until all that was told is in the pipes, so that nothing is dropped, and a question waits for no events.

        One that reads nothing is stopped by the host, and not waited for any longer.
        """
        await trio.lowlevel.checkpoint()
        names = [row.name for row in self._session.extensions()]
        while any(map(self._is_behind, names)):  # noqa: ASYNC110 - an outbox tells nobody when it is empty
            await trio.sleep(_POLL_S)

    def _is_behind(self, name: str) -> bool:
        running = self._session.loader.running(name)
        return running is not None and running.outbox.waiting_frames > 0

    # --- one entry ---

    def _count(self, entry: Entry) -> None:
        if not self._is_counted:
            self._is_counted = True
            self._report.counts["conversations"] += 1
        self._report.counts[_WORDS[type(entry)]] += 1

    async def _play(self, entry: Entry) -> None:
        match entry:
            case SystemText():
                await self._system(entry)
            case UserText():
                await self._user(entry)
            case TurnBegin():
                await self._turn(entry.at, entry.step)
            case AssistantText():
                await self._assistant(entry)
            case ProposedCall():
                await self._call(entry)
            case RecordedResult():
                await self._result(entry)

    async def _system(self, entry: SystemText) -> None:
        run, session = self._current(), self._session
        body = {
            "system_prompt": entry.text,
            "session_id": session.id,
            "agent_run_id": run.id,
            "cwd": clean_text(str(session.cwd)),
            "provider": session.model.provider,
            "model": session.model.model,
        }
        await self._ask(entry.at, "before_agent_start", body)

    async def _user(self, entry: UserText) -> None:
        if self._is_prompted or self._steps:
            self._end_run()
        run = self._current()
        self._is_prompted = True
        await self._ask(entry.at, "input", {"message": {"role": "user", "content": entry.text}})
        run.prompt_submitted(entry.text, image_count=entry.images)

    async def _turn(self, at: str, step: int | None = None) -> None:
        self._end_turn()
        run = self._current()
        self._in_turn = True
        self._steps += 1
        step = self._steps if step is None else step
        run.turn_id = f"{run.id}-turn-{step}"
        run.emit(Event.TURN_START, {"step": step})
        await self._ask(at, Event.TURN_START, run.about({"step": step}))

    async def _within_turn(self, at: str) -> Run:
        """The run, in which a turn has begun: one that the recording does not tell of begins here."""
        run = self._current()
        if not self._steps:
            self._report.counts["turns"] += 1
            await self._turn(at)
        return run

    async def _assistant(self, entry: AssistantText) -> None:
        run = await self._within_turn(entry.at)
        self._messages += 1
        delta = {"message_id": f"{run.id}-message-{self._messages}", "offset": 0, "text": entry.text, "final": True}
        text = (await self._ask(entry.at, "message_delta", delta)).value["text"]
        verdict = await self._ask(entry.at, Event.ASSISTANT_MESSAGE, run.about({"text": text}))
        text = "" if verdict.blocked else verdict.value["text"]
        await self._ask(entry.at, "message_end", {"message": {"role": "assistant", "content": entry.text}})
        if text:
            run.emit(Event.ASSISTANT_MESSAGE, {"text": text})

    async def _call(self, entry: ProposedCall) -> None:
        run = await self._within_turn(entry.at)
        self._calls += 1
        tool_id = entry.id or f"{self._session.id}-call-{self._calls}"
        arguments, problem = parse_arguments(entry.arguments, self._session.host.config.limits)
        raw = entry.arguments if problem and isinstance(entry.arguments, str) else ""
        self._open.append(_OpenCall(entry.id, tool_id, entry.name, arguments, raw))
        del self._open[:-OPEN_CALLS]
        body = {"tool_id": tool_id, "tool_name": entry.name, "tool_args": dict(arguments)}
        run.emit(Event.TOOL_CALL, body)
        if problem:
            self._report.add_unusable(entry, tool_id, problem)
        else:
            await self._ask(entry.at, Event.TOOL_CALL, body, tool=entry.name, tool_id=tool_id)

    async def _result(self, entry: RecordedResult) -> None:
        self._end_turn()
        call = self._take_open(entry.id)
        if call is None:
            self._report.unpaired_results += 1
            return
        run = self._current()
        content = [block_body(block) for block in entry.content]
        asked = {
            "tool_call": {"id": call.tool_id, "name": call.name},
            "args": dict(call.arguments),
            "result": {"content": content},
            "is_error": entry.is_error,
        }
        await self._ask(entry.at, Event.TOOL_RESULT, asked, tool=call.name, tool_id=call.tool_id)
        told: dict[str, Any] = {"tool_id": call.tool_id, "tool_name": call.name}
        told |= {"tool_args_raw": call.raw} if call.raw else {"tool_args": dict(call.arguments)}
        told |= {"status": str(ToolStatus.FAILED if entry.is_error else ToolStatus.COMPLETED), "executed": True}
        run.emit(Event.TOOL_RESULT, {**told, "result": {"content": content, "is_error": entry.is_error}})

    async def _ask(
        self, at: str, event: str, payload: Mapping[str, Any], *, tool: str = "", tool_id: str = ""
    ) -> Verdict:
        verdict = await self._current().what_if(event, payload)
        self._report.add_verdict(verdict, at, tool=tool, tool_id=tool_id)
        return verdict

    # --- what is open ---

    def _current(self) -> Run:
        """The run that is open; a new one where none is."""
        if self._run is None:
            self._run = self._stack.enter_context(self._session.open_run())
        return self._run

    def _end_turn(self) -> None:
        if self._in_turn and self._run is not None:
            self._run.turn_end()
        self._in_turn = False

    def _end_run(self) -> None:
        self._end_turn()
        self._stack.close()
        self._run, self._is_prompted, self._steps = None, False, 0

    def _end_conversation(self) -> None:
        self._end_run()
        self._open.clear()
        self._is_counted = False

    def _take_open(self, recorded_id: str) -> _OpenCall | None:
        """The oldest open call of this id; of any, where the result has none."""
        for place, call in enumerate(self._open):
            if not recorded_id or call.recorded_id == recorded_id:
                return self._open.pop(place)
        return None


_WORDS: Mapping[type, str] = {
    SystemText: "system_prompts",
    UserText: "prompts",
    TurnBegin: "turns",
    AssistantText: "texts",
    ProposedCall: "calls",
    RecordedResult: "results",
}
"""By the type of an entry, the word under which it is counted."""
