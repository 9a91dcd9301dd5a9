"""Questions that extensions ask while they work on an invocation.

A question holds up the clock of its invocation, and is withdrawn with it: whoever answers an invocation, is told to give it
up or dies leaves no question on the user's screen. Each `ask_user` is answered once, whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import CallError
from trio_exthost.runtime.patience import Patience
from trio_exthost.runtime.questions import MAX_TEXT, Question, Value
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.effects_from_extension import AskUser
from trio_exthost.wire.words import AskKind, AskOutcome

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

MAX_OPTIONS = 256
"""Options of one question."""
MAX_ID = 1024
"""Characters of the id of a question; the answer would have no room for one that fills a frame."""


@attrs.define(eq=False)
class Asker:
    """An invocation, as long as it may ask."""

    _questions: Questions
    _patience: Patience
    run_id: str
    """The run it belongs to, or nothing."""
    tool_call_id: str
    """The tool call it serves, or nothing."""
    _id: str = ""
    _open: list[Question] = attrs.field(factory=list)

    def begin(self, id: str) -> None:
        """It was issued under this id."""
        self._id = id
        self._questions.invocations[id] = self

    def end(self, why: str) -> None:
        """It was given up or has ended: what it had asked is withdrawn. Idempotent."""
        self._questions.invocations.pop(self._id, None)
        for question in tuple(self._open):
            question.withdraw(why)

    def opened(self, question: Question) -> None:
        """It asks: its clock stands still."""
        self._open.append(question)
        self._patience.pause()

    def closed(self, question: Question) -> None:
        """That is settled: after the last, its clock goes on."""
        self._open.remove(question)
        self._patience.resume()


@attrs.define(eq=False)
class _Open:
    question: Question
    asker: Asker
    timer: trio.CancelScope = attrs.field(factory=trio.CancelScope)


class Questions:
    """The open questions of one instance, and the invocations that may ask."""

    def __init__(self, instance: Instance) -> None:
        """None yet."""
        self._instance = instance
        self._open: dict[str, _Open] = {}
        self.invocations: dict[str, Asker] = {}
        """By the id they were issued under."""

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    @contextmanager
    def invocation(self, patience: Patience, *, run_id: str = "", tool_call_id: str = "") -> Iterator[Asker]:
        """An invocation that may ask from `Asker.begin` on; leaving withdraws what it has asked."""
        asker = Asker(self, patience, run_id, tool_call_id)
        why = "the invocation has ended"
        try:
            yield asker
        except CallError as exc:
            why = exc.message
            raise
        finally:
            asker.end(why)

    def ask(self, frame: AskUser) -> None:
        """An extension asks: hand it to the client, or answer why not. Never blocks."""
        instance = self._instance
        if len(frame.id) > MAX_ID:
            self._report(Code.FRAME_INVALID, f"with an id of {len(frame.id)} characters, of {MAX_ID} allowed: ignored")
            return
        if frame.id in self._open:
            # An answer to this frame would be taken for the first one's.
            self._report(Code.FRAME_ILLEGAL, f"with id {frame.id!r:.80}, which is open: ignored")
            return
        if not instance.session.is_interactive:
            self._answer(frame.id, AskOutcome.UNAVAILABLE, None)
            return
        asker = self.invocations.get(frame.invocation)
        if asker is None or frame.invocation not in instance.replies:  # answered, and its caller about to wake
            self._refuse(frame, f"of invocation {frame.invocation!r:.80}, which is not running")
        elif len(self._open) >= instance.limits.waiting_work:
            self._refuse(frame, f"while {len(self._open)} are open", Code.OVERLOADED)
        elif problem := _problem(frame):
            self._refuse(frame, problem, Code.FRAME_INVALID)
        else:
            self._put(frame, asker)

    def refuse_unreadable(self, id: str) -> None:
        """A frame that cannot be read, or comes when it must not, is answered, too.

        Unless its id is an open question's, or too long.
        """
        knows_answers = outbound.AskUserResult.TYPE in self._instance.connection.dialect.outbound
        if knows_answers and id not in self._open and len(id) <= MAX_ID:
            self._answer(id, AskOutcome.CANCELLED, None)

    def _put(self, frame: AskUser, asker: Asker) -> None:
        question = Question(
            self._instance.session,
            extension=self._instance.name,
            kind=frame.kind,
            title=frame.title[:MAX_TEXT],
            message=frame.message[:MAX_TEXT],
            options=frame.options if frame.kind is AskKind.SELECT else (),
            default=_default(frame),
            run_id=asker.run_id,
            tool_call_id=asker.tool_call_id,
            on_settled=lambda outcome, value: self._settled(frame.id, outcome, value),
        )
        if question.default is None and frame.default is not None:
            self._report(Code.FRAME_INVALID, f"with a default that is no answer to it: {frame.default!r:.80} ignored")
        opened = self._open[frame.id] = _Open(question, asker)
        asker.opened(question)
        question.put()
        if question.is_open and frame.timeout_ms is not None:
            assert self._instance.nursery is not None
            self._instance.nursery.start_soon(
                self._expire, opened, frame.timeout_ms / 1000, name=f"question of {self._instance.name}"
            )

    async def _expire(self, opened: _Open, seconds: float) -> None:
        with opened.timer:
            await trio.sleep(seconds)
            opened.question.withdraw(f"nobody answered within {seconds:g} s")

    def _settled(self, id: str, outcome: AskOutcome, value: Value | None) -> None:
        self._answer(id, outcome, value)  # may raise; all else comes after it
        opened = self._open.pop(id)
        opened.timer.cancel("the question is settled")
        opened.asker.closed(opened.question)

    def _answer(self, id: str, outcome: AskOutcome, value: Value | None) -> None:
        self._instance.post(outbound.AskUserResult(id, outcome, value))

    def _refuse(self, frame: AskUser, why: str, code: Code = Code.FRAME_ILLEGAL) -> None:
        self._report(code, f"{why}: cancelled")
        self._answer(frame.id, AskOutcome.CANCELLED, None)

    def _report(self, code: Code, why: str) -> None:
        self._instance.report(code, Severity.WARNING, f"ask_user {why}")


def _problem(frame: AskUser) -> str:
    """What makes it a question that cannot be answered, or nothing."""
    if frame.kind is not AskKind.SELECT:
        return ""
    if not 0 < len(frame.options) <= MAX_OPTIONS:
        return f"for a selection of {len(frame.options)} options, not 1 to {MAX_OPTIONS}"
    if max(map(len, frame.options)) > MAX_TEXT:  # not cut: what is answered is what was offered
        return f"with an option of more than {MAX_TEXT} characters"
    return ""


def _default(frame: AskUser) -> Value | None:
    """The default, where it could be an answer."""
    default = frame.default
    if frame.kind is AskKind.CONFIRM:
        return default if isinstance(default, bool) else None
    if not isinstance(default, str) or (frame.kind is AskKind.SELECT and default not in frame.options):
        return None
    return default if frame.kind is AskKind.SELECT else default[:MAX_TEXT]
