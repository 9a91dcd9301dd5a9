"""What an extension stores for all sessions: as a session's state, but without branches and without model contexts."""

from __future__ import annotations

from collections.abc import Sequence

from trio_exthost.errors import StateRefused
from trio_exthost.state.actions import Action, AppendModelContext
from trio_exthost.state.applying import Applied, apply
from trio_exthost.state.limits import StateLimits
from trio_exthost.state.migration import Migrated, build_migration
from trio_exthost.state.projection import Projection


def apply_shared(
    projection: Projection, actions: Sequence[Action], *, schema: int, sequence: int, limits: StateLimits
) -> Applied:
    """As `apply`.

    Raises:
      StateRefused: As `apply`; one of the actions is about a model's context.
    """
    for index, action in enumerate(actions):
        if isinstance(action, AppendModelContext):
            raise StateRefused(
                "what the model shall see belongs to a session", code="invalid_payload",
                field=f"actions[{index}].kind", extension=projection.extension, hint="store it in the space of the session",
            )  # fmt: skip
    return apply(projection, actions, schema=schema, sequence=sequence, limits=limits)


def migrate_shared(
    projection: Projection, state: object, *, expected_revision: int, to_schema: int, sequence: int, limits: StateLimits
) -> Migrated:
    """As `build_migration`.

    Raises:
      StateRefused: As `build_migration`; with `conflict` if the state is of another revision than expected.
    """
    if projection.revision != expected_revision:
        raise StateRefused(
            f"its state is at revision {projection.revision}, and what was migrated was at {expected_revision}",
            code="conflict", extension=projection.extension, hint="read it again, and migrate what is there now",
        )  # fmt: skip
    return build_migration(projection, state, to_schema=to_schema, sequence=sequence, limits=limits)
