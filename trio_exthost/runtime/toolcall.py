"""A tool call has one owner: proposal, chain, confirmation, execution, and exactly one result, also when cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import trio

from trio_exthost.effects import ToolPermission
from trio_exthost.errors import CallError, CallTimedOut, GuardAbsent, PayloadError, UnknownTool
from trio_exthost.hooks import Event
from trio_exthost.policy import Outcome, Verdict
from trio_exthost.runtime.arguments import parse_arguments
from trio_exthost.runtime.bodies import permission_body, result_body
from trio_exthost.runtime.chain import intercept
from trio_exthost.runtime.confirmation import ask_client, decide_headless, prompting_owner, wanted_by
from trio_exthost.runtime.invocation import Invocation, owner_of_tool, permission_of
from trio_exthost.runtime.occasion import Occasion
from trio_exthost.runtime.patience import Patience, standing_still
from trio_exthost.runtime.progress import ProgressQueue
from trio_exthost.runtime.results import ToolResult, ToolStatus, clean_text, cut_text
from trio_exthost.runtime.tool_hooks import Execution
from trio_exthost.runtime.tools import Progress

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Confirm, Session

_UNASKED = "an extension wants the user asked about this call, and nobody was"


class ToolCall:
    """One call of a tool, as the chain left it. Made by `Run.tool_call`."""

    def __init__(
        self,
        session: Session,
        tool_id: str,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        run: Run | None,
        origin: str,
        chain: tuple[str, ...],
        within: Patience | None,
        below: int | None,
        assistant_message: Mapping[str, Any] | None,
    ) -> None:
        self.session = session
        self.run = run
        self.tool_id = tool_id
        self.name = name
        self.origin = origin
        self.verdict: Verdict
        """What the chain decided; set on entering."""
        self.result: ToolResult | None = None
        """The result, once there is one."""
        self.executed: bool = False
        """Whether the tool was begun."""
        self.confirmed: bool | None = None
        """What a person said; None: nobody was asked."""
        self.problem: str
        """Why the arguments cannot be used, or nothing."""
        self._chain = chain
        self._within = within
        self._denial = ""
        self._below = below
        self._about = {"assistant_message": assistant_message} if assistant_message is not None else {}
        self._raw = clean_text(arguments) if isinstance(arguments, str) else ""
        self._progress = ProgressQueue()
        self.progress: trio.MemoryReceiveChannel[Progress] = self._progress.receive
        """Receives what the running tool tells; it ends with the call."""
        self._original, self.problem = parse_arguments(arguments, session.host.config.limits)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments as they stand at the end of the chain; the model's own are in `verdict.original`."""
        return self.verdict.value["tool_args"]  # type: ignore[no-any-return]

    # --- entering and leaving ---

    async def _enter(self) -> None:
        payload = self._with_origin(
            {"tool_id": self.tool_id, "tool_name": self.name, "tool_args": dict(self._original)}
        )
        run_id = self.run.id if self.run is not None else ""
        self.verdict = Verdict(Event.TOOL_CALL, Outcome.BLOCK, payload, payload, reason="cancelled", run_id=run_id)
        self._emit(Event.TOOL_CALL, payload)
        refused = self._refused_at_once()
        if refused is not None:
            self.verdict = refused
            self.session.host.books.outcomes.chain_ended(self.session.id, self.verdict, 0.0)
            await trio.lowlevel.checkpoint()
            return
        prompt = None
        if self._permission is ToolPermission.PROMPT:
            prompt = (prompting_owner(self), f"tool {self.name!r} wants each call confirmed")
        self.verdict = await intercept(
            self.session,
            Occasion(
                event=Event.TOOL_CALL.value,
                payload=payload,
                run=self.run,
                run_id=run_id,
                origin=self.origin,
                prompt=prompt,
                tool_call_id=self.tool_id,
                about=self._about,
            ),
        )

    def _refused_at_once(self) -> Verdict | None:
        """The verdict about a call that no interceptor needs to be asked about; None where they do."""
        if self.problem:
            return attrs.evolve(self.verdict, reason=self.problem)
        try:
            if self._below is None:
                owner_of_tool(self.session, self.name, self.run)
        except UnknownTool:
            """Interceptors may still be asked; `execute` says that nobody has it."""
        except GuardAbsent as exc:
            return attrs.evolve(self.verdict, reason=exc.message, code=exc.code, hint=exc.hint, by=exc.extension)
        if self._permission is ToolPermission.BLOCK:
            return attrs.evolve(self.verdict, reason=f"tool {self.name!r} is registered as one that is never run")
        return None

    @property
    def _permission(self) -> ToolPermission:
        """The class of whoever would run it now."""
        return permission_of(self.session, self.name, self.run)

    @trio.lowlevel.enable_ki_protection
    def _leave(self, error: BaseException | None) -> None:
        """Exactly one `tool_result`; synchronous, so that a cancelled call has one too."""
        self._progress.close()
        result = self.result
        if result is None:
            result = ToolResult.error("cancelled", ToolStatus.CANCELLED)
            if error is None:
                result = ToolResult.error(self._refusal() or "the call was not executed", ToolStatus.BLOCKED)
            elif isinstance(error, Exception):
                result = ToolResult.error(f"{type(error).__name__}: {error}")
            self.result = result
        raw = cut_text(self._raw, self.session.host.config.limits.event_body_bytes) if self.problem else ""
        body: dict[str, Any] = {"tool_id": self.tool_id, "tool_name": self.name}
        body |= {"tool_args_raw": raw} if raw else {"tool_args": dict(self.arguments)}
        body |= {"status": result.status.value, "executed": self.executed, "result": result_body(result)}
        self._emit(Event.TOOL_RESULT, self._with_origin(body))

    def _with_origin(self, body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "origin_extension": self.origin} if self.origin else body

    def _emit(self, event: Event, body: Mapping[str, Any]) -> None:
        if self.run is not None:
            self.run.emit(event, body)
        elif not self.session.is_closed:
            self.session.emit(event, body)

    # --- what the agent does with it ---

    async def confirm(self, ask: Confirm | None = None) -> bool:
        """Ask a person, with `permission` events around it; False forbids `execute`.

        However long it takes, no deadline of the host's goes on meanwhile. Where nobody is there (no client, or one that
        says so), the answer is what the chain decided; if that is to ask a person, the policy's `headless_ask` decides.

        If this raises `trio.Cancelled`, the decision is told as `cancelled`, and the call cannot be executed.

        Args:
          ask: Asks, given this call; the session's `confirm` if not given. With neither, `HostClient.ask_user` is asked.
        """
        ask = ask or self.session.confirm
        if self.verdict.blocked:
            await trio.lowlevel.checkpoint()
            self.confirmed = False
            return False
        if self._is_alone(ask):
            await trio.lowlevel.checkpoint()
            return self._decide_alone()
        self.confirmed, self._denial = False, ""
        decision: str | None = "cancelled"
        try:
            with standing_still(self._within):
                if ask is None:
                    decision = await ask_client(self, self._tell_request)
                else:
                    self._tell_request()
                    decision = "approved" if await ask(self) else "denied"
        finally:
            if decision is not None:
                self.confirmed = decision == "approved"
                self._tell_decision(decision, "user", "")
        return self._decide_alone() if decision is None else self.confirmed

    def _is_alone(self, ask: Confirm | None) -> bool:
        return ask is None and not self.session.is_interactive

    def _decide_alone(self) -> bool:
        """What counts where nobody is there."""
        extension = wanted_by(self)
        if extension is None:
            self.decide(approved=True, source="policy")
            return True
        approved, why = decide_headless(self.session, extension)
        self._denial = "" if approved else why
        self.decide(approved=approved, source="policy", reason=why)
        return approved

    def _tell_request(self) -> None:
        about = self._with_origin({"tool_id": self.tool_id, "tool_name": self.name})
        preview = f"{self.name} {msgspec.json.encode(self.arguments).decode()}"[:200]
        self._emit(Event.TOOL_CONFIRMATION_REQUESTED, {**about, "tool_preview": preview})

    def decide(self, *, approved: bool, source: str = "remembered", reason: str = "") -> None:
        """Record a decision that no person was asked for now; tells `permission_decision`.

        Args:
          approved: Whether it may run.
          source: remembered, policy or yolo.
          reason: Why.
        """
        self.confirmed = approved
        self._tell_decision("approved" if approved else "denied", source, reason)

    def _tell_decision(self, decision: str, source: str, reason: str) -> None:
        body = permission_body(self.tool_id, self.name, decision, source, reason)
        self._emit(Event.PERMISSION_DECISION, self._with_origin(body))

    def _refusal(self) -> str:
        """Why it must not run, or nothing: the text the model is shown."""
        if self.problem:
            return self.problem
        if self.verdict.blocked:
            return self.verdict.reason
        if self.confirmed is False:
            return self._denial or "the user did not allow this call"
        if self._permission is ToolPermission.BLOCK:  # of whoever serves the name now
            return f"tool {self.name!r} is registered as one that is never run"
        return _UNASKED if self.confirmed is None and wanted_by(self) is not None else ""

    async def execute(self) -> ToolResult:
        """Run whoever owns the name now, or refuse with the reason. Once.

        Where a person was to be asked and `confirm` was not called, it is refused; where nobody is there to ask, the
        policy's `headless_ask` decides.

        Never raises for a fault of the tool: that is a result with `is_error`, whose text is for the model. If this raises
        `trio.Cancelled`, the call is given up, and `tool_result` says `cancelled`.

        Raises:
          RuntimeError: It was executed before.
        """
        if self.result is not None or self.executed:
            raise RuntimeError(f"tool call {self.tool_id!r} was executed before")
        refusal = self._refusal()
        if refusal is _UNASKED and self._is_alone(self.session.confirm):
            self._decide_alone()
            refusal = self._refusal()
        if refusal:
            await trio.lowlevel.checkpoint()
            self.result = ToolResult.error(refusal, ToolStatus.BLOCKED, may_have_run=False)
            return self.result
        self.executed = True
        execution = Execution(self)
        execution.begun()
        result = ToolResult.error("cancelled", ToolStatus.CANCELLED)
        try:
            result = await self._run_it(execution)
        finally:
            execution.ended(result)
        self.result = result  # a cancellation from here on does not take back what the tool has done
        self.result = await execution.transformed(result)
        return self.result

    async def _run_it(self, execution: Execution) -> ToolResult:
        """The tool's result, whatever became of it."""
        try:
            return await self._invocation(execution).invoke()
        except CallTimedOut as exc:
            return ToolResult.error(str(exc), ToolStatus.TIMED_OUT, may_have_run=exc.may_have_run)
        except (CallError, PayloadError) as exc:
            may_have_run = isinstance(exc, CallError) and exc.may_have_run
            self.executed = may_have_run
            return ToolResult.error(str(exc), may_have_run=may_have_run)
        except Exception as exc:  # noqa: BLE001 - the embedder's tool: its fault is the model's to read, not ours to raise
            return ToolResult.error(f"{type(exc).__name__}: {exc}")

    def _invocation(self, execution: Execution) -> Invocation:
        def send_progress(progress: Progress) -> None:
            self._progress.put(progress)
            execution.progressed(progress)

        return Invocation(
            session=self.session,
            tool_id=self.tool_id,
            name=self.name,
            arguments=self.arguments,
            run=self.run,
            origin=self.origin,
            chain=self._chain,
            within=self._within,
            below=self._below,
            send_progress=send_progress,
        )


@asynccontextmanager
async def open_tool_call(
    session: Session,
    tool_id: str,
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    run: Run | None,
    origin: str,
    chain: tuple[str, ...],
    within: Patience | None,
    below: int | None,
    assistant_message: Mapping[str, Any] | None = None,
) -> AsyncIterator[ToolCall]:
    """A tool call from its proposal to its result: see `Run.tool_call`."""
    call = ToolCall(
        session,
        tool_id,
        name,
        arguments,
        run=run,
        origin=origin,
        chain=chain,
        within=within,
        below=below,
        assistant_message=assistant_message,
    )
    error: BaseException | None = None
    try:
        await call._enter()  # noqa: SLF001 - its own module
        yield call
    except BaseException as exc:  # also a cancellation: each call has its one result
        error = exc
        raise
    finally:
        call._leave(error)  # noqa: SLF001 - its own module
        call.progress.close()
