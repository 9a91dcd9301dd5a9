"""Running a tool: who owns its name now, and what the embedder's own are told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import EffectKind, EffectRecord, ToolPermission
from trio_exthost.errors import DisposedHandle, GuardAbsent, UnknownTool
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.results import ToolResult
from trio_exthost.runtime.tools import HostTool, Progress, ToolContext

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session


def owner_of_tool(session: Session, name: str, run: Run | None) -> HostTool | EffectRecord:
    """Who serves a tool now, seen from a run.

    Raises:
      UnknownTool: Nobody.
      GuardAbsent: The name is kept for an extension that does not serve it now.
    """
    record = session.ledger.active(EffectKind.TOOL, name, **where(run))
    session.reserved.check(name, record, **where(run))
    host_tool = session.host_tools.get(name)
    if record is not None and (host_tool is None or record.registration.override):
        return record
    if host_tool is not None:
        return host_tool
    raise UnknownTool(
        f"nobody has a tool {name!r}",
        may_have_run=False,
        hint="its extension may have ended: see session.extensions()",
    )


def displaced_by(session: Session, handle: int, name: str) -> HostTool | EffectRecord:
    """What a record's override displaced: the record below it, or the embedder's own tool.

    Raises:
      UnknownTool: It displaced nothing.
    """
    try:
        below = session.ledger.below(handle)
    except DisposedHandle:
        raise UnknownTool(f"the override of tool {name!r} that this belongs to is gone", may_have_run=False) from None
    owner = below if below is not None else session.host_tools.get(name)
    if owner is None:
        raise UnknownTool(f"there was no tool {name!r} before this extension's own", may_have_run=False)
    return owner


def where(run: Run | None) -> dict[str, str | None]:
    """The run and request one looks from, as the ledger wants them."""
    return {} if run is None else {"run_id": run.id, "request_id": run.request_id}


def permission_of(session: Session, name: str, run: Run | None) -> ToolPermission:
    """The permission class of whoever serves a tool now; ALLOW where nobody does, as the call says so by itself."""
    try:
        owner = owner_of_tool(session, name, run)
    except (UnknownTool, GuardAbsent):
        return ToolPermission.ALLOW
    return owner.registration.value.descriptor.permission if isinstance(owner, EffectRecord) else ToolPermission.ALLOW


def _nobody_listens(_progress: Progress) -> None:
    """Progress of a call that nobody watches."""


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
    within: Patience | None = None
    """Patience of whoever asks, over the tool's own."""
    below: int | None = None
    """Handle of the record whose displaced tool is meant; None: whoever is in force."""
    send_progress: Callable[[Progress], None] = _nobody_listens

    def patience(self, idle_s: float, total_s: float = math.inf) -> Patience:
        """How long its extension is waited for: so long, and no longer than whoever asks has left."""
        if self.within is not None:
            total_s = min(total_s, self.within.left_s)
        return Patience(idle_s, total_s, within=self.within)

    async def invoke(self) -> ToolResult:
        """Run whoever owns the name now.

        Raises:
          UnknownTool: Nobody does.
          GuardAbsent: It is kept for an extension that is not there.
          CallError: Its extension gave no usable answer.
        """
        if self.below is None:
            owner = owner_of_tool(self.session, self.name, self.run)
        else:
            owner = displaced_by(self.session, self.below, self.name)
        if isinstance(owner, EffectRecord):
            result: ToolResult = await owner.registration.value.descriptor.run(self, owner)
            return result
        return await self._run_host_tool(owner)

    async def _run_host_tool(self, tool: HostTool) -> ToolResult:
        context = ToolContext(
            session=self.session,
            run=self.run,
            tool_id=self.tool_id,
            origin_extension=self.origin,
            chain=(*self.chain, self.name),
            send_progress=self.send_progress,
        )
        return ToolResult.of(await tool(dict(self.arguments), context))
