"""Tools of extensions: how those of each dialect are offered and run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import trio

from trio_exthost.effects import EffectRecord, Tool, ToolPermission, read_tool_answer
from trio_exthost.errors import CallAborted, CallTimedOut, InvalidArguments, MalformedReply, PayloadError
from trio_exthost.runtime.calls import Request, call, outcome_of
from trio_exthost.runtime.invocation import Invocation
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.long_results import shortened
from trio_exthost.runtime.results import ToolResult, ToolStatus, cut_text, from_blocks, from_frame
from trio_exthost.runtime.tool_limits import hint_of, seconds_of
from trio_exthost.runtime.tools import Progress, ToolContext, ToolInfo
from trio_exthost.wire import effects_from_extension, from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

GRACE_S = 1.0
"""After its deadline and `cancel`, so long for what a tool has by then; its answer is kept as a partial result."""


@attrs.frozen(eq=False)
class ExtensionTool:
    """A registered tool as an object like the agent's own (a `HostTool`); `Registrations.merge_tools` makes it."""

    record: EffectRecord
    """What was registered."""

    @property
    def info(self) -> ToolInfo:
        """As the agent offers it."""
        registration = self.record.registration
        info: ToolInfo = registration.value.descriptor.info(self.record.owner.extension_id, is_activated=True)
        return info

    @property
    def name(self) -> str:
        """As the model calls it."""
        return self.record.registration.key

    @property
    def description(self) -> str:
        """For the model."""
        return self.info.description

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of its arguments."""
        return self.info.schema

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Run it, without events, interceptors or confirmation.

        Raises:
          DisposedHandle: The extension has taken it back since, or is gone.
          CallError: As `Session.call_tool`.
        """
        session = context.session
        record = session.ledger.record(self.record.handle)
        invocation = Invocation(
            session=session,
            tool_id=context.tool_id,
            name=self.name,
            arguments=arguments,
            run=context.run,
            origin=context.origin_extension,
            chain=context.chain,
            send_progress=context.send_progress,
        )
        result: ToolResult = await record.registration.value.descriptor.run(invocation, record)
        return result


NOTE_COST = 64
"""Bytes that each piece of output counts beside its text: a million empty ones are not free."""


class ToolOffer(Protocol):
    """A tool that an extension has registered, in whatever dialect; held in its record."""

    @property
    def permission(self) -> ToolPermission:
        """Whether a call runs as it is, needs a person's yes, or never runs."""

    def info(self, extension: str, *, is_activated: bool) -> ToolInfo:
        """As the agent offers it; `is_activated` where a result has activated it."""

    async def run(self, invocation: Invocation, record: EffectRecord) -> ToolResult:
        """Run it. Raises as `Invocation.invoke`."""


@attrs.frozen
class ZotTool:
    """A tool registered with zot's `register_tool`."""

    frame: from_extension.RegisterTool
    permission: ToolPermission = ToolPermission.ALLOW

    def info(self, extension: str, *, is_activated: bool) -> ToolInfo:
        """See `ToolOffer`."""
        frame = self.frame
        exposure = frame.exposure or ("deferred" if frame.deferred else "")
        return ToolInfo(
            name=frame.name,
            description=frame.description,
            schema=frame.schema,
            extension=extension,
            interactive=frame.interactive,
            exposure=exposure,
            output_schema=frame.output_schema,
            namespace=frame.namespace or extension,
            active=exposure != "deferred" or is_activated,
        )

    async def run(self, invocation: Invocation, record: EffectRecord) -> ToolResult:
        """See `ToolOffer`."""
        instance: Instance = record.registration.value.instance
        name = self.frame.name
        if not isinstance(invocation.arguments, Mapping):
            raise PayloadError(f"arguments of tool {name!r} must be an object", extension=instance.name)
        if self.frame.interactive and not invocation.session.is_interactive:
            raise CallAborted(
                f"tool {name!r} needs a person, and this session has none", extension=instance.name, may_have_run=False
            )
        own_s = math.inf if self.frame.interactive else seconds_of(instance)
        with _told(invocation, record) as on_issued:
            answer: from_extension.ToolResult = await call(
                instance,
                Request(
                    make_frame=lambda id: to_extension.ToolCall(id, name, invocation.arguments),
                    expected=from_extension.ToolResult.TYPE,
                    what=f"tool {name!r}",
                    hint=hint_of(instance),
                    on_issued=on_issued,
                    make_cancel=lambda id, reason, _grace_s: (
                        # At a shutdown its answer still counts, and zot's protocol knows no partial one.
                        to_extension.ToolCancel(id)
                        if "tool_cancel" in instance.capabilities and reason != "shutdown"
                        else None
                    ),
                ),
                invocation.patience(own_s),
            )
        if answer.activate_tools:
            invocation.session.activate_tools(answer.activate_tools)
        return await shortened(from_frame(answer, instance.name, name), instance, name)


