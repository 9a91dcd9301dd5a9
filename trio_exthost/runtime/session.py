"""A session: one conversation of the agent, with its own ledger and its own instance of each extension."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.config import checked_path
from trio_exthost.diagnostics import Code, Diagnostic, Severity
from trio_exthost.effects import Change, DisposeCause, EffectLedger, Scope
from trio_exthost.errors import ClosedError
from trio_exthost.hooks import LIFE_POINTS, Event, HookEvent
from trio_exthost.policy import Verdict
from trio_exthost.runtime import chain, commands, toolcall
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.fanout import Fanout
from trio_exthost.runtime.follow_ups import FollowUp, FollowUps
from trio_exthost.runtime.guards import RequiredGuards, ReservedNames
from trio_exthost.runtime.instance import Instance
from trio_exthost.runtime.invocation import Invocation
from trio_exthost.runtime.loading import Loader
from trio_exthost.runtime.models import ModelCatalogue
from trio_exthost.runtime.observing import Observing
from trio_exthost.runtime.occasion import POINTS, Occasion
from trio_exthost.runtime.outcomes import CommandOutcome
from trio_exthost.runtime.panels import Panel, Panels
from trio_exthost.runtime.persistence import Persistence
from trio_exthost.runtime.registration import Registrar
from trio_exthost.runtime.registrations import Registrations
from trio_exthost.runtime.reloading import Reloader
from trio_exthost.runtime.results import ToolResult, clean_text
from trio_exthost.runtime.run import AgentRef, Run
from trio_exthost.runtime.session_loading import SessionLoading
from trio_exthost.runtime.session_offers import SessionOffers
from trio_exthost.runtime.session_points import SessionPoints, dispatched
from trio_exthost.runtime.toolcall import ToolCall
from trio_exthost.runtime.tools import HostTool
from trio_exthost.runtime.views import Views

if TYPE_CHECKING:
    from trio_exthost.runtime.host import Host, ModelRef
    from trio_exthost.runtime.patience import Patience
    from trio_exthost.runtime.questions import Question

Confirm = Callable[["ToolCall"], Awaitable[bool]]
"""Asks a person whether a tool call may run, as it stands after the chain."""


class Session(SessionLoading, SessionOffers, SessionPoints):
    """One conversation. Made by `Host.open_session` only; every method is for the host's thread."""

    def __init__(
        self,
        host: Host,
        session_id: str,
        *,
        cwd: str | os.PathLike[str],
        client: HostClient | None,
        tools: Sequence[HostTool],
        model: ModelRef,
        confirm: Confirm | None,
        builtin_commands: Collection[str],
        models: ModelCatalogue | None,
        points: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self.host = host
        self.id = session_id
        self.cwd: Path = checked_path(cwd).absolute()
        self.model = model
        self.confirm = confirm
        self.host_tools: dict[str, HostTool] = {tool.name: tool for tool in tools}
        self.builtin_commands: frozenset[str] = frozenset(name.casefold() for name in builtin_commands)
        self.guards: RequiredGuards = RequiredGuards(self)
        self.reserved: ReservedNames = ReservedNames(self)
        self.registrations: Registrations = Registrations(
            models=models,
            secrets=host.secrets,
            reserved=self.reserved.now,
            publish=self._publish,
            on_failure=lambda why: host.report(Code.CALLBACK_FAILED, Severity.ERROR, why, session=self),
        )
        """What extensions have registered, and the questions the agent may ask about it."""
        self.ledger: EffectLedger = self.registrations.ledger
        self.runs: dict[str, Run] = {}
        """The runs that are open, by id."""
        self.requests: dict[str, Run] = {}
        """The requests that are open, by id, each with its run."""
        self.views: Views = Views()
        self.cwd_text: str = clean_text(str(self.cwd))
        """The directory as a frame can hold it: a path need not be UTF-8."""
        self.points: frozenset[HookEvent] = dispatched(points)
        """The life-cycle points that this agent has."""
        self.fanout: Fanout = Fanout(self, self.cwd_text)
        self.observing: Observing = Observing(self)
        self.follow_ups: FollowUps = FollowUps()
        self.persistence: Persistence = Persistence(self, host.open_state)
        self.panels: Panels = Panels(self)
        self.asked: set[Question] = set()
        """Open questions of the host itself."""
        self.registrar: Registrar = Registrar(self)
        self.loader: Loader = Loader(self)
        self._reloader = Reloader(self)
        self.is_interactive: bool = client is not None
        self._client: HostClient = client or HostClient()
        self._sequence = 0
        self._is_started = False
        self._is_closed = False
        self._runs = 0

    # --- the primitives ---

    @trio.lowlevel.enable_ki_protection
    def emit(self, event: str, payload: Mapping[str, Any] | None = None) -> int:
        """Tell everybody who subscribes; never blocks.

        Frames of one extension keep their order: what is emitted before a call arrives before it. There is no
        acknowledgement. An extension that reads too slowly loses its oldest waiting events (counted, reported), never
        `session_start` and `session_end`.

        Args:
          event: Any name; extensions may subscribe to any.
          payload: JSON values; its keys stand at the top level of the frame.

        Returns:
          The event's sequence number, strictly growing in the session.

        Raises:
          WrongThread: Called from another thread; nothing was changed.
          PayloadError: Not JSON, not finite, or larger than a frame; nobody was told. (Not checked if nobody subscribes.)
          ClosedError: The session has ended.
        """
        self.host.check_thread()
        if self._is_closed:
            raise ClosedError(f"session {self.id!r} has ended")
        if not self._is_started:
            self.start()
        sequence = self._sequence = self._sequence + 1
        self.fanout.tell(event, payload or {}, sequence)
        return sequence

    async def intercept(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        origin: str = "",
        run_id: str = "",
        run: Run | None = None,
    ) -> Verdict:
        """Ask who takes part at a point, one after the other, and decide.

        Order: manifest priority descending, then catalogue order, then a hook's own priority, then registration. Each sees
        the value the previous one left; the first block ends the chain; who had answered before the value changed is asked
        once more. Then hooks that observe the point are told.

        If this raises `trio.Cancelled`, a question that had not been written is withdrawn; nothing was decided.

        Args:
          event: `tool_call`, `turn_start`, `assistant_message` or `before_agent_start`, or a gate or transform of the hook
            contract (`input`, `before_compaction`, ...).
          payload: The request's keys, as zot's protocol has them, or as the schema of the point says.
          origin: The extension that caused it; it is not asked about itself.
          run_id: In which run, for the decision's record, where `run` is not given; that of the payload if neither is.
          run: In which run; hooks that are bound to it are asked as well.

        Raises:
          ValueError: There is no such point.
          PayloadError: The payload cannot be sent.
          ClosedError: The session has ended.
        """
        return await self.ask(Occasion(event=event, payload=payload, origin=origin, run_id=run_id, run=run))

    async def ask(self, occasion: Occasion) -> Verdict:
        """As `intercept`, for the runtime."""
        self.host.check_thread()
        if occasion.event not in POINTS:
            raise ValueError(f"nobody can intercept {occasion.event!r}: the points are {', '.join(POINTS)}")
        self._ensure_started()
        return await chain.intercept(self, occasion)

    def observe(self, event: str, payload: Mapping[str, Any], *, run: Run | None = None) -> int | None:
        """Tell hooks that observe a life-cycle point; never blocks.

        `Run` and `Session` tell every point they have a method for; this is for what an agent adds.

        Returns:
          The sequence number, or None where nobody observes it.

        Raises:
          ValueError: The hook contract has no such point.
          PayloadError: The payload cannot be sent; nobody was told.
          ClosedError: The session has ended.
        """
        if event not in LIFE_POINTS:
            raise ValueError(f"there is no life-cycle point {event!r}")
        self._ensure_started()
        return self.observing.tell(event, payload, run=run)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, tool_id: str | None = None, run: Run | None = None
    ) -> ToolResult:
        """Run whoever owns the tool now: no events, no interceptors, no confirmation (`Run.tool_call` has them).

        A tool that an extension registered as one that is never run is refused here, too.

        If this raises `trio.Cancelled`, a call that had not been written is withdrawn, one that had been is cancelled where
        the extension can be told.

        Raises:
          UnknownTool: Nobody has it.
          GuardAbsent: The policy keeps the name for an extension that does not serve it now.
          InvalidArguments: They do not match the schema it was registered with in the effect dialect.
          CallError: Its extension gave no usable answer; `may_have_run` says whether it can have begun.
          ClosedError: The session has ended.
        """
        self._ensure_started()
        invocation = Invocation(
            session=self,
            tool_id=tool_id or f"call-{self.next_sequence()}",
            name=name,
            arguments=arguments,
            run=run,
        )
        return await invocation.invoke()

    async def run_command(
        self, name: str, arguments: str | Mapping[str, Any] = "", *, run: Run | None = None
    ) -> CommandOutcome:
        """Run a command of an extension; at most `deadlines.command_s`.

        If this raises `trio.Cancelled`, a command that had not been written is withdrawn; one of the effect dialect that
        had been is told (`cancel`), and its answer is dropped.

        Args:
          name: With or without its slash, in any case.
          arguments: The rest of the line, or a mapping. A command of zot gets a mapping as JSON text; for a command of the
            effect dialect a text is parsed as JSON, and both must match its schema.
          run: The run it belongs to: commands bound to it are found, and it is told to the extension.

        Raises:
          UnknownCommand: Nobody has it.
          InvalidArguments: They do not match its schema; it was not asked.
          CallError: No usable answer: `CallTimedOut`, `ExtensionExited`, `Overloaded`, ...
          ClosedError: The session has ended.
        """
        self._ensure_started()
        return await commands.run_command(self, name, arguments, run)

    # --- snapshots ---

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self._is_closed

    def panel(self, panel_id: str) -> Panel:
        """The open panel of this id.

        Raises:
          ClosedError: There is none.
        """
        panel = self.panels.find(panel_id)
        if panel is None:
            raise ClosedError(f"no panel {panel_id!r} is open")
        return panel

    # --- the agent's level ---

    @contextmanager
    def open_run(
        self,
        *,
        parent: Run | None = None,
        agent: AgentRef | None = None,
        run_id: str | None = None,
        follow_up: FollowUp | None = None,
    ) -> Iterator[Run]:
        """Work off one request of the user; a sub-agent's run has a parent, and is told as such.

        Runs of a session may overlap. Leaving ends what extensions registered for this run.

        Args:
          parent: The run it is a part of.
          agent: The sub-agent.
          run_id: Its id; made up if not given.
          follow_up: What it works off, if it is no request of the user's (`next_follow_up`).

        Raises:
          ValueError: A run of that id is open.
          ClosedError: The session has ended.
        """
        self._ensure_started()
        self._runs += 1
        depth = follow_up.depth if follow_up is not None else 0
        run = Run(self, run_id or f"{self.id}-run-{self._runs}", parent=parent, agent=agent, follow_up_depth=depth)
        if run.id in self.runs:
            raise ValueError(f"a run {run.id!r} is open already")
        self.runs[run.id] = run
        try:
            with run.told():
                yield run
        finally:
            del self.runs[run.id]
            self.end_scope(Scope.RUN, run.id)

    def tool_call(
        self,
        tool_id: str,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        run: Run | None = None,
        origin: str = "",
        chain: tuple[str, ...] = (),
        within: Patience | None = None,
        below: int | None = None,
        assistant_message: Mapping[str, Any] | None = None,
    ) -> AbstractAsyncContextManager[ToolCall]:
        """One tool call from its proposal to its one result: see `Run.tool_call`."""
        return toolcall.open_tool_call(
            self,
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

    # --- for the runtime ---

    def end_scope(self, scope: Scope, id: str) -> None:
        """A run or request has ended: what was registered for it goes, also of instances that are out of service."""
        self.registrations.dispose_scope(scope, id)
        self.loader.forget_scope(scope, id)

    def check_open(self) -> None:
        """Raise where it has ended, or the caller is on another thread."""
        self.host.check_thread()
        if self._is_closed:
            raise ClosedError(f"session {self.id!r} has ended")

    def _ensure_started(self) -> None:
        self.check_open()
        self.start()

    def start(self) -> None:
        """Tell `session_start`, once; before everything else that is told."""
        if not self._is_started:
            self._is_started = True
            told = tuple(
                each for each in self.views.subscribers.get(Event.SESSION_START, ()) if not each.life.is_beginning
            )
            self.fanout.send(Event.SESSION_START, {}, self.next_sequence(), told)
            self.observing.tell(HookEvent.SESSION_START, {"reason": "initial"})

    def welcome(self, instance: Instance) -> None:
        """An instance was admitted and has begun: one that came after the start is told of it now."""
        if self._is_started:
            self.fanout.welcome(instance)
            self.observing.tell(HookEvent.SESSION_START, {"reason": instance.life.reason}, to=instance)

    def raise_sequence(self, least: int) -> None:
        """Numbers begin above this one: it was drawn in an earlier life of the session."""
        self._sequence = max(self._sequence, least)

    def next_sequence(self) -> int:
        """The session's next number: events, registrations, calls; strictly growing."""
        self._sequence += 1
        return self._sequence

    def _publish(self, changes: Sequence[Change]) -> None:
        """All changes of one mutation of the ledger go into the views; then who wants to know is told."""
        if self.views.apply(changes):
            self.mark_changed()
            self.host.flusher.call_soon(self._tell_tools_changed)
        for change in changes:
            entry = change.record.registration.value
            if entry.registration_id is not None:
                entry.instance.declarations.on_change(change)
        if self.host.instrument is not None:
            self.host.instrument.effects_changed(self.id, tuple(changes))

    def tell_client(self, callback: str, *arguments: Any) -> bool:
        """Call the embedder's client; whether it has this callback and did not raise, which is a diagnostic of the host."""
        method = getattr(self._client, callback, None)
        if method is None:
            return False
        try:
            method(self, *arguments)
        except (Exception, trio.Cancelled) as exc:  # noqa: BLE001, ASYNC103 - synchronous code of the embedder's; its fault must not end an extension
            self.host.report(Code.CALLBACK_FAILED, Severity.ERROR, f"HostClient.{callback} raised {exc!r}")
            return False  # noqa: ASYNC104 - no cancellation of trio's comes out of what is synchronous
        return True

    def tell_diagnostic(self, diagnostic: Diagnostic) -> None:
        """As `tell_client`, but a failing `diagnostic` callback is only counted: telling it would fail again."""
        tell = getattr(self._client, "diagnostic", None)
        try:
            if tell is not None:
                tell(self, diagnostic)
        except (Exception, trio.Cancelled) as exc:  # noqa: BLE001, ASYNC103 - as in tell_client
            self.host.diagnostics.add(
                Diagnostic(Code.CALLBACK_FAILED, Severity.ERROR, f"HostClient.diagnostic raised {exc!r}")
            )

    def withdraw(self, instance: Instance, cause: DisposeCause) -> None:
        """Reverse everything an instance did here."""
        self.registrations.dispose_owner(instance.owner, cause)
        self.panels.close_all_of(instance)

    async def aclose(self) -> None:
        """End it: tell `session_end`, stop the extensions, wait for them. Idempotent; shielded, and bounded by their stop."""
        self.host.check_thread()
        if not self._is_closed:
            if self._is_started:
                self.emit(Event.SESSION_END, {"reason": "shutdown"})
            self._is_closed = True
        for question in tuple(self.asked):
            question.withdraw("the session has ended")
        await self.loader.stop_all()
        self.registrations.dispose_all()
        await self.persistence.aclose()


__all__ = ["Confirm", "Session"]
