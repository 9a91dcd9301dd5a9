"""Every exception of the package, in one tree.

Two questions name an exception: whose fault is it, and what may the caller do? Each carries the extension it is about
(`extension`, or None), a stable `code` to branch on, and usually a `hint`: the way out, in a sentence.
"""

from __future__ import annotations


class HostError(Exception):
    """The root: catch this to catch whatever the host itself raises."""

    code: str = "host_error"
    """A stable word to branch on; never translated, never reworded."""

    def __init__(self, message: str, *, extension: str | None = None, code: str | None = None, hint: str = "") -> None:
        """Say what happened, to whom, and what to do.

        Args:
          message: What happened, in one sentence, with the bad value shown.
          extension: Name of the extension it concerns.
          code: Overrides the class's own code.
          hint: What the reader can do about it.
        """
        super().__init__(message)
        self.message = message
        self.extension = extension
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        """Name the extension first, the way out last."""
        who = f"{self.extension}: " if self.extension else ""
        return f"{who}{self.message}" + (f" ({self.hint})" if self.hint else "")


class ConfigError(HostError, ValueError):
    """A value of the configuration is out of its range."""

    code = "config_invalid"


class WrongThread(HostError, RuntimeError):
    """A synchronous entry point was called from another thread than the host's; nothing was changed."""

    code = "wrong_thread"


class PayloadError(HostError, ValueError):
    """What the embedder handed over cannot be sent: not JSON, not finite, or larger than its limit."""

    code = "payload_invalid"


class ClosedError(HostError):
    """The host, session, run or instance this belongs to has ended."""

    code = "closed"


# --- what is on disk ---------------------------------------------------------------------------------------------


class ManifestError(HostError):
    """`extension.json` cannot be used; `path` is the file, `where` the place in it (`$.exthost.priority`, `line 3`)."""

    code = "manifest_invalid"

    def __init__(
        self, message: str, *, path: str = "", where: str = "", extension: str | None = None, hint: str = ""
    ) -> None:
        """Say which file, where in it, and what is wrong."""
        place = f"{path}{' at ' + where if where else ''}"
        super().__init__(f"{place}: {message}" if place else message, extension=extension, hint=hint)
        self.path = path
        self.where = where


class TrustError(HostError):
    """The trust store cannot be read or written; what is on disk was left as it was."""

    code = "trust_store_invalid"


class PolicyError(HostError, ValueError):
    """The operator's policy cannot be used; nothing of it is in force.

    `path` is the file, empty for a policy made in a program; `where` the place in it (`extensions.sandbox.restart`,
    `line 3, column 5`); `problems` holds every mistake that was found, one error each.
    """

    code = "policy_invalid"

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        where: str = "",
        problems: tuple[PolicyError, ...] = (),
        extension: str | None = None,
        hint: str = "",
    ) -> None:
        """Say which file, where in it, and what is wrong."""
        place = f"{path}{' at ' if path and where else ''}{where}"
        super().__init__(f"{place}: {message}" if place else message, extension=extension, hint=hint)
        self.path = path
        self.where = where
        self.reason = message
        self.problems: tuple[PolicyError, ...] = problems or (self,)


_NAMED = 5
"""Calls in flight that an error names; of more it says how many."""


def _last_words(
    exit_status: str, uptime_s: float | None, in_flight: tuple[str, ...], stderr_tail: str, log_path: str
) -> list[str]:
    """Lines with how a process ended, what it worked on, the end of its stderr and its log, as far as there are any."""
    lines = []
    if exit_status:
        lines.append(f"  exit: {exit_status}")
    if uptime_s is not None:
        lines.append(f"  uptime: {uptime_s:.2f} s")
    if in_flight:
        more = [f"{len(in_flight) - _NAMED} more"] if len(in_flight) > _NAMED else []
        lines.append("  in flight: " + ", ".join([*in_flight[:_NAMED], *more]))
    if stderr_tail:
        lines.append("  stderr: " + stderr_tail.strip().replace("\n", "\n          "))
    if log_path:
        lines.append(f"  log: {log_path}")
    return lines


