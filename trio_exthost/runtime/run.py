"""A run: one request of the user worked off, as one call per point of the agent's life."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import Scope
from trio_exthost.errors import ClosedError, PayloadError
from trio_exthost.hooks import Event, HookEvent
from trio_exthost.policy import Verdict
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.results import clean_text, cut_text
from trio_exthost.runtime.run_points import RunPoints
from trio_exthost.runtime.text import AssistantText

if TYPE_CHECKING:
    from trio_exthost.runtime.session import Session
    from trio_exthost.runtime.toolcall import ToolCall

_MAX_ERROR = 16 * 1024  # bytes of what is told of an error


@attrs.frozen
class AgentRef:
    """A sub-agent."""

    id: str
    """Its id."""
    name: str = ""
    """What it is called."""


@attrs.define(eq=False)
class Compaction:
    """A compaction that runs."""

    id: str
    """Its id."""
    message_count: int
    """Messages before."""
    token_estimate: int
    """Tokens before, as estimated."""
    status: str = "completed"
    """How it ends: completed, failed, cancelled or timed_out; set from what leaves the block unless you set it."""
    error: str = ""
    """What went wrong."""


class Run(RunPoints):
    """One run. Made by `Session.open_run` only; every method is for the host's thread."""

    def __init__(
        self, session: Session, run_id: str, *, parent: Run | None, agent: AgentRef | None, follow_up_depth: int = 0
    ) -> None:
        self.session = session
        self.id = run_id
        """Unique in the host; events carry it as `agent_run_id`."""
        self.parent = parent
        self.agent = agent
        self.is_closed: bool = False
        self.follow_up_depth: int = follow_up_depth
        """How many follow-ups in a row led to it; 0 for a request of the user's."""
        self._sections_told: frozenset[int] = frozenset()  # handles of those that the system prompt has already
        self.turn_id: str | None = None
        """The turn that has begun last."""
        self._requests: list[str] = []
        self._request_count = 0
        self._compactions = 0

    @contextmanager
    def told(self) -> Iterator[None]:
        """The life of the run; a sub-agent's is told as `subagent_start` and `subagent_stop`, always both.

        Hooks are told `run_ended`, or `run_error` where the body raised, and then always `run_settled`.
        """
        about = {}
        if self.agent is not None:
            about = {"agent_id": self.agent.id, "agent_run_id": self.id, "name": self.agent.name}
            self.session.emit(Event.SUBAGENT_START, about)
        outcome = {"status": "completed"}
        error: BaseException | None = None
        try:
            yield
        except BaseException as exc:  # also a cancellation: how it ended is told in every case
            error, outcome = exc, _failure(exc)
            raise
        finally:
            self.is_closed = True
            if not self.session.is_closed:
                if self.agent is not None:
                    self.session.emit(Event.SUBAGENT_STOP, {**about, **outcome})
                if isinstance(error, Exception):
                    message = outcome.get("error", "")
                    self.observe(HookEvent.RUN_ERROR, {"category": outcome["status"], "message": message})
                else:
                    self.observe(HookEvent.RUN_ENDED, {"outcome": outcome})
                self.observe(HookEvent.RUN_SETTLED, {"outcome": outcome})

    def about(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A payload with this run's id."""
        return {"agent_run_id": self.id, **payload}

    def emit(self, event: str, payload: Mapping[str, Any] | None = None) -> int | None:
        """`Session.emit` with this run's id; None, and nothing told, where the session has ended."""
        if self.session.is_closed:
            return None
        return self.session.emit(event, self.about(payload or {}))

    def _check_open(self) -> None:
        if self.is_closed:
            raise ClosedError(f"run {self.id!r} has ended")

    @property
    def request_id(self) -> str | None:
        """The request to the model that was opened last and is open; None outside of one."""
        return self._requests[-1] if self._requests else None

    @contextmanager
    def open_request(self, request_id: str | None = None) -> Iterator[str]:
        """One request to the model, and the tool calls that follow from it; its id.

        Leaving ends what extensions registered for this request.

        Raises:
          ValueError: A request of that id is open in the session.
          ClosedError: The run has ended.
        """
        self._check_open()
        self._request_count += 1
        request_id = request_id or f"{self.id}-request-{self._request_count}"
        session = self.session
        if request_id in session.requests:
            raise ValueError(f"a request {request_id!r} is open already")
        session.requests[request_id] = self
        self._requests.append(request_id)
        try:
            yield request_id
        finally:
            self._requests.remove(request_id)
            del session.requests[request_id]
            session.end_scope(Scope.REQUEST, request_id)

    # --- points ---

    async def system_prompt(self, base: str) -> str:
        """The system prompt as extensions want it; begin each time with your own unmodified one.

        First the sections that extensions have registered for this model and client are appended, highest priority first,
        each after an empty line; then who intercepts `before_agent_start` is asked, and may replace the whole of it.

        If this raises `trio.Cancelled`, the prompt that it gave last counts.

        Raises:
          PayloadError: It is longer than `limits.system_prompt_bytes`.
        """
        self._check_open()
        session = self.session
        prompt, told = self._with_sections(base, but=frozenset())  # it is made anew
        body = {
            "system_prompt": prompt,
            "session_id": session.id,
            "agent_run_id": self.id,
            "cwd": clean_text(str(session.cwd)),
            "provider": session.model.provider,
            "model": session.model.model,
        }
        verdict = await session.intercept("before_agent_start", body)
        self._sections_told = told
        return str(verdict.value["system_prompt"])

    def _with_sections(self, base: str, *, but: Collection[int]) -> tuple[str, frozenset[int]]:
        """The prompt with the extensions' sections but these (handles), and the handles of what was put in.

        One that does not fit is left out, and its extension told of.
        """
        session = self.session
        limit = session.host.config.limits.system_prompt_bytes
        whole = clean_text(base)
        size = len(whole.encode())
        if size > limit:
            raise PayloadError(f"the system prompt has more than {limit} bytes")
        sections = session.registrations.prompt_sections(
            session.model.provider, session.model.model, session.is_interactive, **where(self)
        )
        put_in = []
        for record, section in sections:
            if record.handle in but:
                continue
            more = f"\n\n{section.text}" if whole else section.text
            if size + len(more.encode()) > limit:
                record.registration.value.instance.report(
                    Code.SECTION_LEFT_OUT,
                    Severity.WARNING,
                    f"prompt section {section.section_id!r}: the system prompt would have more than {limit} bytes",
                )
                continue
            put_in.append(record.handle)
            whole += more
            size += len(more.encode())
        return whole, frozenset(put_in)

    async def turn_start(self, step: int) -> Verdict:
        """A step of the model begins: tells `turn_start`, then asks whether it may; hooks are told `turn_started` then.

        Where the verdict is blocked, do not call the model; its reason is for the user.
        """
        self._check_open()
        self.turn_id = f"{self.id}-turn-{step}"
        self.emit(Event.TURN_START, {"step": step})
        verdict = await self.session.ask(
            Occasion(event=Event.TURN_START.value, payload=self.about({"step": step}), run=self)
        )
        if not verdict.blocked:
            self.observe(HookEvent.TURN_STARTED, {"step": step, "metadata": {"turn_id": self.turn_id}})
        return verdict

    def turn_end(self, *, stop: str = "", error: str = "") -> None:
        """The model's answer is complete, before tools run: tells `turn_end`."""
        self._check_open()
        self.emit(Event.TURN_END, {key: value for key, value in (("stop", stop), ("error", error)) if value})

    @asynccontextmanager
    async def assistant_text(self, message_id: str) -> AsyncIterator[AssistantText]:
        """One message of the model's while it streams.

        On leaving, `finish` is called where it was not. Where the body raises or is cancelled, the message is discarded:
        nobody is asked or told, and what was held stays unseen.
        """
        self._check_open()
        text = AssistantText(self, message_id)
        text.begin()
        try:
            yield text
            await text.finish()
        finally:
            text.close()

    def tool_call(
        self,
        tool_id: str,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        assistant_message: Mapping[str, Any] | None = None,
    ) -> AbstractAsyncContextManager[ToolCall]:
        """One tool call from its proposal to its one result.

        Entering tells `tool_call` and asks the chain; leaving tells `tool_result`, exactly once, also when cancelled.
        A call that is left without `execute` counts as blocked.

        Args:
          tool_id: The model's id of the call.
          name: The tool.
          arguments: An object, or the JSON text the model wrote; where that is no object, the call is refused.
          assistant_message: The message the call stands in, for hooks that are asked about it.
        """
        self._check_open()
        return self.session.tool_call(tool_id, name, arguments, run=self, assistant_message=assistant_message)

    @contextmanager
    def compaction(self, *, message_count: int, token_estimate: int) -> Iterator[Compaction]:
        """The transcript is compacted: tells `pre_compact`, and always `post_compact` with how it ended."""
        self._check_open()
        self._compactions += 1
        compaction = Compaction(f"{self.id}-compaction-{self._compactions}", message_count, token_estimate)
        about = {"compaction_id": compaction.id, "message_count": message_count, "token_estimate": token_estimate}
        self.emit(Event.PRE_COMPACT, about)
        outcome: dict[str, str] | None = None
        try:
            yield compaction
        except BaseException as exc:  # also a cancellation: how it ended is told in every case
            outcome = _failure(exc)
            raise
        finally:
            if outcome is None:
                outcome = {"status": compaction.status}
                if compaction.error:
                    outcome["error"] = cut_text(clean_text(compaction.error), _MAX_ERROR)
            compaction.status = outcome["status"]
            self.emit(Event.POST_COMPACT, {**about, **outcome})
            worked = outcome["status"] == "completed"
            event = HookEvent.COMPACTION_SUCCEEDED if worked else HookEvent.COMPACTION_FAILED
            self.observe(event, {"metadata": {**about, **outcome}})


def _failure(exc: BaseException) -> dict[str, str]:
    """How a body that raised has ended, in zot's words."""
    if isinstance(exc, trio.TooSlowError):
        return {"status": "timed_out", "error": "timed out"}
    if isinstance(exc, Exception):
        return {"status": "failed", "error": cut_text(clean_text(f"{type(exc).__name__}: {exc}"), _MAX_ERROR)}
    return {"status": "cancelled"}
