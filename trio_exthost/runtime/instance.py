"""One process of one extension in one session: its life, in its own nursery.

Everything that happens to it ends in `end`, once, with a cause; the instance's own task does the rest: reverse its
effects, ask it to go, make it go, read what it wrote last, fail what is pending, and say how it ended. Its failure never
leaves the nursery, except as a diagnostic and a state. A bug of ours does leave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from trio_exthost.diagnostics import Code, Severity, cut_message
from trio_exthost.effects import DisposeCause, Registrant, Scope
from trio_exthost.errors import LoadError, PayloadError
from trio_exthost.runtime.asking import Questions
from trio_exthost.runtime.brokers import Brokers
from trio_exthost.runtime.declarations import Declarations
from trio_exthost.runtime.entry import Entry, Kind
from trio_exthost.runtime.failure import abort_calls, load_error, reason_of
from trio_exthost.runtime.greeting import hello_ack
from trio_exthost.runtime.health import Health
from trio_exthost.runtime.life_hooks import LifeHooks
from trio_exthost.runtime.lifecycle import State, check_move
from trio_exthost.runtime.nested import NestedCalls
from trio_exthost.runtime.notices import Notices
from trio_exthost.runtime.outbox import Outbox
from trio_exthost.runtime.process import ExitStatus
from trio_exthost.runtime.reading import Reading
from trio_exthost.runtime.registering import Registering
from trio_exthost.runtime.registration import owner_of
from trio_exthost.runtime.replies import ReplyTable
from trio_exthost.runtime.services import service_nursery
from trio_exthost.runtime.tool_limits import tell_cuts
from trio_exthost.runtime.transport import Transport
from trio_exthost.wire import Connection, Phase, from_extension, to_extension
from trio_exthost.wire.effects_to_extension import EventsDropped

if TYPE_CHECKING:
    from trio_exthost.config import Deadlines, Limits
    from trio_exthost.packages import Candidate, Manifest
    from trio_exthost.runtime.logs import ExtensionLog
    from trio_exthost.runtime.session import Session

TOLD = 20
"""Diagnostics of one code and instance that are told one by one."""
_OF_ITS_ROW = frozenset({Code.REGISTRATION_REFUSED, Code.MANIFEST_WARNING})
"""What is a warning in its row, too: it goes on without something, and nobody may have read the diagnostic."""
_STAGES = {State.STARTING: "spawn", State.HANDSHAKING: "hello", State.REGISTERING: "registering"}
"""What it was at when its end began; `running` in every other state."""


class Instance:
    """One incarnation. Made by its session; `run` is its task in the host's nursery."""

    successor: Instance | None = None
    """Who has taken over from it, in one step with its records; it gets no new work then."""
    uptime_s: float | None = None
    """Seconds from its start to the beginning of its end, once that has begun; None where there was no process."""
    commits: int = 0
    """How many of its `state_commit`s are being stored."""

    def __init__(self, session: Session, candidate: Candidate, number: int, rank: int) -> None:
        """Nothing is started yet."""
        assert candidate.manifest is not None
        host = session.host
        self.session = session
        self.host = host
        self.candidate = candidate
        self.manifest: Manifest = candidate.manifest
        self.name: str = candidate.name
        self.number = number
        self.rank = rank
        self.priority: int = self.manifest.exthost.priority
        self.limits: Limits = host.config.limits
        self.deadlines: Deadlines = host.config.deadlines
        self.registrant: Registrant = _registrant(self)
        self.state: State = State.STARTING
        self.reason: str = ""
        self.error: LoadError | None = None
        self.registrations = 0
        self.settled: trio.Event = trio.Event()
        """Set once it is ready, or never will be."""
        self.ended: trio.Event = trio.Event()
        """Set once nothing of it is left."""
        self.connection: Connection = host.new_connection()
        self.replies: ReplyTable = ReplyTable(host.next_id)
        self.nested: NestedCalls = NestedCalls(self)
        self.questions: Questions = Questions(self)
        self.brokers: Brokers = Brokers(self)
        self.life: LifeHooks = LifeHooks(self)
        self.declarations: Declarations = Declarations(self)
        self.registering: Registering = Registering(self)
        self.health: Health = Health(self)
        self.log: ExtensionLog = host.open_log(self.name)
        self._transport: Transport | None = None
        self.outbox: Outbox
        """What waits to be written to it; only once it was spawned."""
        self._changed = trio.Event()
        self._cause: tuple[Code | None, str] | None = None
        self.argv: list[str] = []
        self.env_path: str | None = None
        self._stage = ""
        self._early: list[to_extension.Frame] = []
        self._told: Counter[Code] = Counter()
        self._bug: Exception | None = None
        self._stopped_by: DisposeCause = DisposeCause.OWNER
        self.started_at: float = 0.0
        self.notices: Notices = Notices()
        self.pid_was: int | None = None
        """Process id, once there was a process."""
        self.nursery: trio.Nursery | None = None

    # --- what others ask ---

    @property
    def pid(self) -> int | None:
        """Process id, while there is a process."""
        return self._transport.process.pid if self._transport is not None and not self.ended.is_set() else None

    @property
    def is_available(self) -> bool:
        """Whether it can be given work; one that is out of service, only a probe."""
        return (
            self._cause is None
            and not self.life.is_migrating
            and (self.state is State.READY or (self.state is State.TRIPPED and self.health.may_be_asked))
        )

    @property
    def is_ending(self) -> bool:
        """Whether its end has begun, or has been."""
        return self._cause is not None or self.ended.is_set()

    @property
    def capabilities(self) -> frozenset[str]:
        """The words of its hello that mean something."""
        return self.connection.capabilities

    def report(self, code: Code, severity: Severity, message: str) -> None:
        """Tell a diagnostic of this instance; it is in its log, too.

        Each is counted, but of one code only the first `TOLD` are told, then the 32nd, the 64th and so on: a program that
        prints garbage must not push everybody else's diagnostics out.
        """
        if code in _OF_ITS_ROW and severity is Severity.WARNING:
            self.notices.warn(message)
        self._told[code] += 1
        times = self._told[code]
        if times > TOLD:
            if times & (times - 1):
                self.host.diagnostics.count(code)
                return
            message = f"{message} (time {times} of {code})"
        message = cut_message(message)
        self.log.note(f"{code}: {message}")
        self.host.report(code, severity, message, instance=self)

    def tell_client(self, callback: str, *arguments: Any) -> None:
        """Call the embedder's client."""
        self.session.tell_client(callback, *arguments)

    def post(self, frame: to_extension.Frame) -> None:
        """Queue a frame that is neither an event nor a call; nothing, once its end has come so far.

        What a program asks for in one breath with its `hello` is answered after `hello_ack`.
        """
        connection = self.connection
        if not connection.acknowledged and frame.TYPE not in connection.dialect.sendable_unacknowledged:
            self._early.append(frame)
        elif self._transport is not None and not self.outbox.is_closing:
            data = self.connection.send(frame)
            self.outbox.post(Entry(data, Kind.ANSWER))
            if self.host.instrument is not None:
                self.host.instrument.frame_queued(self.session.id, self.name, data)

    def drain(self) -> None:
        """Handle, on the spot, whatever it has written so far."""
        if self._transport is not None:
            self._transport.drain()

    def stop(self, cause: DisposeCause = DisposeCause.OWNER) -> None:
        """Ask it to end; wait for `ended`. Idempotent, never blocks: the ladder is climbed in its own task."""
        self._stopped_by = cause
        self.end(None, "it was asked to stop")

    def end(self, code: Code | None, why: str) -> None:
        """Its end begins, with this cause, unless it has begun. `code` is None where it was asked to."""
        if self._cause is None:
            self._cause = (code, why)
            # A program that ends at once may have greeted before anybody could answer it.
            has_greeted = self.state is State.HANDSHAKING and self.connection.phase in (Phase.REGISTERING, Phase.READY)
            self._stage = "registering" if has_greeted else _STAGES.get(self.state, "running")
            if self.pid_was is not None:
                self.uptime_s = trio.current_time() - self.started_at
            if self._transport is not None and code is Code.FRAME_TOO_LONG:
                self._transport.stdout.pause()  # it floods: what more comes is of no use
            self.poke()

    # --- what the wire tells (synchronous; called by the pump) ---

    def on_bug(self, exc: Exception) -> None:
        """The host failed to handle a frame of it: its task raises that."""
        self._bug = exc
        self.end(Code.CALLBACK_FAILED, f"the host failed to handle a frame: {exc!r}")

    def cannot_answer(self, what: str, exc: PayloadError) -> None:
        """An answer to something it sent does not fit into a frame: its id fills one, or nearly."""
        self.report(Code.FRAME_INVALID, Severity.WARNING, f"{what} cannot be answered: {exc.message}")

    def on_output_closed(self) -> None:
        """Its stdout has ended."""
        self._expect_exit(Code.OUTPUT_CLOSED, "it closed its output but goes on running")

    def on_input_closed(self, why: str) -> None:
        """It reads no more."""
        self._expect_exit(Code.INPUT_CLOSED, f"{why} but goes on running")

    def on_stalled(self, why: str) -> None:
        """It has taken nothing of what waits for it for too long."""
        if self.connection.phase is not Phase.STOPPING:
            self.end(Code.UNRESPONSIVE, why)

    def _expect_exit(self, code: Code, why: str) -> None:
        if self.nursery is not None and self._transport is not None and not self.is_ending:
            self.nursery.start_soon(self._transport.expect_exit, code, why, name=f"exit of {self.name}")

    def on_hello(self, _frame: from_extension.Hello) -> None:
        """It has said who it is."""
        self.poke()

    def admit(self) -> None:
        """Its registrations go into the ledger, and it is ready; settled once its hook has begun, if it has one."""
        self.move(State.READY)
        self.registering.apply_staged()
        self.life.begin()

    def has_begun(self) -> None:
        """It is done with its begin: it is told of the session, and whoever waits for it goes on."""
        self.session.welcome(self)
        self.settled.set()
        self.poke()

    def hand_over(self, successor: Instance) -> None:
        """A successor takes over in this very step; its records are about to leave the ledger."""
        self.successor = successor
        self.life.keep_last_words()

    # --- its task ---

    def poke(self) -> None:
        """Something it may wait for has changed."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def move(self, new: State) -> None:
        """Go to another state of its life; a move that is not in the table is a bug of ours."""
        old = self.state
        check_move(old, new)
        self.state = new
        self.log.note(f"{old} -> {new}")
        if self.host.instrument is not None:
            self.host.instrument.state_changed(self.session.id, self.name, old, new)
        self.session.mark_changed()

    async def until(self, condition: Callable[[], bool], deadline: float) -> bool:
        """Whether `condition` holds by `deadline`; what is in the pipe already is looked at before it decides."""
        while not condition():
            with trio.move_on_at(deadline):
                await self._changed.wait()
                continue
            self.drain()
            return condition()
        return True

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Live, from the spawn to the last byte. Raises nothing but bugs of ours."""
        self.started_at = trio.current_time()
        try:
            # Writer, exit and input go on while it is wound up, also where everything around it is cancelled.
            async with service_nursery() as nursery:
                self.nursery = nursery
                transport = self._spawn()
                if transport is not None:
                    try:
                        transport.serve(nursery)
                        await self._live()
                    finally:
                        await self._wind_up(transport)  # noqa: ASYNC102 - it shields itself, with a deadline
        finally:
            self._release()
        if self._bug is not None:
            raise self._bug

    def _spawn(self) -> Transport | None:
        from trio_exthost.packages import explain_spawn_error  # noqa: PLC0415 - heavy, and only where one is spawned

        try:
            is_reload = self.life.reason == "reload"
            self.argv, env = self.host.command_line(self.candidate, is_reload=is_reload)
            self.env_path = env.get("PATH")
            transport = Transport(self, self.argv, env, stdout=Reading(self))
        except LoadError as exc:
            self.end(Code.LOAD_FAILED, exc.message)
            self._fail(hint=exc.hint, word=exc.code)
            return None
        except OSError as exc:
            self.end(Code.LOAD_FAILED, explain_spawn_error(exc, self.argv, self.candidate.directory))
            self._fail()
            return None
        self._transport = transport
        self.pid_was = transport.process.pid
        self.outbox = transport.outbox
        self.log.note(f"started {self.argv} as process {transport.process.pid}")
        tell_cuts(self)
        self.move(State.HANDSHAKING)
        return transport

    def encode_gap(self, count: int, first: int, last: int) -> bytes | None:
        """The frame that tells it of dropped events, if it wants to know."""
        if "gaps" not in self.capabilities:
            return None
        return self.connection.send(EventsDropped(count, first, last))

    def on_drop(self, count: int, first: int, last: int) -> None:
        """Events for it were dropped."""
        self.report(
            Code.EVENTS_DROPPED,
            Severity.WARNING,
            f"{count} events were dropped (sequence {first} to {last}): it reads too slowly",
        )
        self.host.books.outcomes.dropped(self.session.id, self.name, count, first, last)

    async def _live(self) -> None:
        """Handshake, registrations, and then whatever comes until its end begins."""
        manifest_s = self.manifest.exthost.startup_timeout_s
        hello_s = manifest_s or self.deadlines.hello_s

        def has_greeted() -> bool:
            return self.connection.phase is not Phase.HANDSHAKING or self._cause is not None

        if not await self.until(has_greeted, self.started_at + hello_s):
            self.end(
                Code.LOAD_FAILED,
                f"it sent no hello within {hello_s:g} s (output kept in a buffer? flush after each line; "
                "a slow start? set exthost.startup_timeout_s in its manifest)",
            )
        if self._cause is None:
            self._acknowledge()
        if self._cause is None:
            await self.registering.wait()
        while self._cause is None:
            await self._changed.wait()

    def _acknowledge(self) -> None:
        try:
            self.post(hello_ack(self))
        except PayloadError as exc:  # its bounds are the operator's: they leave no room for it
            self.end(Code.LOAD_FAILED, f"it cannot be greeted: {exc.message}")
            return
        self.outbox.flush()
        self.connection.acknowledge()
        early, self._early = self._early, []
        for frame in early:
            try:
                self.post(frame)
            except PayloadError as exc:
                self.cannot_answer("a frame", exc)
        self.move(State.REGISTERING)
        self.registering.begin()

    # --- its end ---

    async def _wind_up(self, transport: Transport) -> None:
        """Reverse its effects, then end its process and read what it wrote last. Shielded, at most `stop_total_s`."""
        if self._cause is None:
            self.end(None, "the host is closing")
        assert self._cause is not None
        is_asked = self._cause[0] is None
        self.session.loader.admission.advance()
        last_words = self.life.last_words(is_asked=is_asked)
        self.session.withdraw(self, self._stopped_by if is_asked else DisposeCause.FAULT)
        if is_asked or not transport.exited.is_set():
            # Also of one that exited by itself just before it was asked: it is stopped, not failed.
            self.move(State.STOPPING)
        if not transport.exited.is_set():
            if not is_asked:
                self._fail()
            if self._cause[0] is Code.OUTPUT_CLOSED:
                abort_calls(self, self._status)  # no answer can come any more; all others have until the exit
        until = trio.current_time() + self.deadlines.stop_total_s
        if self._bug is None:
            is_reload = self._stopped_by is DisposeCause.RELOAD
            await self.life.say_farewell(last_words, transport.exited, is_reload=is_reload)
        await transport.end(gently=self._bug is None, until=until)
        if not is_asked and self.error is None:
            self._fail()

    @property
    def _status(self) -> ExitStatus | None:
        return self._transport.status if self._transport is not None else None

    def _fail(self, hint: str = "", word: str = "") -> None:
        """Keep why it failed, for whoever asked for it, and tell it once; `word` is a closer code than the diagnostic's."""
        assert self._cause is not None
        code, why = self._cause
        self.error = load_error(self, word or code, why, stage=self._stage, status=self._status, hint=hint)
        self.reason = reason_of(self.error)
        if self.state is not State.STOPPING:
            self.move(State.FAILED)
        self.report(code or Code.LOAD_FAILED, Severity.ERROR, str(self.error))
        self.settled.set()

    def _release(self) -> None:
        """Nothing of it stays: pipes, calls, ledger. Synchronous, so that it happens in every case."""
        try:
            self.connection.close()
            is_failed = self._cause is None or self._cause[0] is not None
            if not self.reason and self._cause is not None:
                self.reason = self._cause[1]
            abort_calls(self, self._status)
            if self._transport is not None:
                self._transport.close()
            if self.state is not State.FAILED:
                self.move(State.FAILED if is_failed else State.STOPPED)
            self.log.note(f"ended: {self.reason} ({self._status or 'no exit status'})")
            self.log.close()
        finally:
            # Whoever waits for it must not wait for ever, whatever failed in here.
            self.session.loader.forget(self)
            self.settled.set()
            self.ended.set()

    @property
    def owner(self) -> Any:
        """Its name in the ledger."""
        return owner_of(self)


def _registrant(instance: Instance) -> Registrant:
    """What counts of it where it registers something: its manifest's permissions, and the operator's grants."""
    section = instance.manifest.exthost
    granted = instance.host.policy.grants(instance.name)
    return Registrant(
        extension_id=instance.name,
        scope=Scope[section.scope.upper()],
        granted=frozenset([*section.permissions, *section.optional_permissions, *granted]),
        override_grants=granted,
        state_schema=section.state_schema,
    )
