"""An instance's process and its three pipes: opened together, ended in order, closed together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.runtime.calls import cancel_all
from trio_exthost.runtime.outbox import Outbox
from trio_exthost.runtime.process import ExitStatus, Process
from trio_exthost.runtime.pump import InputPipe, Sink
from trio_exthost.runtime.throttle import Throttle
from trio_exthost.wire import Phase, to_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

EOF_GRACE_S = 0.25
"""After the end of a pipe, so long for the exit: the cause then is the exit, not the closed pipe."""
DRAIN_BYTES = 128 * 1024
"""What is read on the spot before a deadline decides: twice what a pipe holds."""
DRAIN_S = 0.05
"""How long that may take: a flood of tiny lines must not hold up the agent."""
LAST_DRAIN_BYTES = 2 * 1024 * 1024
"""What is still read after the exit: twice the largest pipe an ordinary user can ask for."""
LAST_DRAIN_S = 0.5
"""How long that may take."""


class StderrSink:
    """Where stderr goes: the log and the tail in memory."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """Hand all bytes to `write`."""
        self._write = write

    def take(self, data: bytes, until: float) -> bool:  # noqa: ARG002 - the pump's protocol
        """Write them; nothing is ever left."""
        self._write(data)
        return False

    def handle(self, until: float) -> bool:  # noqa: ARG002 - the pump's protocol
        """There is nothing to handle later."""
        return False

    def ended(self) -> None:
        """The exit counts, not this."""


class Transport:
    """One process, its stdin (an outbox), stdout and stderr (read by the pump). Ended by `end`, then closed by `close`."""

    def __init__(
        self,
        instance: Instance,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdout: Sink,
    ) -> None:
        """Spawn it.

        Raises:
          OSError: As `subprocess.Popen`; nothing is left open then.
        """
        host, limits = instance.host, instance.limits
        self._instance = instance
        self.process: Process = host.spawn(argv, cwd=str(instance.candidate.directory), env=env)
        self.exited: trio.Event = trio.Event()
        """Set once the process has ended and what it wrote before has been handled."""
        self._is_catching_up = False
        self._watching = trio.Lock()  # a process has one watcher at a time, as has a pidfd
        self.status: ExitStatus | None = None
        """How it ended, once reaped."""
        throttle = Throttle(instance)
        self.outbox: Outbox = Outbox(
            self.process.stdin_fd,
            host.flusher,
            max_frames=limits.outbox_frames,
            max_bytes=limits.outbox_bytes,
            extension=instance.name,
            on_broken=instance.on_input_closed,
            on_stalled=instance.on_stalled,
            on_drop=instance.on_drop,
            on_full=throttle.set_full,
            encode_gap=instance.encode_gap,
        )
        self.stdout: InputPipe = InputPipe(host.pump, self.process.stdout_fd, stdout)
        self.stderr: InputPipe = InputPipe(host.pump, self.process.stderr_fd, StderrSink(instance.log.write_stderr))
        throttle.attach(self.stdout)

    def drain(self) -> None:
        """Handle, on the spot, whatever it has written to stdout so far."""
        nursery = self._instance.nursery
        if self.stdout.drain(DRAIN_BYTES, DRAIN_S) and nursery is not None and not self._is_catching_up:
            self._is_catching_up = True
            nursery.start_soon(self._catch_up, name=f"catching up with {self._instance.name}")

    @trio.lowlevel.enable_ki_protection
    async def _catch_up(self) -> None:
        """The pump wakes for new bytes only; what a drain took and left over gets its turns here."""
        stdout, slice_s = self.stdout, self._instance.limits.pump_slice_s
        is_left = True
        while is_left:
            begun = time.perf_counter()
            is_left = stdout.turn(begun + slice_s)
            stdout.worked(begun, time.perf_counter())
            await trio.lowlevel.checkpoint()
        self._is_catching_up = False

    def _drain_last(self) -> None:
        self.stdout.drain(LAST_DRAIN_BYTES, LAST_DRAIN_S)
        self.stderr.drain(LAST_DRAIN_BYTES, LAST_DRAIN_S)

    def serve(self, nursery: trio.Nursery) -> None:
        """Start its tasks: the writer, and the one that waits for the exit."""
        name = self._instance.name
        nursery.start_soon(self._write, name=f"writer of {name}")
        nursery.start_soon(self._watch_exit, name=f"exit of {name}")

    @trio.lowlevel.enable_ki_protection
    async def _write(self) -> None:
        """The writer task: finish what the pipe would not take at once, until the outbox is closed."""
        await self.outbox.write_blocked(self._instance.deadlines.stall_s)

    @trio.lowlevel.enable_ki_protection
    async def _watch_exit(self) -> None:
        """Wait for the exit; everything it wrote before is handled before that is told.

        May run in several tasks: one of them watches, and the next where that is cancelled.
        """
        async with self._watching:
            if self.exited.is_set():
                return
            await self.process.wait_exited()
            self._drain_last()
            self.exited.set()
            self._instance.end(Code.EXITED, "it exited by itself")

    @trio.lowlevel.enable_ki_protection
    async def expect_exit(self, code: Code, why: str) -> None:
        """A pipe of it was closed: its exit should follow at once, and is the cause then; else the closed pipe is."""
        with trio.move_on_after(EOF_GRACE_S):
            await self.exited.wait()
            return
        self._instance.end(code, why)

    async def end(self, *, gently: bool, until: float) -> None:
        """Shutdown and the end of its stdin; SIGTERM; SIGKILL. Shielded; ends with the exit.

        Args:
          gently: Whether it is asked first.
          until: When it is over at the latest, on trio's clock.
        """
        with trio.CancelScope(shield=True):  # each wait in here has its own bound
            async with trio.open_nursery() as nursery:
                # A fault in another task of the instance takes the first watcher with it, at any time.
                nursery.start_soon(self._watch_exit, name=f"exit of {self._instance.name}")
                await self._climb(until, gently=gently)
                nursery.cancel_scope.cancel("the process has ended, or never will")
        self._drain_last()
        if self.exited.is_set():
            self.status = self.process.reap()
        else:
            self._instance.report(
                Code.UNKILLABLE, Severity.ERROR, f"process {self.process.pid} does not end after SIGKILL"
            )

    async def _climb(self, until: float, *, gently: bool) -> None:
        deadlines, outbox = self._instance.deadlines, self.outbox
        kill_at = until - deadlines.stop_total_s / 5  # what is killed needs a moment to end
        if gently and not self.exited.is_set():
            self._say_goodbye()
            await self._wait_exit(min(kill_at, trio.current_time() + deadlines.stop_grace_s))
        outbox.close()
        if not self.exited.is_set():
            self.process.signal(signal.SIGTERM)
            await self._wait_exit(min(kill_at, trio.current_time() + deadlines.term_grace_s))
        if not self.exited.is_set():
            self._instance.report(Code.KILLED, Severity.WARNING, "it ignored shutdown and SIGTERM: killed")
            self.process.signal(signal.SIGKILL)
            await self._wait_exit(until)

    def _say_goodbye(self) -> None:
        """Waiting events go, a cut frame is finished, then `shutdown`, then the end of its stdin."""
        connection = self._instance.connection
        connection.stop()
        cancel_all(self._instance, "shutdown", self._instance.deadlines.stop_grace_s)
        self.outbox.drop_events()
        if connection.phase is Phase.STOPPING:
            self._instance.post(to_extension.Shutdown())
        self.outbox.finish()
        self.outbox.flush()

    async def _wait_exit(self, until: float) -> None:
        with trio.move_on_at(until):
            await self.exited.wait()

    def close(self) -> None:
        """Give all descriptors back; idempotent."""
        self.stdout.close()
        self.stderr.close()
        self.outbox.close()
        self.process.close()
