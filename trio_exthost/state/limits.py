"""How much an extension may store."""

from __future__ import annotations

import attrs

from trio_exthost.state.entries import MAX_BATCH_ENTRIES, MAX_ENTRY_BYTES, MAX_LIVE_BYTES


@attrs.frozen(kw_only=True)
class StateLimits:
    """Bounds of what one extension stores; whatever exceeds one refuses its whole batch."""

    batch_entries: int = MAX_BATCH_ENTRIES
    """Actions in one batch."""
    entry_bytes: int = MAX_ENTRY_BYTES
    """One entry, as JSON in UTF-8."""
    live_bytes: int = MAX_LIVE_BYTES
    """What is stored at the same time, in one space and branch."""


DEFAULT_LIMITS = StateLimits()
"""The numbers that extensions can rely on."""
