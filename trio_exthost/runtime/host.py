"""The host: one per process. Configuration, the shared I/O tasks, ids, logs, and the way to open a session."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from trio_exthost.config import HostConfig
from trio_exthost.diagnostics import Code, Diagnostic, DiagnosticLog, Severity
from trio_exthost.errors import ClosedError, WrongThread
from trio_exthost.policy.policy import Policy
from trio_exthost.runtime.books import Books
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.decisions import Decisions
from trio_exthost.runtime.flusher import Flusher
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.logs import ExtensionLog
from trio_exthost.runtime.process import Process, SpawnedProcess, Spawner
from trio_exthost.runtime.pump import Pump
from trio_exthost.runtime.replies import id_source
from trio_exthost.runtime.services import service_nursery
from trio_exthost.runtime.session import Confirm, Session
from trio_exthost.runtime.stats import HostStats
from trio_exthost.runtime.watchdog import Watchdog
from trio_exthost.wire import ZOT, Codec, Connection

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.models import ModelCatalogue
    from trio_exthost.runtime.tools import HostTool
    from trio_exthost.state import StateStores

Catalogue = Callable[[HostConfig, Path], Awaitable[Sequence["Candidate"]]]
"""How a session finds its extensions: configuration and the session's cwd to candidates in catalogue order."""


@attrs.frozen
class ModelRef:
    """The model a session works with; told to extensions in `hello_ack`."""

    provider: str = ""
    model: str = ""


