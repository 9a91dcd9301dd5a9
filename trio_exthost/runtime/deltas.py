"""Text of the model's in pieces, through the hooks that may change it while it streams.

Each hook is a stage with a hold of its own: the end of a piece that it is not sure of yet comes again in front of its next
piece. So a hook that looks for words sees them whole, however the stream cuts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.hooks import Batch, HookEvent
from trio_exthost.policy import Failure, Outcome, Step, StepKind, Verdict
from trio_exthost.runtime.chain import Asking
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.views import HookMember

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run

PIECE_CHARACTERS = 256
"""So much text is a piece, however fast it came."""
PIECE_S = 0.1
"""After so long, what came is a piece, however little it is."""
MAX_PIECE = 64 * 1024
"""Characters of one piece, and of what one hook may hold: more is cut into several, and let go."""


@attrs.define
class _Stage:
    name: str
    waiting: str = ""
    """What has come to it, and it has not been asked about."""
    held: str = ""
    offset: int = 0
    """Where `held` begins in the text that this stage has been given."""
    given: list[str] = attrs.field(factory=list)
    let_go: list[str] = attrs.field(factory=list)
    seconds: float = 0.0
    failure: Failure | None = None
    """The last one, if any."""

    def step(self) -> Step:
        """Its part in the whole message."""
        before, after = "".join(self.given), "".join(self.let_go) + self.held
        if self.failure is not None:
            failure = self.failure
            return Step(
                self.name,
                failure.kind,
                self.seconds,
                failure.reason,
                policy=failure.policy,
                rule=failure.rule,
                where=failure.where,
            )
        if before != after:
            return Step(self.name, StepKind.REWROTE, self.seconds, before=before, after=after)
        return Step(self.name, StepKind.ALLOWED, self.seconds)


class Deltas:
    """One message on its way through the `message_delta` hooks of its run."""

    def __init__(self, run: Run, message_id: str) -> None:
        """Nothing has come."""
        self._run = run
        self._message_id = message_id
        self._waiting: list[str] = []
        self._size = 0
        self._since = 0.0
        # By the key of the registration, which stays over a reload and a probe; in the order of the chain.
        self._stages: dict[str, _Stage] = {}
        self._released: list[str] = []  # what came out at the end, and was not given back yet
        self._gone: list[_Stage] = []

    @property
    def is_idle(self) -> bool:
        """Whether text passes as it comes: nobody is asked, nothing waits and nothing is held."""
        is_text_left = self._waiting or any(each.held or each.waiting for each in self._stages.values())
        return not is_text_left and not self._members()

    def _members(self) -> list[HookMember]:
        asked = self._run.session.views.asked(HookEvent.MESSAGE_DELTA, **where(self._run))
        return [each for each in asked if isinstance(each, HookMember)]

    def put(self, text: str) -> None:
        """More of the model's text."""
        if text:
            if not self._waiting:
                self._since = trio.current_time()
            self._waiting.append(text)
            self._size += len(text)

    @property
    def is_due(self) -> bool:
        """Whether what waits is a piece."""
        return bool(self._waiting) and (self._size >= PIECE_CHARACTERS or trio.current_time() - self._since >= PIECE_S)

    async def take(self, *, final: bool) -> str:
        """What may be shown of what waits, and of what was held; all of it where it is the end.

        If this raises `trio.Cancelled`, nothing is lost: it comes with the next call.
        """
        members = self._in_order()
        stages = self._stages_of(members)
        self._put(stages, 0, "".join(self._waiting))
        self._waiting.clear()
        self._size = 0
        limit = min(MAX_PIECE, self._run.session.host.config.limits.frame_bytes // 32)
        for place, (member, stage) in enumerate(zip(members, stages, strict=True)):
            is_done = not final and not stage.waiting
            while not is_done:
                text, is_done = stage.waiting[:limit], len(stage.waiting) <= limit
                shown = await self._through(member, stage, text, final=final and is_done)
                self._put(stages, place + 1, shown)
        released = "".join(self._released)
        self._released.clear()
        return released

    def _put(self, stages: Sequence[_Stage], place: int, text: str) -> None:
        """Hand text to the stage at this place, or out where there is none."""
        if place < len(stages):
            stages[place].waiting += text
        else:
            self._released.append(text)

    def _in_order(self) -> list[HookMember]:
        """Who looks at the text; those that have looked at this message before, in the order in which they did."""
        members = {each.record.registration.key: each for each in self._members()}
        before = iter([members[key] for key in self._stages if key in members])
        return [next(before) if key in self._stages else each for key, each in members.items()]

    def _stages_of(self, members: Sequence[HookMember]) -> list[_Stage]:
        """The stage of each. What one held that has gone is looked at by whoever stands behind its place now."""
        keys = [each.record.registration.key for each in members]
        behind, orphans = 0, []
        for key, stage in tuple(self._stages.items()):
            if key in keys:
                behind = keys.index(key) + 1
            else:
                orphans.append((behind, stage))
                self._gone.append(self._stages.pop(key))
        for member, key in zip(members, keys, strict=True):
            self._stages.setdefault(key, _Stage(member.name))
        self._stages = {key: self._stages[key] for key in keys}
        stages = list(self._stages.values())
        for place, stage in reversed(orphans):  # the further behind it stood, the older is what it held
            self._put(stages, place, stage.held + stage.waiting)
        return stages

    async def _through(self, member: HookMember, stage: _Stage, text: str, *, final: bool) -> str:
        """What one stage lets go of, given this much of what waits for it."""
        piece = stage.held + text
        payload: dict[str, Any] = {
            "message_id": self._message_id,
            "offset": stage.offset,
            "text": piece,
            "final": final,
        }
        shown, hold = await self._ask(member, stage, payload)
        stage.waiting = stage.waiting[len(text) :]
        stage.given.append(text)
        stage.offset += len(piece)
        cut = len(shown) - (0 if final else min(hold, MAX_PIECE))
        stage.held = shown[cut:]
        stage.offset -= len(stage.held)
        stage.let_go.append(shown[:cut])
        return shown[:cut]

    async def _ask(self, member: HookMember, stage: _Stage, payload: Mapping[str, Any]) -> tuple[str, int]:
        """One hook's text, and how much of its end is held; the piece as it is where it says nothing usable."""
        told: list[Batch] = []
        occasion = Occasion(
            event=HookEvent.MESSAGE_DELTA.value,
            payload=payload,
            run=self._run,
            message_id=self._message_id,
            took=told.append,
        )
        asking = Asking(self._run.session, occasion)
        text = str(payload["text"])
        if not asking.concerns(member, payload):
            return text, 0
        begun = trio.current_time()
        answer = await asking.ask(member, payload)
        stage.seconds += trio.current_time() - begun
        if isinstance(answer, Failure):
            stage.failure = answer
            return text, 0
        if not told or told[-1].primary is None:
            return text, 0
        return str(answer.replacement["text"]), int(told[-1].primary.fields.get("hold", 0))

    def end(self, original: str, shown: str) -> None:
        """The message is complete: what each hook made of it is recorded, as one decision."""
        stages = [*self._gone, *self._stages.values()]
        if stages:
            session, about = self._run.session, {"message_id": self._message_id}
            verdict = Verdict(
                HookEvent.MESSAGE_DELTA.value,
                Outcome.ALLOW,
                {**about, "text": shown},
                {**about, "text": original},
                steps=tuple(stage.step() for stage in stages),
                run_id=self._run.id,
            )
            session.host.books.outcomes.chain_ended(session.id, verdict, sum(each.seconds for each in stages))
