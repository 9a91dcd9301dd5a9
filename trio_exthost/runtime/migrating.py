"""An extension that has raised its `state_schema` gets its old state once, and returns the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trio_exthost.effects import EffectKind, EffectRecord
from trio_exthost.errors import MalformedReply, MigrationRefused, StateRefused
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.patience import Patience
from trio_exthost.state import Migration, needs_migration

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.persistence import Persistence


MAX_ATTEMPTS = 5
"""How often it is asked on one branch: what is stored meanwhile, by who runs in the old form, is migrated with the rest."""


async def migrate(persistence: Persistence, instance: Instance) -> None:
    """Migrate what an instance has stored, in both spaces, until none of it is in an older schema.

    Raises:
      StateError: It cannot be; the state is as it was.
      CallError: The extension gave no usable answer.
    """
    attempts, selected = 0, persistence.selected
    while True:
        try:
            await migrate_session(persistence, instance)
            await migrate_shared(persistence, instance)
        except StateRefused as exc:
            attempts = attempts + 1 if persistence.selected == selected else 0
            if exc.code != "conflict" or attempts == MAX_ATTEMPTS:
                raise
        else:
            if not persistence.is_due(instance):
                return
        selected = persistence.selected  # where another branch was selected meanwhile, it begins again


async def migrate_session(persistence: Persistence, instance: Instance) -> None:
    """Migrate the session's space on the selected branch, if it is in an older schema.

    Raises:
      StateError: It cannot be; the state is as it was.
      CallError: The extension gave no usable answer.
    """
    base = persistence.projection(instance.name)
    due = needs_migration(base, instance.registrant.state_schema)
    if due is not None:
        await persistence.submit_migration(instance, base, await _ask(instance, due, "session"))


async def migrate_shared(persistence: Persistence, instance: Instance) -> None:
    """The same for the space that all sessions share. Raises as `migrate_session`."""
    if instance.registrant.state_schema is None:
        return
    base = await persistence.shared.read(instance.name)
    due = needs_migration(base, instance.registrant.state_schema)
    if due is not None:
        await persistence.shared.migrate(instance, base, await _ask(instance, due, "extension"))


async def _ask(instance: Instance, due: Migration, space: str) -> object:
    record = _handler(instance)
    if record is None:
        raise MigrationRefused(
            f"its state stands in schema {due.from_schema}, its manifest says {due.to_schema}, and it registers no migration",
            extension=instance.name,
            hint='register one: {"kind": "migration", "descriptor": {}}',
        )
    payload = {
        "from_schema_version": due.from_schema,
        "to_schema_version": due.to_schema,
        "space": space,
        "state": due.state,
    }
    return await invoke(
        instance,
        Invoked(
            record=record,
            event="migration",
            payload=payload,
            what=f"migration to schema {due.to_schema}",
            read=_reader(instance),
            even_at_the_end=True,
        ),
        Patience(instance.deadlines.life_cycle_s),
    )


def _reader(instance: Instance) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, dict) or set(value) != {"state"}:
            raise MalformedReply('a migration answers {"state": {...}}', extension=instance.name)
        return value["state"]

    return read


def _handler(instance: Instance) -> EffectRecord | None:
    for record in instance.session.ledger.records_for_owner(instance.owner):
        if record.registration.kind is EffectKind.MIGRATION:
            return record
    return None
