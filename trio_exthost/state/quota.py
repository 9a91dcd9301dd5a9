"""The quota: how much one extension may have stored at the same time in one space and branch."""

from __future__ import annotations

from trio_exthost.effects.descriptors_fields import shown
from trio_exthost.errors import StateRefused
from trio_exthost.state.limits import StateLimits
from trio_exthost.state.projection import Projection, ProjectionDraft


def check_quota(projection: Projection, draft: ProjectionDraft, limits: StateLimits) -> None:
    """Refuse what makes a state too large.

    A state that is too large already (the operator lowered the limit) may become smaller.

    Raises:
      StateRefused: With `resource_limit`; says how much is used and by what.
    """
    used, wanted = projection.usage, draft.usage
    if wanted.live_bytes <= max(limits.live_bytes, used.live_bytes):
        return
    raise StateRefused(
        f"{wanted.live_bytes} bytes would be stored, of {limits.live_bytes} allowed; {used.live_bytes} are now: "
        f"{used.explain()}{_largest(projection)}",
        code="resource_limit", extension=projection.extension,
        hint="delete keys or store smaller values; what was deleted or replaced does not count",
    )  # fmt: skip


def _largest(projection: Projection) -> str:
    if not projection.values:
        return ""
    key = max(projection.values, key=lambda each: len(projection.values[each].text))
    return f"; the largest key is {shown(key)} with {len(projection.values[key].text)}"
