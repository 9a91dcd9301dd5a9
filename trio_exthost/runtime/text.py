"""Assistant text under streaming: held back while somebody may still hide or replace it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_exthost.hooks import Event
from trio_exthost.policy import Verdict
from trio_exthost.policy.settings import Stream
from trio_exthost.runtime.results import clean_text

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run


class AssistantText:
    """One message of the model's while it streams. Made by `Run.assistant_text`."""

    def __init__(self, run: Run, message_id: str) -> None:
        self.run = run
        self.message_id = message_id
        self.verdict: Verdict | None = None
        """What the chain decided; set by `finish`."""
        self.rest: str = ""
        """What is still to be shown once the message is complete; empty where everything was shown or it is hidden."""
        self._pieces: list[str] = []
        self._held: list[str] = []  # those that have not been given back
        self._shown = 0
        self._is_finished = False

    @property
    def original(self) -> str:
        """The model's own words so far: what the transcript keeps."""
        return "".join(self._pieces)

    @property
    def text(self) -> str:
        """The message as the user may see it, once it is complete; empty if it is hidden."""
        if self.verdict is None:
            return self.original
        return "" if self.verdict.blocked else str(self.verdict.value["text"])

    @property
    def hidden(self) -> bool:
        """Whether an extension hides it."""
        return self.verdict is not None and self.verdict.blocked

    async def feed(self, delta: str) -> str:
        """Take a piece of the model's text and give back what may be shown now: nothing, while somebody intercepts it.

        Raises:
          RuntimeError: The message is complete.
        """
        await trio.lowlevel.checkpoint()
        if self._is_finished:
            raise RuntimeError(f"message {self.message_id!r} is complete")
        piece = clean_text(delta)
        self._pieces.append(piece)
        self._held.append(piece)
        if self._is_held_back():
            return ""
        text = "".join(self._held)
        self._held.clear()
        self._shown += len(text)
        return text

    def _is_held_back(self) -> bool:
        """Whether somebody may still hide or replace it, be it a guard that is not there."""
        session = self.run.session
        if session.host.policy.stream(session.host.config.text_stream).value is Stream.SHOW:
            return False
        living = session.views.interceptors.get(Event.ASSISTANT_MESSAGE, ())
        return bool(living or session.guards.absent(Event.ASSISTANT_MESSAGE, {}, ()))

    async def finish(self) -> str:
        """The message is complete: ask, tell `assistant_message` with the visible text, and give back what is left to show.

        Done on leaving the block where it was not called. Idempotent. If this raises `trio.Cancelled`, nothing more is
        shown and nothing told.
        """
        if self._is_finished:
            await trio.lowlevel.checkpoint()
            return self.rest
        self._is_finished = True
        original = self.original
        body = self.run.about({"text": original})
        self.verdict = await self.run.session.intercept(Event.ASSISTANT_MESSAGE, body)
        if not self.hidden:
            # A replacement cannot take back what was shown already: then it is `text` that counts.
            self.rest = self.text[self._shown :] if self.text.startswith(original[: self._shown]) else ""
            if self.text:
                self.run.emit(Event.ASSISTANT_MESSAGE, {"text": self.text})
        return self.rest
