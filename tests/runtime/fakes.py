"""An extension that lives in the test's own trio run: real pipes, real pump, no process.

Under `MockClock(autojump_threshold=0)` this is exact: pipes have no latency, so time jumps only when everybody waits.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from trio_exthost import Deadlines, Host, HostClient, HostConfig, HostInstrument, Limits, Policy, Session, open_host
from trio_exthost.packages import Candidate, Manifest, Origin, Status
from trio_exthost.packages.manifest import HostSection
from trio_exthost.runtime.process import ExitStatus
from trio_exthost.state import StateStores
from trio_exthost.state.memory import MemoryStores

Program = Callable[["Guest"], Awaitable[None]]


class Guest:
    """What a fake extension's program is given: its pipes, and how it was signalled. It is its own process object, too."""

    def __init__(self, name: str, program: Program, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.program = program
        self._stdin, self.stdin_fd = os.pipe()
        self.stdout_fd, self._stdout = os.pipe()
        self.stderr_fd, self._stderr = os.pipe()
        for fd in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(fd, False)
        self._rest = b""
        self.received: list[dict[str, Any]] = []
        self.signals: list[tuple[float, int]] = []
        self.eof_at: float | None = None
        self.ignores: set[int] = set()
        self._exit_code: int | None = None
        self._exited = trio.Event()
        self._is_awaited = False
        self._scope = trio.CancelScope()
        self.reaped = False

    # --- the program's side ---

    def write(self, data: bytes) -> None:
        """Bytes to stdout; they must fit into the pipe."""
        assert os.write(self._stdout, data) == len(data), "the pipe is full"

    def send(self, **frame: Any) -> None:
        self.write(json.dumps(frame).encode() + b"\n")

    def complain(self, text: str) -> None:
        os.write(self._stderr, text.encode())

    async def line(self) -> bytes | None:
        """The next line of stdin, or None at its end."""
        while b"\n" not in self._rest:
            if self._stdin < 0:
                await trio.sleep_forever()
            try:
                await trio.lowlevel.wait_readable(self._stdin)
            except trio.ClosedResourceError:
                await trio.sleep_forever()  # it closed its own stdin, and lives on
            data = os.read(self._stdin, 65536)
            if not data:
                self.eof_at = trio.current_time()
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    async def frame(self) -> dict[str, Any] | None:
        """The next frame, kept in `received`, or None at the end of stdin."""
        line = await self.line()
        if line is None:
            return None
        frame: dict[str, Any] = json.loads(line)
        self.received.append(frame)
        return frame

    async def frames(self, *types: str) -> dict[str, Any]:
        """The next frame of one of these types; others are passed over."""
        while True:
            frame = await self.frame()
            assert frame is not None, f"stdin ended, waiting for {types}"
            if frame["type"] in types:
                return frame

    def greet(self, *, capabilities: Sequence[str] = (), ready: bool = True, **subscribe: list[str]) -> None:
        self.send(type="hello", name=self.name, capabilities=list(capabilities))
        if subscribe:
            self.send(type="subscribe", **subscribe)
        if ready:
            self.send(type="ready")

    async def until_shutdown(self) -> None:
        """Read until `shutdown` or the end of stdin."""
        while (frame := await self.frame()) is not None:
            if frame["type"] == "shutdown":
                return

    def close_stdout(self) -> None:
        if self._stdout >= 0:
            os.close(self._stdout)
            self._stdout = -1

    def close_stdin(self) -> None:
        if self._stdin >= 0:
            trio.lowlevel.notify_closing(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    def exit(self, code: int) -> None:
        """End the process now, whatever the program is doing."""
        if self._exit_code is None:
            self._exit_code = code
            self._scope.cancel("exit")

    async def run(self) -> None:
        with self._scope:
            await self.program(self)
        if self._exit_code is None:
            self._exit_code = 0
        self.close_stdin()
        self.close_stdout()
        os.close(self._stderr)
        self._exited.set()

    # --- the host's side (runtime.process.Process) ---

    async def wait_exited(self) -> None:
        if self._is_awaited:
            raise trio.BusyResourceError("a pidfd has one reader")
        self._is_awaited = True
        try:
            await self._exited.wait()
        finally:
            self._is_awaited = False

    def signal(self, number: int) -> None:
        if self._exit_code is None:
            self.signals.append((trio.current_time(), number))
            if number not in self.ignores or number == signal.SIGKILL:
                self.exit(-number)

    def reap(self) -> ExitStatus:
        assert self._exited.is_set()
        assert self._exit_code is not None
        self.reaped = True
        return ExitStatus(self._exit_code)

    def close(self) -> None:
        pass


class World:
    """The fake extensions of a test, by name, and everything the host told."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.candidates: list[Candidate] = []
        self.programs: dict[str, Program] = {}
        self.guests: dict[str, Guest] = {}
        self.spawned = 0

    def add(self, name: str, program: Program, **section: Any) -> None:
        """An extension; `section` is its manifest's `exthost`."""
        self.programs[name] = program
        manifest = Manifest(name=name, exec="/bin/true", exthost=HostSection(**section))
        place = Path("/fake") / name
        self.candidates.append(
            Candidate(
                name=name,
                directory=place,
                shown=str(place),
                origin=Origin.EXPLICIT,
                status=Status.EFFECTIVE,
                manifest=manifest,
            )
        )

    async def catalogue(self, config: HostConfig, cwd: Path) -> Sequence[Candidate]:
        await trio.lowlevel.checkpoint()
        return self.candidates

    def spawn(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Guest:
        name = Path(cwd).name
        self.spawned += 1
        guest = Guest(name, self.programs[name], 100_000 + self.spawned)
        self.guests[name] = guest
        self.nursery.start_soon(guest.run)
        return guest


class Client(HostClient):
    """Keeps what the client is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def notify(self, session, extension, level, message) -> None:
        self.told.append(("notify", extension, level, message))

    def clear_notes(self, session, extension) -> None:
        self.told.append(("clear_notes", extension))

    def submit(self, session, extension, text) -> None:
        self.told.append(("submit", extension, text))

    def submit_slash(self, session, extension, text) -> None:
        self.told.append(("submit_slash", extension, text))

    def open_panel(self, session, extension, panel) -> None:
        self.told.append(("open_panel", extension, panel))

    def update_panel(self, session, extension, panel) -> None:
        self.told.append(("update_panel", extension, panel))

    def close_panel(self, session, extension, panel_id) -> None:
        self.told.append(("close_panel", extension, panel_id))

    def tools_changed(self, session, version) -> None:
        self.told.append(("tools_changed", version))


@asynccontextmanager
async def world(
    tmp_path: Path,
    *,
    deadlines: Deadlines | None = None,
    limits: Limits | None = None,
    instrument: HostInstrument | None = None,
    policy: Policy | None = None,
    decision_log: Path | None = None,
    state: StateStores | None = None,
    **config: Any,
) -> AsyncIterator[tuple[World, Host]]:
    """A host over fake extensions; afterwards nothing may be left."""
    async with trio.open_nursery() as nursery:
        around = World(nursery)
        settings = HostConfig(
            deadlines=deadlines or Deadlines(), limits=limits or Limits(), data_dir=tmp_path, **config
        )
        async with open_host(
            settings,
            instrument=instrument,
            spawn=around.spawn,
            catalogue=around.catalogue,
            policy=policy,
            decision_log=decision_log,
            state=state or MemoryStores(),
        ) as host:
            yield around, host
        assert host.pump.watched == 0
        assert all(guest.reaped for guest in around.guests.values())


def assert_nothing_left(session: Session) -> None:
    """After its end a session holds nothing of any extension."""
    assert session.ledger.active_count == 0
    assert not session.views.subscribers
    assert not session.views.interceptors
    assert len(session.panels) == 0


async def serve(guest: Guest) -> None:
    """The usual program: greets, then reads until it is told to stop."""
    guest.greet()
    await guest.until_shutdown()


def codes(host: Host) -> list[str]:
    """The codes of all diagnostics, in order."""
    return [each.code.value for each in host.diagnostics]