class Host:
    """A running host. Made by `open_host` only; every method is for its own thread."""

    def __init__(
        self,
        config: HostConfig,
        *,
        instrument: HostInstrument | None,
        spawn: Spawner | None,
        catalogue: Catalogue | None,
        decision_log: Path | None,
        policy: Policy,
        secrets: Container[str],
        state: StateStores | None,
        nursery: trio.Nursery,
    ) -> None:
        self.config = config
        self.instrument = instrument
        self.policy = policy
        self.secrets = secrets
        self._state = state
        self._diagnostics: DiagnosticLog = DiagnosticLog(config.limits.diagnostics)
        self.pump: Pump = Pump(config.limits.pump_slice_s)
        self.flusher: Flusher = Flusher()
        self.next_id: Callable[[], str] = id_source()
        self.codec: Codec = Codec(ZOT, max_frame=config.limits.frame_bytes, max_depth=config.limits.json_depth)
        self.nursery = nursery
        self.watchdog: Watchdog = Watchdog(lambda why: self.report(Code.WATCHDOG_LOST, Severity.WARNING, why))
        self.spawn: Spawner = spawn or self._spawn
        self.catalogue: Catalogue = catalogue or discover_in_thread
        self.sessions: dict[str, Session] = {}
        self.books: Books = Books(
            config,
            self.sessions,
            instrument=instrument,
            log=decision_log,
            on_failure=lambda why: self.report(Code.LOG_WRITE_FAILED, Severity.WARNING, why),
        )
        self.is_closing = False
        self._thread = threading.get_ident()
        self._instances = 0

    @property
    def diagnostics(self) -> DiagnosticLog:
        """What was reported, drops of what was told just now included."""
        self.flusher.deal()
        return self._diagnostics

    def check_thread(self) -> None:
        """Raise where the caller is not on the host's thread; nothing has been changed then.

        Raises:
          WrongThread: Always from another thread. (An `emit` from a worker thread once set the flusher's flag and
            silenced the host for ever.)
        """
        if threading.get_ident() != self._thread:
            raise WrongThread(
                "this was called from another thread than the host's",
                hint="use trio.from_thread.run_sync, or TrioToken.run_sync_soon where no answer is needed",
            )

    @asynccontextmanager
    async def open_session(
        self,
        session_id: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        client: HostClient | None = None,
        tools: Iterable[HostTool] = (),
        model: ModelRef | None = None,
        confirm: Confirm | None = None,
        builtin_commands: Collection[str] = (),
        models: ModelCatalogue | None = None,
        points: Collection[str] | None = None,
    ) -> AsyncIterator[Session]:
        """Open a conversation; no extension runs before `Session.load_all` or `Session.load`.

        Leaving it tells `session_end`, stops its extensions and waits for them, shielded, for at most
        `deadlines.stop_total_s`. The body's own exception leaves unwrapped.

        Args:
          session_id: Names it in every event; one open session of a host may have it.
          cwd: The project's directory; this process's one if not given.
          client: Hears what extensions want to show, and asks the user. None: nobody is there; interactive tools are refused.
          tools: The embedder's own tools; their names win over every extension's.
          model: Told to extensions.
          confirm: Asks a person about a tool call; see `ToolCall.confirm`. None: the client's `ask_user` does.
          builtin_commands: Names of the embedder's own commands; extensions cannot take them.
          models: Where models of extensions' providers are added and taken out; a catalogue in memory, of this session,
            if not given. Two sessions that share one cannot both load an extension that adds the same model.
          points: The life-cycle points that you really dispatch (`docs/hooks.md`); a hook for another is rejected. All of
            them if not given: then call all methods of `Run` and `Session` that stand for one.

        Raises:
          ValueError: A session of that id is open; `ConfigError` where `cwd` can be no path.
          ClosedError: The host is closing.
        """
        self.check_thread()
        if self.is_closing:
            raise ClosedError("the host is closing")
        if session_id in self.sessions:
            raise ValueError(f"a session {session_id!r} is open already")
        session = Session(
            self,
            session_id,
            cwd=cwd or ".",
            client=client,
            tools=tuple(tools),
            model=model or ModelRef(),
            confirm=confirm,
            builtin_commands=builtin_commands,
            models=models,
            points=points,
        )
        self.sessions[session_id] = session
        try:
            yield session
        finally:
            await session.aclose()
            del self.sessions[session_id]

    @property
    def decisions(self) -> Decisions:
        """The newest verdicts of all sessions, masked; `of_tool` finds those about one call."""
        return self.books.decisions

    def stats(self) -> HostStats:
        """How often each extension was asked for what, how long it took, and what it missed, until now."""
        self.check_thread()
        return self.books.stats()

    # --- for the runtime ---

    def report(
        self,
        code: Code,
        severity: Severity,
        message: str,
        *,
        instance: Instance | None = None,
        session: Session | None = None,
        extension: str | None = None,
    ) -> None:
        """Count and keep a diagnostic, and tell the client of its session; one of the host's own goes to all clients."""
        session = instance.session if instance is not None else session
        diagnostic = Diagnostic(
            code,
            severity,
            message,
            extension=instance.name if instance is not None else extension,
            session_id=session.id if session is not None else None,
            instance=instance.number if instance is not None else None,
            time=time.time(),
        )
        self._diagnostics.add(diagnostic)
        for each in [session] if session is not None else list(self.sessions.values()):
            each.tell_diagnostic(diagnostic)

    def open_state(self) -> StateStores:
        """Where the state of sessions and extensions lies."""
        if self._state is None:
            from trio_exthost.state.sqlite import SqliteStores  # noqa: PLC0415 - SQLite, which most never need

            self._state = SqliteStores(self.config.data_dir / "state")
        return self._state

    def next_instance_number(self) -> int:
        """A number no other instance of this host has had."""
        self._instances += 1
        return self._instances

    def new_connection(self) -> Connection:
        """A connection in its first phase."""
        limits = self.config.limits
        return Connection(self.codec, max_line=limits.frame_bytes, stop_line=limits.oversize_stop_bytes)

    def open_log(self, name: str) -> ExtensionLog:
        """The log of an extension; nothing is written yet."""
        limits = self.config.limits
        return ExtensionLog(
            self.config.data_dir / "logs" / f"{name}.log",
            max_bytes=limits.log_bytes,
            files=limits.log_files,
            tail_bytes=limits.stderr_tail_bytes,
            on_failure=lambda why: self.report(Code.LOG_WRITE_FAILED, Severity.WARNING, why),
        )

    def command_line(self, candidate: Candidate, *, is_reload: bool = False) -> tuple[list[str], dict[str, str]]:
        """What to run for a candidate, and in which environment.

        Args:
          candidate: What is started.
          is_reload: Whether it was probably changed a moment ago. Python takes a compiled file for up to date where its source
            has the size and, in whole seconds, the time that are noted in it; so none is read then, and none written.

        Raises:
          LoadError: Its program is not there, or not its own.
        """
        from trio_exthost.packages import child_environment, resolve_exec  # noqa: PLC0415 - heavy; see there

        assert candidate.manifest is not None
        env = child_environment(
            os.environ,
            candidate.manifest,
            self.config.env,
            inherit=self.config.inherit_env,
            # What is trusted by its digest must not run from compiled files that the digest leaves out.
            pycache_dir=Path(os.devnull, "pycache") if is_reload else self.config.data_dir / "pycache",
        )
        return resolve_exec(candidate.manifest, candidate.directory, env.get("PATH")), env

    def _spawn(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Process:
        return SpawnedProcess(argv, cwd=cwd, env=env, watchdog=self.watchdog)


async def discover_in_thread(config: HostConfig, cwd: Path) -> Sequence[Candidate]:
    """The catalogue as it is on disk, read in a worker thread with the user's trust store."""
    from trio_exthost.packages import TrustStore, discover, with_digests  # noqa: PLC0415 - heavy; see there

    def look() -> Sequence[Candidate]:
        # A reload compares digests, so they have to be of before the start.
        return with_digests(discover(config, cwd, trust=TrustStore(config.data_dir / "trust.json")))

    return await trio.to_thread.run_sync(look)


@asynccontextmanager
async def open_host(
    config: HostConfig | None = None,
    *,
    instrument: HostInstrument | None = None,
    spawn: Spawner | None = None,
    catalogue: Catalogue | None = None,
    decision_log: Path | None = None,
    policy: Policy | None = None,
    secrets: Container[str] | None = None,
    state: StateStores | None = None,
) -> AsyncIterator[Host]:
    """Open a host: start its shared tasks, and on leaving stop every session and extension.

    The body's own exception leaves unwrapped; only a bug of ours arrives as a group, which holds that one, too. Leaving
    waits, shielded, for at most `deadlines.stop_total_s` and leaves no process of an extension behind.

    Args:
      config: Everything that can be set; the defaults if not given.
      instrument: Sees everything the host does.
      spawn: Starts processes instead of the operating system (tests do).
      catalogue: Finds extensions instead of the roots in `config`.
      decision_log: Where every decision is appended, a line of JSON each, masked, rotated as logs are; nowhere if not given.
      policy: What the operator decided about extensions: grants, reserved names, ...
      secrets: Names of the secrets that providers of extensions may refer to; the names of the environment if not given.
      state: Where what extensions store lies; SQLite files in `<data_dir>/state` if not given.
    """
    # Two nurseries: a bug that ends one instance ends the others, too, and these need the pump and the flusher for that.
    async with service_nursery() as shared, service_nursery() as instances:
        host = Host(
            config or HostConfig(),
            instrument=instrument,
            spawn=spawn,
            catalogue=catalogue,
            decision_log=decision_log,
            policy=policy or Policy(),
            secrets=os.environ if secrets is None else secrets,
            state=state,
            nursery=instances,
        )
        shared.start_soon(host.pump.run, name="exthost pump")
        shared.start_soon(host.flusher.run, name="exthost flusher")
        try:
            yield host
        finally:
            host.is_closing = True
            for session in list(host.sessions.values()):
                await session.aclose()  # noqa: ASYNC102 - it shields itself, within stop_total_s
            await host.watchdog.stop()  # noqa: ASYNC102 - it shields itself
            host.books.close()


__all__ = ["Catalogue", "Host", "ModelRef", "open_host"]
