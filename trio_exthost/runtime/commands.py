"""Commands: running one, and its answer as a typed outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import msgspec
import trio

from trio_exthost.errors import UnknownCommand
from trio_exthost.runtime.calls import Request, call, outcome_of
from trio_exthost.wire import from_extension, to_extension
from trio_exthost.wire.from_extension import PanelSpec

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.session import Session


@attrs.frozen
class CommandInfo:
    """A command as the agent offers it to the user."""

    name: str
    """As it was registered, without its slash; matched without regard to case."""
    description: str
    """For the user."""
    extension: str
    """Whose it is."""


@attrs.frozen
class Prompt:
    """Submit this text as a new message of the user's."""

    action: ClassVar[str] = "prompt"
    text: str


@attrs.frozen
class ToolPrompt:
    """Run a tool through guards and confirmation, keep call and result in the transcript, then run a turn with the prompt."""

    action: ClassVar[str] = "tool_prompt"
    prompt: str
    tool_name: str
    tool_args: Mapping[str, Any]


@attrs.frozen
class Insert:
    """Put this text into the editor at the cursor; do not submit it."""

    action: ClassVar[str] = "insert"
    text: str


@attrs.frozen
class Display:
    """Show this once; not part of the transcript, no call of the model."""

    action: ClassVar[str] = "display"
    text: str


@attrs.frozen
class OpenPanel:
    """A panel is open now; the client has been told."""

    action: ClassVar[str] = "open_panel"
    panel: PanelSpec


@attrs.frozen
class Noop:
    """Nothing to be done."""

    action: ClassVar[str] = "noop"


@attrs.frozen
class CommandFailed:
    """The command failed, in its own words; whatever else its answer said does not count."""

    action: ClassVar[str] = "error"
    error: str


CommandOutcome = Prompt | ToolPrompt | Insert | Display | OpenPanel | Noop | CommandFailed
"""What a command wants done; match on the class, or on `action`."""


def outcome_from(frame: from_extension.CommandResponse) -> CommandOutcome:
    """The answer's action as a typed outcome; `error` wins over all."""
    if frame.error:
        return CommandFailed(frame.error)
    match frame.action:
        case "prompt":
            return Prompt(frame.prompt)
        case "tool_prompt":
            if frame.prompt and frame.tool_name and isinstance(frame.tool_args, dict):
                return ToolPrompt(frame.prompt, frame.tool_name, frame.tool_args)
            return CommandFailed("tool_prompt needs a prompt, a tool_name and tool_args that are an object")
        case "insert":
            return Insert(frame.insert)
        case "display":
            return Display(frame.display)
        case "open_panel":
            if frame.open_panel is not None:
                return OpenPanel(frame.open_panel)
            return CommandFailed("open_panel came without a panel")
        case "noop" | "":
            return Noop()
        case unknown:
            return CommandFailed(f"the command answered with an unknown action {unknown!r}; nothing was done")


def _accept(instance: Instance, frame: from_extension.CommandResponse) -> CommandOutcome:
    """The panel is open before the answer is: frames that follow in the stream may render it."""
    outcome = outcome_from(frame)
    if isinstance(outcome, OpenPanel):
        instance.session.panels.open(instance, outcome.panel)
    return outcome


async def run_command(session: Session, name: str, arguments: str | Mapping[str, Any]) -> CommandOutcome:
    """Run a command of an extension: see `Session.run_command`."""
    record = session.views.commands.get(name.removeprefix("/").casefold())
    if record is None:
        raise UnknownCommand(
            f"no extension has a command {name!r}", may_have_run=False, hint="session.commands() lists what there is"
        )
    instance, registered = record.registration.value.instance, record.registration.value.descriptor
    text = arguments.strip() if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    begun = trio.current_time()
    error: BaseException | None = None
    try:
        outcome: CommandOutcome = await call(
            instance,
            Request(
                # The registered spelling: extensions compare it as it stands.
                make_frame=lambda id: to_extension.CommandInvoked(id, registered.name, text),
                expected=from_extension.CommandResponse.TYPE,
                what=f"command {registered.name!r}",
                hint="deadlines.command_s sets the limit",
                accept=lambda frame: _accept(instance, frame),
            ),
            instance.deadlines.command_s,
        )
    except BaseException as exc:
        error = exc
        raise
    finally:
        if (instrument := session.host.instrument) is not None:
            instrument.call_ended(
                session.id, instance.name, "command", registered.name, outcome_of(error), trio.current_time() - begun
            )
    return outcome
