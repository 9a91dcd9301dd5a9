"""Commands: those of each dialect, and running one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import msgspec
import trio

from trio_exthost.effects import Command, EffectKind, EffectRecord, read_command_answer
from trio_exthost.errors import CallError, InvalidArguments, MalformedReply, PayloadError, UnknownCommand
from trio_exthost.runtime.calls import Request, call, outcome_of
from trio_exthost.runtime.invocation import where
from trio_exthost.runtime.invoking import Invoked, invoke
from trio_exthost.runtime.outcomes import CommandOutcome, OpenPanel, outcome_from, outcome_of_answer
from trio_exthost.runtime.patience import Patience
from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.codec import dumps
from trio_exthost.wire.payload import find_fault

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.run import Run
    from trio_exthost.runtime.session import Session

Arguments = str | Mapping[str, Any]


@attrs.frozen
class CommandInfo:
    """A command as the agent offers it to the user."""

    name: str
    """As it was registered, without its slash; matched without regard to case."""
    description: str
    """For the user."""
    extension: str
    """Whose it is."""
    label: str = ""
    """Its name for people; empty where there is none."""
    argument_schema: Any = None
    """JSON Schema of its arguments; None: it takes the rest of the line as it is."""
    available: bool = True
    """Whether it can be run with this model and client."""


class CommandOffer(Protocol):
    """A command that an extension has registered, in whatever dialect; held in its record."""

    def info(self, session: Session, extension: str) -> CommandInfo:
        """As the agent offers it."""

    async def run(
        self, session: Session, record: EffectRecord, arguments: Arguments, run: Run | None
    ) -> CommandOutcome:
        """Run it. Raises as `Session.run_command`."""


@attrs.frozen
class ZotCommand:
    """A command registered with zot's `register_command`."""

    frame: from_extension.RegisterCommand

    def info(self, session: Session, extension: str) -> CommandInfo:  # noqa: ARG002 - zot's are always available
        """See `CommandOffer`."""
        return CommandInfo(self.frame.name, self.frame.description, extension)

    async def run(
        self, session: Session, record: EffectRecord, arguments: Arguments, run: Run | None
    ) -> CommandOutcome:
        """See `CommandOffer`. The protocol has no place for the run."""
        del run
        instance: Instance = record.registration.value.instance
        name = self.frame.name  # the registered spelling: extensions compare it as it stands
        text = _as_text(arguments, instance, name)

        def accept(frame: from_extension.CommandResponse) -> CommandOutcome:
            # The panel is open before the answer is: frames that follow in the stream may render it.
            outcome = outcome_from(frame)
            if isinstance(outcome, OpenPanel):
                session.panels.open(instance, outcome.panel)
            return outcome

        request = Request(
            make_frame=lambda id: to_extension.CommandInvoked(id, name, text),
            expected=from_extension.CommandResponse.TYPE,
            what=f"command {name!r}",
            hint="deadlines.command_s sets the limit",
            accept=accept,
        )
        outcome: CommandOutcome = await call(instance, request, instance.deadlines.command_s)
        return outcome


@attrs.frozen
class EffectCommand:
    """A command registered in the effect dialect."""

    descriptor: Command

    def _is_available(self, session: Session) -> bool:
        model = session.model
        return self.descriptor.availability.matches(model.provider, model.model, session.is_interactive)

    def info(self, session: Session, extension: str) -> CommandInfo:
        """See `CommandOffer`."""
        command = self.descriptor
        return CommandInfo(
            command.name,
            command.description,
            extension,
            command.label,
            command.argument_schema.raw,
            self._is_available(session),
        )

    async def run(
        self, session: Session, record: EffectRecord, arguments: Arguments, run: Run | None
    ) -> CommandOutcome:
        """See `CommandOffer`. Availability first, then the arguments, then the extension is asked."""
        instance: Instance = record.registration.value.instance
        name = self.descriptor.name
        if not self._is_available(session):
            raise CallError(
                f"command {name!r} is not available with this model or client",
                extension=instance.name,
                may_have_run=False,
                code="unavailable",
            )
        values = _parsed(arguments, instance.name, name)
        if fault := self.descriptor.argument_schema.explain(values):
            raise InvalidArguments(f"arguments of command {name!r}: {fault}", extension=instance.name)
        outcome: CommandOutcome = await invoke(
            instance,
            Invoked(
                record=record,
                event="command",
                payload={"name": name, "arguments": values},
                what=f"command {name!r}",
                read=lambda value: _outcome(value, instance.name, name),
                run=run,
                hint="deadlines.command_s sets the limit",
            ),
            Patience(instance.deadlines.command_s),
        )
        return outcome


def _as_text(arguments: Arguments, instance: Instance, name: str) -> str:
    """Arguments as the rest of a line: a text as it is, without the space around it; anything else as JSON."""
    if isinstance(arguments, str):
        return arguments.strip()
    # The encoder would write NaN as null, and what it raises does not say where.
    if fault := find_fault(arguments, instance.limits.json_depth):
        raise PayloadError(f"arguments of command {name!r}: {fault}", extension=instance.name)
    return dumps(arguments).decode()


def _parsed(arguments: Arguments, extension: str, name: str) -> Any:
    """Arguments as JSON: a text is parsed, an empty one stands for no arguments."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments.strip() or "{}")
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidArguments(
            f"arguments of command {name!r} are not JSON: {exc}",
            extension=extension,
            hint='it takes a JSON object, as {"env": "prod"}',
        ) from None


def _outcome(value: Any, extension: str, name: str) -> CommandOutcome:
    try:
        return outcome_of_answer(read_command_answer(value))
    except ValueError as exc:
        raise MalformedReply(f"the answer of command {name!r}: {exc}", extension=extension) from None


async def run_command(session: Session, name: str, arguments: Arguments, run: Run | None = None) -> CommandOutcome:
    """Run a command of an extension: see `Session.run_command`."""
    key = name.removeprefix("/").casefold()
    record = session.ledger.active(EffectKind.COMMAND, key, **where(run))
    if record is None:
        raise UnknownCommand(
            f"no extension has a command {name!r}", may_have_run=False, hint="session.commands() lists what there is"
        )
    begun = trio.current_time()
    error: BaseException | None = None
    try:
        outcome: CommandOutcome = await record.registration.value.descriptor.run(session, record, arguments, run)
        return outcome
    except BaseException as exc:  # also a cancellation: instruments are told how it ended, whichever way
        error = exc
        raise
    finally:
        extension, seconds = record.owner.extension_id, trio.current_time() - begun
        session.host.books.outcomes.call_ended(session.id, extension, "command", key, outcome_of(error), seconds)