@attrs.frozen
class EffectTool:
    """A tool registered in the effect dialect."""

    descriptor: Tool

    @property
    def permission(self) -> ToolPermission:
        """See `ToolOffer`."""
        return self.descriptor.permission

    def info(self, extension: str, *, is_activated: bool) -> ToolInfo:  # noqa: ARG002 - zot's own notion
        """See `ToolOffer`."""
        tool = self.descriptor
        schema = tool.input_schema.raw
        return ToolInfo(
            name=tool.name,
            description=tool.description,
            schema=schema if isinstance(schema, dict) else {} if schema else {"not": {}},
            extension=extension,
            output_schema=tool.result_schema.raw if tool.result_schema is not None else None,
            namespace=extension,
            label=tool.label,
            permission=tool.permission,
        )

    async def run(self, invocation: Invocation, record: EffectRecord) -> ToolResult:
        """See `ToolOffer`."""
        instance: Instance = record.registration.value.instance
        tool = self.descriptor
        if tool.permission is ToolPermission.BLOCK:
            raise CallAborted(
                f"tool {tool.name!r} is registered as one that is never run",
                extension=instance.name,
                may_have_run=False,
                code="blocked",
            )
        if fault := tool.input_schema.explain(invocation.arguments):
            raise InvalidArguments(f"arguments of tool {tool.name!r}: {fault}", extension=instance.name)
        maximum_s = instance.deadlines.tool_maximum_s
        output = _Output(invocation.send_progress, instance.limits.nested_result_bytes)
        with _told(invocation, record) as on_issued:
            try:
                result: ToolResult = await invoke(
                    instance,
                    Invoked(
                        record=record,
                        event="tool",
                        payload={
                            "tool_call_id": invocation.tool_id,
                            "name": tool.name,
                            "arguments": invocation.arguments,
                        },
                        what=f"tool {tool.name!r}",
                        read=lambda value: self._read(value, instance),
                        run=invocation.run,
                        tool_call_id=invocation.tool_id,
                        hint=f"progress restarts its limit, but not the {maximum_s:g} s in all; {hint_of(instance)}",
                        grace_s=GRACE_S,
                        on_issued=on_issued,
                        on_progress=output.take,
                    ),
                    invocation.patience(seconds_of(instance), maximum_s),
                )
            except CallTimedOut as exc:
                if not isinstance(exc.partial, ToolResult):
                    raise
                result = attrs.evolve(exc.partial, is_error=True, status=ToolStatus.TIMED_OUT)
        return await shortened(result, instance, tool.name)

    def _read(self, value: Any, instance: Instance) -> ToolResult:
        """The result in an answer's value; raises where the schema of the tool's own does not allow it."""
        tool = self.descriptor
        try:
            answer = read_tool_answer(value)
        except ValueError as exc:
            raise MalformedReply(f"the answer of tool {tool.name!r}: {exc}", extension=instance.name) from None
        if tool.result_schema is not None and not answer.is_error:
            fault = tool.result_schema.explain(answer.structured_content)
            if fault:
                raise MalformedReply(
                    f"the answer of tool {tool.name!r}: structured_content does not match result_schema: {fault}",
                    extension=instance.name,
                )
        return from_blocks(
            answer.content,
            is_error=answer.is_error,
            structured_content=answer.structured_content,
            details={**answer.details, "extension": instance.name, "tool": tool.name},
        )


class _Output:
    """Passes progress on; of output only so much, as what is appended is never dropped later."""

    def __init__(self, send: Callable[[Progress], None], room: int) -> None:
        self._send = send
        self._room = room

    def take(self, frame: effects_from_extension.Progress) -> None:
        output = cut_text(frame.output, max(self._room, 0))
        self._room -= len(output.encode()) + NOTE_COST if output else 0
        fraction = None if frame.fraction is None else min(max(frame.fraction, 0.0), 1.0)
        self._send(Progress(frame.text, fraction, output))


@contextmanager
def _told(invocation: Invocation, record: EffectRecord) -> Iterator[Callable[[str], None]]:
    """While a tool of an extension runs it may name the call as the parent of its own; then instruments are told."""
    instance: Instance = record.registration.value.instance
    issued: list[str] = []

    def on_issued(correlation_id: str) -> None:
        issued.append(correlation_id)
        chain = (*invocation.chain, invocation.name)
        instance.nested.open_parent(correlation_id, chain, invocation.run, record.handle)

    begun = trio.current_time()
    error: BaseException | None = None
    try:
        yield on_issued
    except BaseException as exc:  # also a cancellation: instruments are told how it ended, whichever way
        error = exc
        raise
    finally:
        for correlation_id in issued:
            instance.nested.close_parent(correlation_id)
        invocation.session.host.books.outcomes.call_ended(
            invocation.session.id,
            instance.name,
            "tool",
            invocation.name,
            outcome_of(error),
            trio.current_time() - begun,
        )
