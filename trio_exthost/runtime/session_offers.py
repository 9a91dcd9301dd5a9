"""What extensions offer in a session now: tools and commands as snapshots with a version; `Session` has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.effects import EffectKind, EffectLedger, EffectOwner, EffectRecord
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.tools import HostTool, ToolInfo

if TYPE_CHECKING:
    from trio_exthost.runtime.commands import CommandInfo
    from trio_exthost.runtime.guards import ReservedNames
    from trio_exthost.runtime.host import Host
    from trio_exthost.runtime.registrations import Registrations
    from trio_exthost.runtime.run import Run


class SessionOffers(ABC):
    """The tools and commands of one session."""

    host: Host
    host_tools: dict[str, HostTool]
    ledger: EffectLedger
    registrations: Registrations
    reserved: ReservedNames

    def __init__(self) -> None:
        """As nobody has registered anything."""
        self._version = 1
        self._changed = trio.Event()
        self._activated: set[int] = set()  # handles of deferred tools that a result has activated

    @property
    @abstractmethod
    def is_closed(self) -> bool:
        """As `Session.is_closed`."""

    @abstractmethod
    def tell_client(self, callback: str, *arguments: Any) -> bool:
        """As `Session.tell_client`."""

    @property
    def version(self) -> int:
        """Grows with every change of tools, commands or states of extensions."""
        return self._version

    async def wait_changed(self, version: int) -> int:
        """Wait until `version` is not the session's any more; the new one. At once if it is not."""
        await trio.lowlevel.checkpoint()
        while self._version == version:
            await self._changed.wait()
        return self._version

    def tools(self, run: Run | None = None) -> tuple[ToolInfo, ...]:
        """Every tool there is now, seen from a run if one is given.

        The embedder's in their order, those an extension may override replaced where they stand, then the extensions' in
        order of acceptance. A name that is kept for an extension which is not there is listed, not `active`, with its
        `reserved_for`.
        """
        own = [(tool.name, ToolInfo(tool.name, tool.description, tool.schema)) for tool in self.host_tools.values()]

        def offer(record: EffectRecord) -> ToolInfo:
            info: ToolInfo = record.registration.value.descriptor.info(
                record.owner.extension_id, is_activated=record.handle in self._activated
            )
            return info

        offered = self.registrations.merge(own, offer, **where(run))
        infos = {info.name: info for info in offered.tools}
        for name, info in own:
            if name in offered.reserved:
                keepers = " and ".join(self.reserved.keepers(name))
                infos[name] = attrs.evolve(info, active=False, reserved_for=keepers)
        order = {name: place for place, (name, _) in enumerate(own)}
        return tuple(sorted(infos.values(), key=lambda info: order.get(info.name, len(order))))

    def commands(self, run: Run | None = None) -> tuple[CommandInfo, ...]:
        """Every command of an extension there is now, in order of acceptance; seen from a run if one is given."""
        return tuple(
            record.registration.value.descriptor.info(self, record.owner.extension_id)
            for record in self.ledger.active_records(EffectKind.COMMAND, **where(run))
        )

    def activate_tools(self, names: Iterable[str]) -> None:
        """A result activates deferred tools; unknown names are ignored."""
        found = (self.ledger.active(EffectKind.TOOL, name) for name in names)
        handles = {record.handle for record in found if record is not None}
        if not handles <= self._activated:
            # What has been disposed of meanwhile goes: handles are never used again, but the set should not grow.
            there = {record.handle for record in self.ledger.active_records(EffectKind.TOOL)}
            self._activated = (self._activated | handles) & there
            self.mark_changed()
            self.host.flusher.call_soon(self._tell_tools_changed)

    def activated_tools(self, owner: EffectOwner) -> tuple[str, ...]:
        """The deferred tools of an instance that a result has activated."""
        records = self.ledger.records_for_owner(owner)
        return tuple(record.registration.key for record in records if record.handle in self._activated)

    def mark_changed(self) -> None:
        """Tools, commands or the state of an extension are others: wakes `wait_changed`."""
        self._version += 1
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def _tell_tools_changed(self) -> None:
        if not self.is_closed:
            self.tell_client("tools_changed", self._version)
