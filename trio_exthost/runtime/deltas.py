"""Text of the model's in pieces, through the hooks that may change it while it streams.

Each hook is a stage with a hold of its own: the end of a piece that it is not sure of yet comes again in front of its next
piece. So a hook that looks for words sees them whole, however the stream cuts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.hooks import Batch, HookEvent, fold
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
"""Characters of one piece; more is cut into several."""


@attrs.define
class _Stage:
    name: str
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
        self._stages: dict[int, _Stage] = {}  # by handle, in the order of the chain
        self._gone: list[_Stage] = []

    @property
    def is_idle(self) -> bool:
        """Whether text passes as it comes: nobody is asked, nothing waits and nothing is held."""
        return not self._waiting and not self._members() and not any(each.held for each in self._stages.values())

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
        """What may be shown of what waits, and of what was held; all of it where it is the end."""
        text, self._size = "".join(self._waiting), 0
        self._waiting.clear()
        released = ""
        while len(text) > MAX_PIECE:
            released += await self._pass(text[:MAX_PIECE], final=False)
            text = text[MAX_PIECE:]
        return released + await self._pass(text, final=final)

    async def _pass(self, text: str, *, final: bool) -> str:
        members = self._members()
        there = {each.record.handle for each in members}
        # What a hook held that is gone since is the oldest text there is, and the others still look at it.
        gone = [handle for handle in self._stages if handle not in there]
        for handle in reversed(gone):
            stage = self._stages.pop(handle)
            text = stage.held + text
            self._gone.append(stage)
        for member in members:
            stage = self._stages.setdefault(member.record.handle, _Stage(member.name))
            text = await self._through(member, stage, text, final=final)
        return text

    async def _through(self, member: HookMember, stage: _Stage, text: str, *, final: bool) -> str:
        """What one stage lets go of, given more text."""
        stage.given.append(text)
        piece = stage.held + text
        if not piece and not final:
            return ""
        payload: dict[str, Any] = {
            "message_id": self._message_id,
            "offset": stage.offset,
            "text": piece,
            "final": final,
        }
        shown, hold = await self._ask(member, stage, payload)
        stage.offset += len(piece)
        cut = len(shown) - (0 if final else hold)
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
        if isinstance(answer, Failure) or not told or told[-1].primary is None:
            return text, 0
        folded = fold(HookEvent.MESSAGE_DELTA, payload, told[-1], extension=member.name, what="message_delta")
        return str(folded["text"]), int(told[-1].primary.fields.get("hold", 0))

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