class LoadError(HostError):
    """An extension did not become ready."""

    code = "load_failed"

    def __init__(
        self,
        message: str,
        *,
        extension: str | None = None,
        stage: str = "",
        exit_status: str = "",
        stderr_tail: str = "",
        log_path: str = "",
        code: str | None = None,
        hint: str = "",
        uptime_s: float | None = None,
        in_flight: tuple[str, ...] = (),
    ) -> None:
        """Say at which stage it failed, how the process ended, what it worked on and what it last wrote to stderr.

        Args:
          message: Why it failed.
          extension: Its name.
          stage: discovery, spawn, hello, registering, running or stopped.
          exit_status: `exit 3`, `killed by SIGSEGV`; empty while it has not ended, or where there was no process.
          stderr_tail: The end of its stderr.
          log_path: Where all of that is; empty where nothing was started.
          code: A closer word.
          hint: The next step.
          uptime_s: Seconds from its start to the beginning of its end; None where there was no process.
          in_flight: The calls that awaited its answer.
        """
        super().__init__(message, extension=extension, code=code, hint=hint)
        self.stage = stage
        self.exit_status = exit_status
        self.uptime_s = uptime_s
        self.in_flight = in_flight
        self.stderr_tail = stderr_tail
        self.log_path = log_path

    def __str__(self) -> str:
        """The message, then stage, exit, uptime, calls in flight, end of stderr, log."""
        lines = [super().__str__()]
        if self.stage:
            lines.append(f"  stage: {self.stage}")
        words = _last_words(self.exit_status, self.uptime_s, self.in_flight, self.stderr_tail, self.log_path)
        return "\n".join([*lines, *words])


# --- the wire ----------------------------------------------------------------------------------------------------


class ProtocolError(HostError):
    """Bytes or a frame that the protocol does not allow; the only exception the decoder raises.

    `frame_type` and `frame_id` are what could still be read of the frame, or None.
    """

    code = "protocol_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        frame_type: str | None = None,
        frame_id: str | None = None,
        extension: str | None = None,
        hint: str = "",
    ) -> None:
        """Say what is wrong with which frame."""
        super().__init__(message, extension=extension, code=code, hint=hint)
        self.frame_type = frame_type
        self.frame_id = frame_id


# --- calls -------------------------------------------------------------------------------------------------------


class CallError(HostError):
    """A call of an extension gave no usable answer; `may_have_run` says whether it can have begun."""

    code = "call_failed"

    def __init__(
        self,
        message: str,
        *,
        extension: str | None = None,
        may_have_run: bool = True,
        code: str | None = None,
        hint: str = "",
    ) -> None:
        """Say why there is no answer and whether the call can have had an effect."""
        super().__init__(message, extension=extension, code=code, hint=hint)
        self.may_have_run = may_have_run


class CallTimedOut(CallError):
    """No answer within the deadline; a later one is dropped with a diagnostic.

    `partial` is what came within the grace after it, where the extension was told and given one; None otherwise.
    """

    code = "timed_out"

    def __init__(
        self,
        message: str,
        *,
        extension: str | None = None,
        may_have_run: bool = True,
        hint: str = "",
        partial: object = None,
    ) -> None:
        """Say how long was waited, and keep what came too late for a full answer."""
        super().__init__(message, extension=extension, may_have_run=may_have_run, hint=hint)
        self.partial = partial


class CallAborted(CallError):
    """No answer will come: the extension is going or gone, or was never there."""

    code = "aborted"


class Reloaded(CallAborted):
    """Its extension was reloaded, and the grace that a call in flight has was over."""

    code = "reloaded"


class ExtensionExited(CallAborted):
    """The process ended before it answered."""

    code = "exited"

    def __init__(
        self,
        message: str,
        *,
        extension: str | None = None,
        exit_status: str = "",
        stderr_tail: str = "",
        log_path: str = "",
        may_have_run: bool = True,
        uptime_s: float | None = None,
        in_flight: tuple[str, ...] = (),
    ) -> None:
        """Say how the process ended, after how many seconds, what it worked on and last wrote, and where all of that is."""
        super().__init__(message, extension=extension, may_have_run=may_have_run)
        self.exit_status = exit_status
        self.uptime_s = uptime_s
        self.in_flight = in_flight
        self.stderr_tail = stderr_tail
        self.log_path = log_path

    def __str__(self) -> str:
        """The message, then exit, uptime, calls in flight, end of stderr, log."""
        words = _last_words(self.exit_status, self.uptime_s, self.in_flight, self.stderr_tail, self.log_path)
        return "\n".join([super().__str__(), *words])


class Overloaded(CallError):
    """Too much is waiting for this extension already; nothing was sent."""

    code = "overloaded"

    def __init__(self, message: str, *, extension: str | None = None, hint: str = "") -> None:
        """Nothing was sent, so it cannot have run."""
        super().__init__(message, extension=extension, may_have_run=False, hint=hint)


class MalformedReply(CallError):
    """The extension answered this call with a frame that cannot be used."""

    code = "malformed_reply"


