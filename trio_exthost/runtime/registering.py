"""The time between `hello` and ready: what is registered is staged until `ready`, a silence that counts as one, or the cap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.errors import PayloadError, RegistrationRefused
from trio_exthost.runtime.declarations import DeclarationFrame
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.registration import ZOT_KINDS, ZOT_REGISTRATIONS, RegistrationFrame, tell_refused
from trio_exthost.wire.effects_from_extension import Register, Update

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

AnyRegistration = RegistrationFrame | DeclarationFrame


class Registering:
    """What one instance registers: staged while it may not take effect yet, applied in the order of the stream."""

    def __init__(self, instance: Instance) -> None:
        """Nothing has come."""
        self._instance = instance
        self._staged: list[AnyRegistration] = []
        self._staged_bytes = self._kept_bytes = 0
        self._has_registered = False
        self._holds = 0
        """Answers that dispose of something, once what they store is on the disk: what came after them waits."""
        self._said_ready_early = False
        self._last_frame_at = 0.0
        self.is_complete: bool = False
        """Whether its registrations are complete, or taken to be: it may be admitted."""
        self.is_auto: bool = False
        """Whether its silence was taken for `ready`."""

    @property
    def has_said_ready(self) -> bool:
        """Whether a `ready` frame came in time."""
        return self.is_complete and not self.is_auto

    def take(self, frame: AnyRegistration) -> None:
        """A registration: effective at once where it is ready, staged where it will be, or where an answer is before it."""
        instance = self._instance
        self._last_frame_at = trio.current_time()
        if not self._has_registered:
            self._has_registered = True
            instance.poke()
        if instance.successor is not None:
            # Nothing that it registers would ever be asked.
            why = f"process {instance.successor.pid_was} has taken over from it"
            told = f"a registration is refused: {why}"
            self._refuse(frame, "conflict", why, told=told, severity=Severity.INFO)
        elif not self._has_room(frame):
            most = instance.limits.registration_bytes
            self._refuse(frame, "resource_limit", f"its registrations have more than {most} bytes")
        elif not self._is_staging():
            self._apply(frame)
        elif len(self._staged) < instance.limits.registrations:
            self._staged.append(frame)
        else:
            most = instance.limits.registrations
            why = f"it stages more than {most} registrations while it is {instance.state}"
            self._refuse(frame, "resource_limit", why)

    def _is_staging(self) -> bool:
        instance = self._instance
        return bool(self._holds) or not (instance.state is State.READY or instance.health.is_half_open)

    def _has_room(self, frame: AnyRegistration) -> bool:
        """Whether what is kept of it, and what waits, is not too much with this frame; counted if so.

        What zot's dialect registers stays until the end; a descriptor of the effect dialect is bounded where it is read.
        """
        stays = isinstance(frame, ZOT_REGISTRATIONS)
        if not stays and not self._is_staging():
            return True
        size = len(msgspec.json.encode(frame))
        if self._kept_bytes + self._staged_bytes + size > self._instance.limits.registration_bytes:
            return False
        if stays:
            self._kept_bytes += size
        else:
            self._staged_bytes += size
        return True

    def _refuse(
        self, frame: AnyRegistration, code: str, why: str, *, told: str = "", severity: Severity = Severity.WARNING
    ) -> None:
        """Turn one down before it is looked at: what has a number gets its answer, of the others it is told.

        Args:
          frame: What it sent.
          code: Why, for programs.
          why: The same in words.
          told: The diagnostic, where it is not `why`.
          severity: The diagnostic's.
        """
        instance = self._instance
        if isinstance(frame, Register | Update):
            number = frame.registration_id
            error = RegistrationRefused(why, code=code, extension=instance.name)
            instance.declarations.reject(number, f"registration {number}", error)
            return
        instance.report(Code.REGISTRATION_REFUSED, severity, told or why)
        if isinstance(frame, ZOT_REGISTRATIONS):
            tell_refused(instance, ZOT_KINDS[frame.TYPE], getattr(frame, "name", ""), why)

    def take_staged(self) -> list[AnyRegistration]:
        """What is staged, in its order, for who deals with it in another way than `apply_staged`."""
        staged, self._staged, self._staged_bytes = self._staged, [], 0
        return staged

    def apply_staged(self) -> None:
        """What was staged takes effect, in its order."""
        for frame in self.take_staged():
            self._answered(self._apply, frame)

    def hold(self) -> None:
        """What comes from now on waits for `release`: an answer that takes something back is not on the disk yet."""
        self._holds += 1

    def release(self) -> None:
        """It is, or never will be: what has waited takes effect, in its order."""
        self._holds -= 1
        if self._holds:
            return
        for frame in self.take_staged():
            self._answered(self.take, frame)

    def _answered(self, act: Callable[[AnyRegistration], None], frame: AnyRegistration) -> None:
        """Do this to a frame; that its answer does not fit into one is told."""
        try:
            act(frame)
        except PayloadError as exc:
            self._instance.cannot_answer("a registration", exc)

    def _apply(self, frame: AnyRegistration) -> None:
        instance = self._instance
        if isinstance(frame, ZOT_REGISTRATIONS):
            instance.session.registrar.accept(instance, frame)
        else:
            instance.declarations.apply(frame)

    def saw_frames(self) -> None:
        """Frames came, of whatever kind: it is not silent."""
        self._last_frame_at = trio.current_time()

    def on_ready(self) -> None:
        """It says its registrations are complete."""
        state = self._instance.state
        if not self.is_complete and state is State.REGISTERING:
            self._complete()
        elif state is State.HANDSHAKING:
            # Scripts print hello, registrations and ready at once, without reading the hello_ack.
            self._said_ready_early = True

    def begin(self) -> None:
        """`hello_ack` is out: the window opens."""
        self._last_frame_at = trio.current_time()
        if self._said_ready_early:
            self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self._instance.poke()
        self._instance.session.loader.admission.advance()

    async def wait(self) -> None:
        """Wait for `ready`, or for the silence that counts as one, or for the cap, or for the instance's end."""
        instance = self._instance
        cap = trio.current_time() + instance.deadlines.ready_cap_s

        def is_done() -> bool:
            return self.is_complete or instance.is_ending

        while not is_done():
            had_registered = self._has_registered
            due = min(cap, self._quiet_at()) if had_registered else cap

            def is_news(had: bool = had_registered) -> bool:
                return is_done() or self._has_registered != had

            if await instance.until(is_news, due):
                continue
            now = trio.current_time()
            if now < cap and now < self._quiet_at():
                continue  # a frame came while it was silent: the window begins anew
            how = "registered nothing more" if now < cap else f"{instance.deadlines.ready_cap_s:g} s had passed"
            instance.report(Code.AUTO_READY, Severity.INFO, f"it sent no ready frame, and {how}: taken as ready")
            self.is_auto = True
            instance.connection.mark_ready()
            self._complete()

    def _quiet_at(self) -> float:
        """When its silence counts as ready."""
        return self._last_frame_at + self._instance.deadlines.auto_ready_s
