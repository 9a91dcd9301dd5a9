"""What must not vanish with an extension: the operator's table of reserved names, outside the ledger.

A sandbox that overrides `bash` and crashes takes its record with it, as anybody; that the bare `bash` does not come back by
that is said here. The name is free only where the extension serves no override of its own free will: it is ready, has
held the name in this incarnation, and has disposed of its record itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from trio_exthost.effects import EffectKind, EffectRecord
from trio_exthost.errors import GuardAbsent
from trio_exthost.runtime.lifecycle import State

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session


class ReservedNames:
    """The names of tools that are kept for extensions of one session."""

    def __init__(self, session: Session) -> None:
        """As the host's policy says."""
        self._session = session
        self._keepers: Mapping[str, Collection[str]] = session.host.policy.reserved_tools()

    def keepers(self, name: str) -> Collection[str]:
        """The only extensions that may serve this tool; empty where anybody may."""
        return self._keepers.get(name, ())

    def now(self) -> Mapping[str, Collection[str]]:
        """The names that are kept now, each for whom."""
        return {name: keepers for name, keepers in self._keepers.items() if not self._is_released(name)}

    def check(self, name: str, record: EffectRecord | None) -> None:
        """Refuse a tool that is kept for somebody else than who is in force.

        Raises:
          GuardAbsent: Says for whom it is kept, and in which state that one is.
        """
        keepers = self._keepers.get(name)
        if not keepers or (record is not None and record.owner.extension_id in keepers) or self._is_released(name):
            return
        who = " and ".join(f"{keeper} ({self._session.loader.state_of(keeper)})" for keeper in keepers)
        raise GuardAbsent(
            f"tool {name!r} is kept for {who}, which does not serve it now",
            extension=next(iter(keepers)),
            may_have_run=False,
            hint='get it running, or let the policy say on_absent = "restore" for it',
        )

    def _is_released(self, name: str) -> bool:
        for keeper in self._keepers[name]:
            instance = self._session.loader.running(keeper)
            if instance is not None and instance.state is State.READY and name in instance.declarations.released:
                return True
        return False


def overrides_tool(record: EffectRecord) -> bool:
    """Whether this record takes the place of a tool."""
    return record.registration.kind is EffectKind.TOOL and record.registration.override