class InvalidArguments(CallError):
    """Arguments do not match the schema they were declared with; nobody was asked."""

    code = "invalid_arguments"

    def __init__(self, message: str, *, extension: str | None = None, hint: str = "") -> None:
        """Say what does not match; it cannot have run."""
        super().__init__(message, extension=extension, may_have_run=False, hint=hint)


class GuardAbsent(CallError):
    """What was asked for is kept for an extension that does not serve it now."""

    code = "guard_absent"


class RemoteError(CallError):
    """The extension answered that it failed; the message is its own."""

    code = "remote_error"


class UnknownCommand(CallError):
    """Nobody has registered a command of that name."""

    code = "unknown_command"


class UnknownTool(CallError):
    """Neither the embedder nor an extension has a tool of that name."""

    code = "unknown_tool"


# --- the ledger --------------------------------------------------------------------------------------------------


class LedgerError(HostError):
    """A registration was refused, or a handle is not usable; the ledger is as it was."""

    code = "ledger_error"


class Conflict(LedgerError):
    """The key is taken in this kind and realm, and no override was asked for."""

    code = "conflict"


class OverrideDenied(LedgerError):
    """An override was asked for without authority, or of a kind that cannot be overridden."""

    code = "override_denied"


class MissingScopeId(LedgerError):
    """A binding to a run or a request was given without the id of that run or request."""

    code = "missing_scope_id"


class UnknownHandle(LedgerError):
    """No record ever had this handle."""

    code = "unknown_handle"


class DisposedHandle(LedgerError):
    """The record of this handle has been disposed of."""

    code = "disposed_handle"


class _RefusedAt(HostError):
    """A part of what an extension sent is refused: where it stands, and why."""

    code = "refused"

    def __init__(
        self, reason: str, *, code: str | None = None, field: str = "", extension: str | None = None, hint: str = ""
    ) -> None:
        """Say which field is wrong, and why."""
        super().__init__(f"{field}: {reason}" if field else reason, extension=extension, code=code, hint=hint)
        self.field = field
        self.reason = reason


class RegistrationRefused(_RefusedAt):
    """What an extension wants to register may not be registered; nothing was.

    `field` is the path in the descriptor (`models[3].id`), `descriptor` for all of it, or another part of the frame
    (`kind`, `binding.id`); empty where no field is at fault. `reason` is the message without it. `code` is one of
    conflict, override_denied, permission_denied, invalid_payload, scope_mismatch, resource_limit, event_not_dispatched.
    """

    code = "registration_refused"


# --- durable state -----------------------------------------------------------------------------------------------


class StateError(HostError):
    """Durable state cannot be read or written as asked; what was stored is as it was."""

    code = "state_error"


class StateRefused(_RefusedAt, StateError):
    """What an extension wants to store is not stored, and nothing of its batch is.

    `field` is the path in the batch (`actions[3].key`), empty where no field is at fault; `reason` is the message
    without it. `code` is one of invalid_payload, resource_limit, conflict, permission_denied, state_schema_required,
    state_migration_failed.
    """

    code = "state_refused"


class MigrationRefused(StateRefused):
    """Stored state and the extension's `state_schema` do not fit: it must not run on it. The history is kept."""

    code = "state_migration_failed"


class PositionError(StateError, ValueError):
    """A position of a transcript is not known to its session, or is there already."""

    code = "position_invalid"


class StoreFailed(StateError):
    """The store did not write, or could not read: a full disk, missing rights. `path` is the file, empty for none."""

    code = "persistence_failed"

    def __init__(
        self, message: str, *, path: str = "", extension: str | None = None, code: str | None = None, hint: str = ""
    ) -> None:
        """Say which file, and why."""
        super().__init__(f"{path}: {message}" if path else message, extension=extension, code=code, hint=hint)
        self.path = path


class SessionBusy(StoreFailed):
    """Another host, or another session of this one, has the session open. `pid` is its process, None if not known."""

    code = "session_busy"

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        pid: int | None = None,
        extension: str | None = None,
        hint: str = "",
    ) -> None:
        """Say who has it."""
        super().__init__(message, path=path, extension=extension, hint=hint)
        self.pid = pid


class StoreDamaged(StoreFailed):
    """The file is damaged. It was never replaced by an empty one; `kept` is where it lies now, unchanged."""

    code = "store_damaged"

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        kept: str = "",
        extension: str | None = None,
        hint: str = "",
    ) -> None:
        """Say what is wrong with which file, and where it is kept."""
        super().__init__(message, path=path, extension=extension, hint=hint)
        self.kept = kept
