"""Tools that extensions call: the host answers, through the same gates as the model's own calls.

The conditions, in their order, are zot's: it opted in; a name and an object; a parent that still runs; without one, no
call of its own running; no name twice in a chain; at most four deep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import EffectKind
from trio_exthost.errors import PayloadError
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.results import ToolResult, ToolStatus, bounded
from trio_exthost.wire import from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.run import Run


@attrs.define(eq=False)
class _Parent:
    """A tool of the extension's that the host has called and that runs."""

    chain: tuple[str, ...]
    run: Run | None
    handle: int
    """The record that the host has called."""
    scopes: list[trio.CancelScope] = attrs.field(factory=list)


class NestedCalls:
    """The tool calls one instance has asked for."""

    def __init__(self, instance: Instance) -> None:
        """None yet."""
        self._instance = instance
        self._parents: dict[str, _Parent] = {}
        self._running: dict[str, trio.CancelScope] = {}

    def __len__(self) -> int:
        """Calls of tools it has asked for and that run."""
        return len(self._running)

    def open_parent(self, id: str, chain: tuple[str, ...], run: Run | None, handle: int) -> None:
        """The host has called a tool of it, this record: it may name this call as a parent until `close_parent`."""
        self._parents[id] = _Parent(chain, run, handle)

    def close_parent(self, id: str) -> None:
        """That call has ended, and what it had asked for ends with it."""
        for scope in self._parents.pop(id).scopes:
            scope.cancel("the tool call that asked for this has ended")

    def cancel(self, id: str) -> None:
        """It gives one up; an unknown id is ignored."""
        scope = self._running.get(id)
        if scope is not None:
            scope.cancel("the extension gave its call up")

    def start(self, frame: from_extension.CallTool) -> None:
        """Begin it, or answer why not. Never blocks."""
        instance = self._instance
        if not frame.id or frame.id in self._running:
            what = "without an id" if not frame.id else f"with id {frame.id!r:.80}, which is running"
            instance.report(Code.FRAME_ILLEGAL, Severity.WARNING, f"call_tool {what}: ignored")
            return
        problem = self._problem(frame)
        if problem:
            self._answer(frame, ToolResult.error(f"call_tool refused: {problem}", may_have_run=False))
            return
        scope = trio.CancelScope()
        self._running[frame.id] = scope
        parent = self._parents.get(frame.parent_id)
        if parent is not None:
            parent.scopes.append(scope)
        assert instance.nursery is not None
        instance.nursery.start_soon(self._run, frame, scope, parent, name=f"{instance.name} calls {frame.name}")

    def _problem(self, frame: from_extension.CallTool) -> str:
        """The first condition that does not hold, or nothing."""
        instance = self._instance
        if "call_tool" not in instance.capabilities:
            return "the extension did not name the capability call_tool in its hello"
        if not frame.name or not isinstance(frame.args, dict):
            return "it needs a name, and args that are an object"
        if not instance.is_available:
            return f"the extension is {instance.state}"
        if frame.parent_id and frame.parent_id not in self._parents:
            return f"no call with parent_id {frame.parent_id!r:.80} is running"
        if not frame.parent_id and self._parents:
            return "a tool of this extension is running: name its id as parent_id"
        return self._chain_problem(frame)

    def _chain_problem(self, frame: from_extension.CallTool) -> str:
        """What its place among the calls that are running does not allow, or nothing."""
        instance = self._instance
        chain = self._parents[frame.parent_id].chain if frame.parent_id else ()
        if frame.displaced:
            if self._overriding(frame) is None:
                return f"it has no tool {frame.name!r:.80} that could have displaced another"
        elif frame.name in chain:
            return f"{' > '.join((*chain, frame.name))} is a cycle"
        if len(chain) >= instance.limits.nested_depth:
            return f"calls are at most {instance.limits.nested_depth} deep"
        if len(self._running) >= instance.limits.waiting_work:
            return f"{len(self._running)} calls of this extension are running already"
        return ""

    def _overriding(self, frame: from_extension.CallTool) -> int | None:
        """The handle of its own record whose displaced tool is meant: the parent's, or else the last it registered.

        Of one that has handed over, and finishes what it works on, it is the record that stands in the place of its own.
        """
        owner, session = self._instance, self._instance.session
        while owner.successor is not None:
            owner = owner.successor
        parent = self._parents.get(frame.parent_id)
        for record in reversed(session.ledger.records_for_owner(owner.owner)):
            registration = record.registration
            is_meant = parent is None or parent.chain[-1] != frame.name or parent.handle == record.handle
            is_meant = is_meant or owner is not self._instance
            if registration.kind is EffectKind.TOOL and registration.key == frame.name and is_meant:
                return record.handle
        return None

    async def _run(self, frame: from_extension.CallTool, scope: trio.CancelScope, parent: _Parent | None) -> None:
        instance = self._instance
        seconds = instance.deadlines.nested_call_s
        pending = instance.replies.find(frame.parent_id)
        patience = Patience(seconds, within=pending.patience if pending is not None else None)
        result = ToolResult.error("cancelled", ToolStatus.CANCELLED)
        try:
            with scope, patience.scope() as limit:
                async with instance.session.tool_call(
                    f"{instance.name}:{frame.id}",
                    frame.name,
                    frame.args,
                    run=parent.run if parent is not None else None,
                    origin=instance.name,
                    chain=parent.chain if parent is not None else (),
                    within=patience,
                    below=self._overriding(frame) if frame.displaced else None,
                ) as call:
                    if not call.verdict.blocked:
                        await call.confirm()
                    result = await call.execute()
            if limit.cancelled_caught:
                result = ToolResult.error(f"no result within {seconds:g} s", ToolStatus.TIMED_OUT)
        finally:
            del self._running[frame.id]
            if parent is not None:
                parent.scopes.remove(scope)
        self._answer(frame, result)

    def _answer(self, frame: from_extension.CallTool, result: ToolResult) -> None:
        limits = self._instance.limits
        fitting = bounded(result, limits.nested_result_bytes, limits.event_blocks)
        answer = to_extension.ToolResult(frame.id, frame.name, fitting.content, fitting.is_error, fitting.truncated)
        try:
            self._instance.post(answer)
        except PayloadError as exc:
            self._instance.cannot_answer("call_tool", exc)
