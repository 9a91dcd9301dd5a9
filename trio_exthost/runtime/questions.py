"""Questions to a person, the host's own and those of extensions: what the client is handed, and how it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from trio_exthost.runtime.results import clean_text
from trio_exthost.wire.words import AskKind, AskOutcome

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session

MAX_TEXT = 16 * 1024
"""Characters of a title, a message or a default; what is over is cut. As notes."""
Value = bool | str
"""What a question is answered with: a bool for `confirm`, one of the options for `select`, a text for `input`."""


class Question:
    """Something a person is asked. Made by the host, and handed to `HostClient.ask_user`.

    Answer it there or at any later time, on the host's thread, with exactly one of `answer`, `decline`, `cancel` and
    `unavailable`. Its texts are an extension's: they may hold control characters, which a terminal must not be given.
    """

    def __init__(
        self,
        session: Session,
        *,
        extension: str | None,
        kind: AskKind,
        title: str,
        message: str,
        options: tuple[str, ...] = (),
        default: Value | None = None,
        run_id: str = "",
        tool_call_id: str = "",
        on_settled: Callable[[AskOutcome, Value | None], None],
    ) -> None:
        """Open. `on_settled` is called once; where it raises, the question stays as it is."""
        self.session: Session = session
        """Where it is asked."""
        self.extension: str | None = extension
        """Who asks; None is the host itself, about a tool call."""
        self.kind: AskKind = kind
        """What is wanted."""
        self.title: str = title
        """The question."""
        self.message: str = message
        """More about it, of several lines perhaps; may be empty."""
        self.options: tuple[str, ...] = options
        """What there is to choose from, where `kind` is `select`."""
        self.default: Value | None = default
        """What is preselected, if anything."""
        self.run_id: str = run_id
        """The run it belongs to, or nothing."""
        self.tool_call_id: str = tool_call_id
        """The tool call it belongs to, or nothing."""
        self.outcome: AskOutcome | None = None
        """What became of it; None while it is open."""
        self.value: Value | None = None
        """The answer, where there is one."""
        self.withdrawn: str = ""
        """Why the host took it back, in a sentence; empty where it did not."""
        self._on_settled = on_settled

    def __repr__(self) -> str:
        return f"<Question {self.kind} of {self.extension or 'the host'}: {self.outcome or 'open'}>"

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self.outcome is None

    def answer(self, value: Value) -> bool:
        """Answer it.

        Args:
          value: A bool for `confirm`, one of `options` for `select`, a text for `input`.

        Returns:
          Whether the answer counts: False where the question was withdrawn before.

        Raises:
          ValueError: It is no answer to this kind of question, or too long to be sent (`PayloadError`); it stays open.
          RuntimeError: It was answered before.
          WrongThread: Called from another thread.
        """
        return self._settle(AskOutcome.ANSWERED, value)

    def decline(self) -> bool:
        """The person would not answer. Returns and raises as `answer`."""
        return self._settle(AskOutcome.DECLINED)

    def cancel(self) -> bool:
        """The person gave up what the question belongs to. Returns and raises as `answer`."""
        return self._settle(AskOutcome.CANCELLED)

    def unavailable(self) -> bool:
        """There is nobody to ask. Returns and raises as `answer`."""
        return self._settle(AskOutcome.UNAVAILABLE)

    def withdraw(self, why: str) -> None:
        """For the host: nobody waits for the answer any more; the client is told. Nothing where it is not open."""
        if self.is_open:
            self._close(AskOutcome.CANCELLED, None)
            self.withdrawn = why
            self.session.tell_client("withdraw_question", self)

    def put(self) -> None:
        """For the host: hand it to the client. Where that has no `ask_user`, or it raises, nobody is there."""
        if not self.session.tell_client("ask_user", self) and self.is_open:
            self._close(AskOutcome.UNAVAILABLE, None)

    def _settle(self, outcome: AskOutcome, value: Value | None = None) -> bool:
        self.session.host.check_thread()
        if self.withdrawn:
            return False
        if self.outcome is not None:
            raise RuntimeError(f"question {self.title!r:.80} was settled before: {self.outcome}")
        self._close(outcome, self._checked(value) if outcome is AskOutcome.ANSWERED else None)
        return True

    def _checked(self, value: object) -> Value:
        if self.kind is AskKind.CONFIRM:
            if isinstance(value, bool):
                return value
            raise ValueError(f"{value!r:.80} is no answer to question {self.title!r:.80}: it takes True or False")
        if self.kind is AskKind.SELECT and isinstance(value, str) and value in self.options:
            return value
        if self.kind is AskKind.INPUT and isinstance(value, str):
            return clean_text(value)
        wanted = "a str" if self.kind is AskKind.INPUT else "one of its options"
        raise ValueError(f"{value!r:.80} is no answer to question {self.title!r:.80}: it takes {wanted}")

    @trio.lowlevel.enable_ki_protection
    def _close(self, outcome: AskOutcome, value: Value | None) -> None:
        self._on_settled(outcome, value)
        self.outcome, self.value = outcome, value
