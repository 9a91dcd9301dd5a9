"""Messages that extensions want worked off after a run: a bounded queue, for the agent to take from once the run is settled."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run

MAX_WAITING = 32
"""Follow-ups that wait."""
MAX_REMEMBERED = 256
"""Ids that are remembered: one of them is not queued again."""
MAX_CHAIN = 16
"""Follow-ups in a row, each of the run before, that one request of the user may lead to."""


@attrs.frozen
class FollowUp:
    """A message to be worked off in a run of its own: `Session.open_run(follow_up=...)`."""

    id: str
    """The extension's own id of it."""
    extension: str
    """Whose it is."""
    message: Mapping[str, Any]
    """As a user's: role and content."""
    depth: int
    """Which in a row it is: 1 for one that a user's run led to."""


class FollowUps:
    """The follow-ups of one session that wait."""

    def __init__(self) -> None:
        """None yet."""
        self._waiting: deque[tuple[FollowUp, Run | None]] = deque()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __len__(self) -> int:
        """How many wait, those of runs that are not settled included."""
        return len(self._waiting)

    def add(self, extension: str, id: str, message: Mapping[str, Any], *, after: Run | None) -> str:
        """Queue one; why it was not, or nothing. One whose id is remembered is passed over in silence."""
        depth = (after.follow_up_depth if after is not None else 0) + 1
        if (extension, id) in self._known:
            return ""
        if depth > MAX_CHAIN:
            return f"{MAX_CHAIN} follow-ups in a row are enough"
        if len(self._waiting) >= MAX_WAITING:
            return f"{MAX_WAITING} wait already"
        self._known[extension, id] = None
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        self._waiting.append((FollowUp(id, extension, message, depth), after))
        return ""

    def next(self) -> FollowUp | None:
        """Take the oldest whose run is settled."""
        for place, (follow_up, after) in enumerate(self._waiting):
            if after is None or after.is_closed:
                del self._waiting[place]
                return follow_up
        return None
