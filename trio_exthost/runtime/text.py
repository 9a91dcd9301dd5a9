"""Assistant text under streaming: held back while somebody may still hide or replace it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import PayloadError
from trio_exthost.hooks import Event, HookEvent
from trio_exthost.policy import Verdict
from trio_exthost.policy.settings import Stream
from trio_exthost.runtime.deltas import Deltas
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.results import clean_text, cut_text
from trio_exthost.runtime.run_points import text_of

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run


class AssistantText:
    """One message of the model's while it streams. Made by `Run.assistant_text`."""

    def __init__(self, run: Run, message_id: str) -> None:
        self.run = run
        self.message_id = message_id
        self.verdict: Verdict | None = None
        """What the chain decided about its text; set by `finish`."""
        self.message: Mapping[str, Any] = {"role": "assistant", "content": ""}
        """The message as hooks left it (`message_end`); complete once `finish` was called."""
        self.rest: str = ""
        """What is still to be shown once the message is complete; empty where everything was shown or it is hidden."""
        self._pieces: list[str] = []
        self._shown: list[str] = []
        self._deltas = Deltas(run, message_id)
        self._stream = f"message {run.id} {message_id}"  # another run may have a message of that id
        self._is_finished = False

    @property
    def original(self) -> str:
        """The model's own words so far: what the transcript keeps, where no hook replaced the message."""
        return "".join(self._pieces)

    @property
    def shown(self) -> str:
        """What `feed` has given back so far."""
        return "".join(self._shown)

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

    def begin(self) -> None:
        """It begins: hooks are told `message_start`."""
        self._tell(HookEvent.MESSAGE_START, {"message": self._body("")})

    def close(self) -> None:
        """Nothing more comes, finished or not."""
        self._is_finished = True
        self.run.session.observing.streams.end(self._stream)

    def _body(self, text: str) -> dict[str, Any]:
        return {"role": "assistant", "content": text, "id": self.message_id}

    def _tell(self, event: HookEvent, payload: Mapping[str, Any], *, stream: str = "") -> None:
        self.run.observe(event, payload, message_id=self.message_id, stream=stream)

    async def feed(self, delta: str) -> str:
        """Take a piece of the model's text and give back what may be shown now.

        Nothing, while somebody intercepts the whole message. Hooks that change text while it streams (`message_delta`) get
        it in pieces of at least 256 characters, or of what came in 100 ms, so less comes back now and more later: what a
        hook holds, because it may be the begin of something, comes with a later piece or with `finish`.

        If this raises `trio.Cancelled`, the message cannot be continued: finish it or leave the block.

        Raises:
          RuntimeError: The message is complete.
        """
        await trio.lowlevel.checkpoint()
        if self._is_finished:
            raise RuntimeError(f"message {self.message_id!r} is complete")
        piece = clean_text(delta)
        self._pieces.append(piece)
        is_idle = self._deltas.is_idle
        self._deltas.put(piece)
        if self._is_held_back():
            return ""
        if not is_idle and not self._deltas.is_due:
            return ""
        return self._show(await self._deltas.take(final=False))

    def _show(self, text: str) -> str:
        if text:
            self._shown.append(text)
            if self.run.session.views.observers.get(HookEvent.MESSAGE_UPDATE):
                # Each of them holds the whole text so far: once a tick is enough.
                self.run.session.host.flusher.call_soon(self._tell_update)
        return text

    def _tell_update(self) -> None:
        if self._is_finished:
            return
        host = self.run.session.host
        body = self._body(cut_text(self.shown, host.config.limits.event_body_bytes))
        try:
            self._tell(HookEvent.MESSAGE_UPDATE, {"message": body, "update_kind": "text"}, stream=self._stream)
        except PayloadError as exc:  # nobody else would hear of it: the flusher calls this
            host.report(
                Code.EVENTS_DROPPED, Severity.WARNING, f"message_update: {exc.message}", session=self.run.session
            )

    def _is_held_back(self) -> bool:
        """Whether somebody may still hide or replace it, be it a guard that is not there."""
        session = self.run.session
        if session.host.policy.stream(session.host.config.text_stream).value is Stream.SHOW:
            return False
        living = session.views.interceptors.get(Event.ASSISTANT_MESSAGE, ())
        return bool(living or session.guards.absent(Event.ASSISTANT_MESSAGE, {}, ()))

    async def finish(self, message: Mapping[str, Any] | None = None) -> str:
        """The message is complete: ask, tell, and give back what is left to show.

        What waits or was held goes through the hooks that change text. Then hooks may replace the message (`message_end`), and
        who intercepts `assistant_message` may hide or replace its text for the user; the visible text is told.

        Done on leaving the block where it was not called. Idempotent. If this raises `trio.Cancelled`, nothing more is
        shown and nothing told.

        Args:
          message: The whole message, where it is more than its text (role, content, tool calls); its content is taken for
            what was fed, and replaced by what hooks made of that where it is a text.
        """
        if self._is_finished:
            await trio.lowlevel.checkpoint()
            return self.rest
        self._is_finished = True
        shown = self.shown
        tail = await self._deltas.take(final=True)
        self._deltas.end(self.original, shown + tail)
        whole = {**self._body(shown + tail), **(message or {})}
        if isinstance(whole["content"], str):
            whole["content"] = shown + tail
        ended = await self.run.ask(HookEvent.MESSAGE_END, {"message": whole}, message_id=self.message_id)
        self.message = ended.value["message"]
        body = self.run.about({"text": text_of(self.message)})
        self.verdict = await self.run.session.ask(
            Occasion(event=Event.ASSISTANT_MESSAGE.value, payload=body, run=self.run, message_id=self.message_id)
        )
        if not self.hidden:
            # A replacement cannot take back what was shown already: then it is `text` that counts.
            self.rest = self.text[len(shown) :] if self.text.startswith(shown) else ""
            if self.text:
                self.run.emit(Event.ASSISTANT_MESSAGE, {"text": self.text})
        return self.rest
