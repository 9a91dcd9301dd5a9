"""What hooks are told and asked about a tool while it runs: its begin, its progress, its end, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import read_tool_answer
from trio_exthost.errors import MalformedReply, PayloadError
from trio_exthost.hooks import Batch, HookEvent
from trio_exthost.runtime.bodies import fitting, result_body
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.results import ToolResult, ToolStatus, clean_text, cut_text, from_blocks
from trio_exthost.runtime.tools import Progress
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.toolcall import ToolCall


class Execution:
    """One run of a tool, as hooks see it."""

    def __init__(self, call: ToolCall) -> None:
        """Of this call; its arguments as they stand."""
        self._call = call
        self._session = call.session
        self._about: dict[str, Any] = {"tool_call": {"id": call.tool_id, "name": call.name}, "tool_name": call.name}
        self._progress: dict[str, Any] = {}
        run_id = call.run.id if call.run is not None else ""
        self._stream = f"tool call {run_id} {call.tool_id}"  # another run may have a call of that id
        self._is_over = False

    def _tell(self, event: HookEvent, payload: dict[str, Any], *, stream: str = "") -> None:
        if not self._session.is_closed:
            self._session.observing.tell(
                event, {**self._about, **payload}, run=self._call.run, tool_call_id=self._call.tool_id, stream=stream
            )

    def begun(self) -> None:
        """Tells `tool_execution_start`."""
        self._tell(HookEvent.TOOL_EXECUTION_START, {"args": self._call.arguments})

    def progressed(self, progress: Progress) -> None:
        """Tells `tool_execution_update`: all that is known so far, its output cut to what an event may hold."""
        if self._is_over or not self._session.views.observers.get(HookEvent.TOOL_EXECUTION_UPDATE):
            return
        known, limit = self._progress, self._session.host.config.limits.event_body_bytes
        if progress.text is not None:
            known["text"] = cut_text(clean_text(progress.text), limit)
        if progress.fraction is not None:
            known["fraction"] = progress.fraction
        if progress.output and not known.get("truncated"):
            output = known.get("output", "") + clean_text(progress.output)
            known["output"] = cut_text(output, limit)
            if len(known["output"]) < len(output):
                known["truncated"] = True
        self._tell(HookEvent.TOOL_EXECUTION_UPDATE, {"update": dict(known)}, stream=self._stream)

    def ended(self, result: ToolResult) -> None:
        """Tells `tool_execution_end`; also of one that was cancelled."""
        self._is_over = True  # a tool may go on telling of its progress
        self._session.observing.streams.end(self._stream)
        body = {"result": result_body(result), "is_error": result.is_error}
        self._tell(HookEvent.TOOL_EXECUTION_END, dict(fitting(body, self._session.host.config.limits)))

    async def transformed(self, result: ToolResult) -> ToolResult:
        """The result as the hooks of `tool_result` leave it; as it is where it does not fit into a frame."""
        try:
            return await self._transformed(result)
        except PayloadError as exc:
            message = f"tool_result: nobody was asked about the result of {self._call.name!r}: {exc.message}"
            self._session.host.report(Code.POLICY_DECIDED, Severity.WARNING, message, session=self._session)
            return result

    async def _transformed(self, result: ToolResult) -> ToolResult:
        session, call = self._session, self._call
        views = session.views
        if not views.asked(HookEvent.TOOL_RESULT, **where(call.run)) and not views.observers.get(HookEvent.TOOL_RESULT):
            await trio.lowlevel.checkpoint()
            return result
        body = result_body(result)
        if result.structured_content is not None:
            body["structured_content"] = result.structured_content
        verdict = await session.ask(
            Occasion(
                event=HookEvent.TOOL_RESULT.value,
                payload={
                    "tool_call": self._about["tool_call"],
                    "args": call.arguments,
                    "result": body,
                    "is_error": result.is_error,
                },
                run=call.run,
                tool_call_id=call.tool_id,
                check=_check_result,
            )
        )
        value = verdict.value
        if value["result"] == body and value["is_error"] == result.is_error:
            return result
        answer = read_tool_answer(value["result"])
        replaced = from_blocks(
            answer.content,
            is_error=bool(value["is_error"]),
            structured_content=answer.structured_content,
            details=result.details,
        )
        is_as_before = replaced.is_error == result.is_error
        return attrs.evolve(
            replaced,
            status=result.status if is_as_before else ToolStatus.FAILED if replaced.is_error else ToolStatus.COMPLETED,
            activate_tools=result.activate_tools,
            may_have_run=result.may_have_run,
        )


def _check_result(member: HookMember, batch: Batch) -> None:
    """Refuse a replacement that is no result of a tool."""
    if batch.primary is not None:
        try:
            read_tool_answer(batch.primary.fields["result"])
        except ValueError as exc:
            raise MalformedReply(f"replace_tool_result: {exc}", extension=member.name) from exc
