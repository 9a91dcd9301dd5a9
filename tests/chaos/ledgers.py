"""The ledger of one session of a chaos run, followed from its changes alone and held against what the host knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trio_exthost import Session
from trio_exthost.effects import Change, ChangeAction, EffectView
from trio_exthost.runtime.views import HookMember, Views


class Followed:
    """Somebody who hears every change and nothing else."""

    def __init__(self) -> None:
        self._view = EffectView()
        self._newest = 0

    def take(self, changes: Sequence[Change]) -> str:
        """Follow one step; what is wrong with it: handles grow, and who has ended registers nothing."""
        wrong = ""
        for change in changes:
            record = change.record
            if change.action is ChangeAction.ACCEPTED:
                if record.handle <= self._newest:
                    wrong = f"handle {record.handle} comes after {self._newest}"
                self._newest = max(self._newest, record.handle)
                if record.registration.value.instance.ended.is_set():
                    wrong = f"{record.owner} registers {record.registration.key}, and has ended"
        self._view.apply(changes)
        return wrong

    def difference(self, session: Session) -> str:
        """In what the ledger and the tables that follow it say anything else than the changes; nothing if they agree."""
        index = session.ledger._index
        if self._view._records != index.records:
            return f"records {sorted(self._view._records)} by its changes, {sorted(index.records)} in the ledger"
        followed = sorted(record.handle for record in self._view._in_force.values())
        in_force = sorted(top.handle for table in index.tables.values() for top in table.values())
        if followed != in_force:
            return f"{followed} are in force by the changes, {in_force} in the ledger"
        anew = Views()
        anew.apply(Change(ChangeAction.ACCEPTED, record) for record in index.records.values())
        if _shape(anew) != _shape(session.views):
            return f"the views say {_shape(session.views)}, the ledger {_shape(anew)}"
        return ""


def _shape(views: Views) -> dict[str, Any]:
    tables = ("subscribers", "interceptors", "observers", "awaited")
    return {
        name: {
            event: [each.record.handle if isinstance(each, HookMember) else each.number for each in members]
            for event, members in getattr(views, name).items()
        }
        for name in tables
    }
