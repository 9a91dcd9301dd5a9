"""Why an instance failed, in the words that whoever loaded it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code
from trio_exthost.errors import ExtensionExited, LoadError
from trio_exthost.runtime.next_steps import next_step

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.process import ExitStatus


def load_error(
    instance: Instance, code: str | None, why: str, *, stage: str, status: ExitStatus | None, hint: str
) -> LoadError:
    """The error of one that failed for this reason, at this stage of its start."""
    return LoadError(
        why,
        extension=instance.name,
        stage=stage,
        exit_status=str(status) if status is not None else "",
        stderr_tail=instance.log.tail(),
        log_path=str(instance.log.path),
        code=str(code or Code.LOAD_FAILED),
        hint=hint
        or _explain_exit(instance, stage, status)
        or next_step(code, stage, instance.candidate.directory, instance.manifest),
        uptime_s=instance.uptime_s,
        in_flight=in_flight(instance),
    )


def reason_of(error: LoadError) -> str:
    """The error in a sentence, for a row."""
    status, uptime_s, calls = error.exit_status, error.uptime_s, error.in_flight
    details = [f"{status} after {uptime_s:.2f} s".lstrip()] if uptime_s is not None else [status]
    if calls:
        details.append(f"while {calls[0]} awaited its answer" + (f", and {len(calls) - 1} more" * (len(calls) > 1)))
    told = "; ".join(filter(None, [*details, error.hint]))
    return f"{error.message} ({told})" if told else error.message


def in_flight(instance: Instance) -> tuple[str, ...]:
    """What it was asked and has not answered, in the order of asking."""
    return tuple(each.request.what for each in instance.replies.pending())


def _explain_exit(instance: Instance, stage: str, status: ExitStatus | None) -> str:
    """What an exit before `hello` probably means, or nothing."""
    if status is None or stage != "hello":
        return ""
    from trio_exthost.packages import explain_exit  # noqa: PLC0415 - heavy, and only where one fails

    return explain_exit(status.code, instance.argv, instance.env_path)


def fresh(error: LoadError) -> LoadError:
    """The same error to raise: the one that is kept for the report stays without a traceback."""
    return LoadError(
        error.message,
        extension=error.extension,
        stage=error.stage,
        exit_status=error.exit_status,
        stderr_tail=error.stderr_tail,
        log_path=error.log_path,
        code=error.code,
        hint=error.hint,
        uptime_s=error.uptime_s,
        in_flight=error.in_flight,
    )


def abort_calls(instance: Instance, status: ExitStatus | None) -> None:
    """Whoever awaits an answer of it learns that none will come, and why."""
    exit_status, tail, log_path = str(status or ""), instance.log.tail(), str(instance.log.path)
    reason = instance.error.message if instance.error is not None else instance.reason
    calls = in_flight(instance)
    instance.replies.fail_all(
        lambda: ExtensionExited(
            f"it ended before it answered: {reason}",
            extension=instance.name,
            exit_status=exit_status,
            stderr_tail=tail,
            log_path=log_path,
            uptime_s=instance.uptime_s,
            in_flight=calls,
        )
    )
