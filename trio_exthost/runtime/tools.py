"""Tools as the embedder sees them: its own, and what it can offer to the model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from trio_exthost.effects import ToolPermission
from trio_exthost.runtime.results import ToolResult

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session


@attrs.frozen
class Progress:
    """What a running tool says about how far it is."""

    text: str | None = None
    """A status line; replaces the one before. None keeps it."""
    fraction: float | None = None
    """How far, 0 to 1."""
    output: str = ""
    """More of its output, to be appended to what came before."""


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

    @property
    def name(self) -> str:
        """As the model calls it."""

    @property
    def description(self) -> str:
        """For the model."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of its arguments."""

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
    label: str = ""
    """For people; empty where there is none."""
    permission: ToolPermission = ToolPermission.ALLOW
    """Whether a call of it runs as it is, needs a person's yes, or never runs."""
    reserved_for: str = ""
    """The extension that has to serve it and is not there: a call is refused. Empty: it can be called."""
