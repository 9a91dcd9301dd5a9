"""Tools: the embedder's own, the extensions', and who owns a name now."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import trio

from trio_exthost.errors import CallAborted, PayloadError, UnknownTool
from trio_exthost.runtime.calls import Request, call, outcome_of
from trio_exthost.runtime.results import ToolResult, from_frame
from trio_exthost.wire import from_extension, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session


@attrs.frozen
class Progress:
    """What a running tool says about how far it is."""

    text: str = ""
    """A status line; replaces the one before."""
    fraction: float | None = None
    """How far, 0 to 1."""


@attrs.frozen(eq=False)
class ToolContext:
    """What a tool of the embedder's is told about its call."""

    session: Session
    """The conversation."""
    run: Run | None
    """The run it belongs to, if any."""
    tool_id: str
    """The call's id."""
    origin_extension: str = ""
    """The extension that called it; empty where the model did."""
    chain: tuple[str, ...] = ()
    """Names of the tools that called each other down to this one, the outermost first."""
    send_progress: Callable[[Progress], None] = lambda progress: None  # noqa: ARG005 - nobody listens
    """Tell how far it is; never blocks, the oldest is dropped where nobody reads."""


class HostTool(Protocol):
    """A tool the embedder brings. Any object with these attributes will do."""

    name: str
    description: str
    schema: Mapping[str, Any]

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
        """Do it. What it raises becomes a failed result; `trio.Cancelled` propagates.

        A tool that blocks in a worker thread should pass `abandon_on_cancel=True`: the host promises an end within
        5 s for processes only.
        """


@attrs.frozen
class SimpleTool:
    """A HostTool made of a function."""

    name: str
    """As the model calls it."""
    description: str
    """For the model."""
    schema: Mapping[str, Any]
    """JSON Schema of its arguments."""
    function: Callable[..., Awaitable[ToolResult | str]]
    """Called with the arguments as one dict, and with the context if it takes a second parameter."""

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult | str:
        """Run the function."""
        if len(inspect.signature(self.function).parameters) > 1:
            return await self.function(arguments, context)
        return await self.function(arguments)


@attrs.frozen
class ToolInfo:
    """A tool as the agent offers it to the model."""

    name: str
    """Unique in the session."""
    description: str
    """For the model."""
    schema: Mapping[str, Any]
    """JSON Schema of its arguments."""
    extension: str | None = None
    """Whose it is; None: the embedder's."""
    interactive: bool = False
    """Waits for a person, so it has no reply deadline."""
    exposure: str = ""
    """How it is offered: "" and `direct` to the model at once, `deferred` once activated, `codemode`, `model-only`."""
    output_schema: Any = None
    """JSON Schema of `structured_content`; not enforced."""
    namespace: str = ""
    """Groups tools; the extension's name where it gave none."""
    active: bool = True
    """Whether to offer it to the model now; a deferred one is not, until a tool's result has activated it."""


def info_of_extension_tool(frame: from_extension.RegisterTool, extension: str, is_activated: bool) -> ToolInfo:
    """A registered tool as the agent offers it; `is_activated` where a result has activated it."""
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


@attrs.frozen(eq=False, kw_only=True)
class Invocation:
    """One call of a tool, whoever owns it."""

    session: Session
    tool_id: str
    name: str
    arguments: Mapping[str, Any]
    run: Run | None = None
    origin: str = ""
    chain: tuple[str, ...] = ()
    """Names down to the caller, this tool not included."""
    limit_s: float = math.inf
    """Bound of whoever asks, over the tool's own."""
    send_progress: Callable[[Progress], None] = lambda progress: None  # noqa: ARG005 - nobody listens

    async def invoke(self) -> ToolResult:
        """Run whoever owns the name now.

        Raises:
          UnknownTool: Nobody does.
          CallError: Its extension gave no usable answer.
        """
        host_tool = self.session.host_tools.get(self.name)
        if host_tool is not None:
            return await self._invoke_host_tool(host_tool)
        record = self.session.views.tools.get(self.name)
        if record is None:
            raise UnknownTool(
                f"nobody has a tool {self.name!r}",
                may_have_run=False,
                hint="its extension may have ended: see session.extensions()",
            )
        value = record.registration.value
        return await self._invoke_extension_tool(value.instance, value.descriptor)

    async def _invoke_host_tool(self, tool: HostTool) -> ToolResult:
        context = ToolContext(
            session=self.session,
            run=self.run,
            tool_id=self.tool_id,
            origin_extension=self.origin,
            chain=(*self.chain, self.name),
            send_progress=self.send_progress,
        )
        return ToolResult.of(await tool(dict(self.arguments), context))

    async def _invoke_extension_tool(self, instance: Instance, frame: from_extension.RegisterTool) -> ToolResult:
        if not isinstance(self.arguments, Mapping):
            raise PayloadError(f"arguments of tool {self.name!r} must be an object", extension=instance.name)
        if frame.interactive and not self.session.is_interactive:
            raise CallAborted(
                f"tool {self.name!r} needs a person, and this session has none",
                extension=instance.name,
                may_have_run=False,
            )
        own_s = instance.manifest.exthost.tool_timeout_s or instance.deadlines.tool_s
        own_s = math.inf if frame.interactive else min(own_s, instance.deadlines.tool_maximum_s)
        issued: list[str] = []

        def on_issued(correlation_id: str) -> None:
            issued.append(correlation_id)
            instance.nested.open_parent(correlation_id, (*self.chain, self.name), self.run)

        begun = trio.current_time()
        error: BaseException | None = None
        try:
            answer = await call(
                instance,
                Request(
                    make_frame=lambda id: to_extension.ToolCall(id, self.name, self.arguments),
                    expected=from_extension.ToolResult.TYPE,
                    what=f"tool {self.name!r}",
                    hint="a slow tool can ask for more: exthost.tool_timeout_s in its manifest",
                    on_issued=on_issued,
                    make_cancel=lambda id, _reason, _grace_s: (
                        to_extension.ToolCancel(id) if "tool_cancel" in instance.capabilities else None
                    ),
                ),
                min(own_s, self.limit_s),
            )
        except BaseException as exc:
            error = exc
            raise
        finally:
            for correlation_id in issued:
                instance.nested.close_parent(correlation_id)
            if (instrument := self.session.host.instrument) is not None:
                instrument.call_ended(
                    self.session.id, instance.name, "tool", self.name, outcome_of(error), trio.current_time() - begun
                )
        if answer.activate_tools:
            self.session.activate_tools(answer.activate_tools)
        return from_frame(answer, instance.name, self.name)
