"""Old state and a newer extension: whether it must be brought into the new form, and the one batch that does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import msgspec

from trio_exthost.errors import MigrationRefused, StateRefused
from trio_exthost.state.actions import read_values
from trio_exthost.state.committed import Committed
from trio_exthost.state.entries import Batch, DeleteEntry, Entry, MigrationEntry, SetEntry, same_json
from trio_exthost.state.limits import DEFAULT_LIMITS, StateLimits
from trio_exthost.state.projection import Projection, ProjectionDraft
from trio_exthost.state.quota import check_quota


def check_schema(projection: Projection, state_schema: int) -> None:
    """Let an extension store only in the schema in which its state stands.

    Raises:
      MigrationRefused: It stands in another one.
    """
    if projection.schema is None or projection.schema == state_schema:
        return
    raise MigrationRefused(
        f"its state stands in schema {projection.schema}, and it stores in schema {state_schema}",
        extension=projection.extension,
        hint="it must be migrated first" if projection.schema < state_schema else _UPDATE,
    )


_UPDATE = "the state is kept as it is; install the newer version of the extension again"


@attrs.frozen
class Migration:
    """A migration that is due."""

    from_schema: int
    """In which the state stands."""
    to_schema: int
    """Which the extension has now."""
    state: Mapping[str, Any]
    """All keys and values in the old form: what its handler gets. Custom events and model contexts stay as they are."""


def needs_migration(projection: Projection, state_schema: int | None) -> Migration | None:
    """What an extension with this `state_schema` must migrate before anything of it runs; None if nothing.

    Args:
      projection: Its state on the selected branch; other branches may stand in other schemas.
      state_schema: What its manifest says.

    Raises:
      MigrationRefused: The state is of a newer version of the extension, or the manifest has no `state_schema`.
    """
    stored = projection.schema
    if stored is None or stored == state_schema:
        return None
    if state_schema is None:
        raise MigrationRefused(
            f"it has state in schema {stored} and its manifest has no state_schema",
            extension=projection.extension, hint="the state is kept as it is; say state_schema in the manifest again",
        )  # fmt: skip
    if stored > state_schema:
        raise MigrationRefused(
            f"its state stands in schema {stored}, which is newer than its state_schema, {state_schema}",
            extension=projection.extension, hint=_UPDATE,
        )  # fmt: skip
    return Migration(stored, state_schema, projection.state())


@attrs.frozen
class Migrated:
    """A migration that fits, applied."""

    projection: Projection
    """The state in its new form."""
    batch: Batch
    """What to store: deletions, settings and the marker, as one."""

    @property
    def committed(self) -> Committed:
        """What to tell."""
        texts = {key: value.text for key, value in self.projection.values.items()}
        return Committed(revision=self.projection.revision, texts=texts)


def build_migration(
    projection: Projection,
    state: object,
    *,
    to_schema: int,
    sequence: int = 0,
    limits: StateLimits = DEFAULT_LIMITS,
) -> Migrated:
    """The one batch that brings a state into its new form, of any number of entries.

    Args:
      projection: The old state; stays as it is.
      state: What the extension's handler returned: an object of all keys and values in the new form.
      to_schema: The extension's `state_schema`.
      sequence: The session's number of the invocation.
      limits: Bounds of an entry and of the whole; the number of entries is bounded by these.

    Raises:
      MigrationRefused: What was returned is no such object, or too large; nothing is migrated.
    """
    migration = needs_migration(projection, to_schema)
    if migration is None:
        raise MigrationRefused(f"its state needs no migration to schema {to_schema}", extension=projection.extension)
    try:
        texts = read_values(state, extension=projection.extension, limits=limits)
        entries: list[Entry] = [DeleteEntry(key=key) for key in projection.values if key not in texts]
        for key, text in texts.items():
            old = projection.values.get(key)
            if old is None or not same_json(old.text, text):
                entries.append(SetEntry(key=key, value=msgspec.Raw(text)))
        entries.append(MigrationEntry(from_schema=migration.from_schema, to_schema=to_schema))
        batch = Batch(projection.extension, to_schema, sequence, projection.revision + 1, tuple(entries))
        draft = ProjectionDraft(projection)
        draft.add(batch)
        check_quota(projection, draft, limits)
    except StateRefused as exc:
        raise MigrationRefused(
            f"what its migration returned cannot be stored: {exc.reason}",
            field=exc.field, extension=projection.extension, hint=exc.hint,
        ) from None  # fmt: skip
    return Migrated(draft.finish(), batch)
