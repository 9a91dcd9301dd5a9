"""The points of a session at which hooks are asked or told, one call each; `Session` has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs

from trio_exthost.errors import ConfigError
from trio_exthost.hooks import DISPATCHED, HookEvent
from trio_exthost.policy import Verdict
from trio_exthost.runtime.confirmation import resolved
from trio_exthost.runtime.occasion import Occasion

if TYPE_CHECKING:
    from trio_exthost.runtime.follow_ups import FollowUp, FollowUps
    from trio_exthost.runtime.host import ModelRef
    from trio_exthost.runtime.observing import Observing
    from trio_exthost.runtime.persistence import Persistence, StoredContext
    from trio_exthost.runtime.session import Session
    from trio_exthost.state import Compaction


@attrs.frozen
class BranchTarget:
    """Another branch of the same conversation."""

    from_entry_id: str
    """Where the conversation stands; the embedder's own id."""
    to_entry_id: str
    """Where it goes on."""

    def body(self) -> dict[str, str]:
        """As hooks are shown it."""
        return {"kind": "branch", "from_entry_id": self.from_entry_id, "to_entry_id": self.to_entry_id}


@attrs.frozen
class SessionTarget:
    """Another conversation."""

    session_id: str
    """Its id."""

    def body(self) -> dict[str, str]:
        """As hooks are shown it."""
        return {"kind": "session", "target_session_id": self.session_id}


class SessionPoints(ABC):
    """One call per point. Where nobody listens, each costs a look-up.

    The gates give a verdict that is allowed or blocked: where a hook wants a person asked, that is done (`HostClient.ask_user`,
    or the policy's `headless_ask`). If one raises `trio.Cancelled`, nothing was decided.
    """

    model: ModelRef
    observing: Observing
    follow_ups: FollowUps
    persistence: Persistence

    @abstractmethod
    async def ask(self, occasion: Occasion) -> Verdict:
        """As `Session.ask`."""

    @abstractmethod
    def check_open(self) -> None:
        """As `Session.check_open`."""

    async def _gate(self, event: HookEvent, payload: Mapping[str, Any]) -> Verdict:
        return await resolved(cast("Session", self), await self.ask(Occasion(event=event.value, payload=payload)))

    async def before_switch(self, target: BranchTarget | SessionTarget) -> Verdict:
        """May the user go to another branch or conversation?"""
        return await self._gate(HookEvent.BEFORE_SESSION_SWITCH, {"target": target.body()})

    def switched(self, target: BranchTarget | SessionTarget) -> None:
        """The user has gone there: tells `session_switched`."""
        self.check_open()
        self.observing.tell(HookEvent.SESSION_SWITCHED, {"target": target.body()})

    async def before_fork(self, branch_entry_id: str) -> Verdict:
        """May the conversation up to this entry become another one, too?"""
        return await self._gate(HookEvent.BEFORE_SESSION_FORK, {"branch_entry_id": branch_entry_id})

    def forked(self, branch_entry_id: str, target_session_id: str) -> None:
        """It has: tells `session_forked`."""
        self.check_open()
        payload = {"branch_entry_id": branch_entry_id, "target_session_id": target_session_id}
        self.observing.tell(HookEvent.SESSION_FORKED, payload)

    async def select_model(self, model: ModelRef) -> Verdict:
        """Another model: where no hook objects it is `Session.model` from now on, and `model_selected` is told."""
        about = {"provider": model.provider, "model": model.model}
        verdict = await self._gate(HookEvent.BEFORE_MODEL_SELECTION, about)
        if verdict.allowed:
            self.check_open()
            self.model = model
            self.observing.tell(HookEvent.MODEL_SELECTED, about)
        return verdict

    # --- branches of what extensions store ---

    async def advance(self, entry_id: str) -> None:
        """The transcript has a new entry, under an id of your own; what extensions store from now on belongs to it.

        Raises:
          PositionError: The session has an entry of that id already.
          SessionBusy: Another host has the session's state open.
          StateError: It could not be stored.
        """
        self.check_open()
        await self.persistence.advance(entry_id)

    async def checkout(self, entry_id: str) -> None:
        """Go back to an entry of the transcript (the empty id is the beginning): values, events and model contexts follow.

        They do before this returns, so before any hook is asked; an extension whose state there is in an older schema
        migrates it, or is stopped.

        Raises:
          PositionError: There is no such entry.
          StateError: It could not be read.
        """
        self.check_open()
        await self.persistence.checkout(entry_id)

    async def fork(self, entry_id: str, new_session_id: str) -> None:
        """Copy what was stored on the way to an entry into another session, which has no state yet.

        Raises:
          PositionError: There is no such entry.
          StateError: One of the two could not be read or written; all of it was copied or nothing.
        """
        self.check_open()
        await self.persistence.fork(entry_id, new_session_id)

    def model_context(self) -> tuple[StoredContext, ...]:
        """What extensions want the model to see on the selected branch: add each to the prompt, once.

        Extensions in catalogue order; one that was replaced under its id keeps its place.
        """
        return self.persistence.model_context()

    async def compact_state(self) -> Compaction:
        """Drop what no position of the session's state needs any more.

        Raises:
          StateError: It could not be; everything is as it was.
        """
        self.check_open()
        return await self.persistence.compact()

    def next_follow_up(self) -> FollowUp | None:
        """Take the oldest message that an extension wants worked off after a run that is settled; None where there is none.

        Give it to `open_run(follow_up=...)` and send its message to the model.
        """
        self.check_open()
        return self.follow_ups.next()


def dispatched(points: Collection[str] | None) -> frozenset[HookEvent]:
    """The life-cycle points that an agent says it has; all that can be dispatched if it says nothing.

    Raises:
      ConfigError: One of them is none.
    """
    if points is None:
        return DISPATCHED
    unknown = sorted(set(points) - {each.value for each in DISPATCHED})
    if unknown:
        raise ConfigError(f"points: {unknown[0]!r} is no life-cycle point that can be dispatched")
    return frozenset(HookEvent(each) for each in points)
