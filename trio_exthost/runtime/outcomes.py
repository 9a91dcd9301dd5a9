"""What a command wants done: its answer as a typed outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from trio_exthost.effects import CommandAnswer, CommandStatus
from trio_exthost.wire import from_extension
from trio_exthost.wire.from_extension import PanelSpec


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


@attrs.frozen
class Success:
    """It did what it was asked to; of a command of the effect dialect."""

    action: ClassVar[str] = "success"
    message: str = ""
    """For the user."""
    data: Any = None
    """For programs."""


@attrs.frozen
class Rejected:
    """It would not, and says why; of a command of the effect dialect."""

    action: ClassVar[str] = "rejected"
    code: str = ""
    """Why, as a word."""
    message: str = ""
    """Why, for the user."""


@attrs.frozen
class CommandCancelled:
    """It was given up on the extension's side; of a command of the effect dialect."""

    action: ClassVar[str] = "cancelled"
    code: str = ""
    """Why, as a word."""
    message: str = ""
    """Why, for the user."""


CommandOutcome = (
    Prompt | ToolPrompt | Insert | Display | OpenPanel | Noop | CommandFailed | Success | Rejected | CommandCancelled
)
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


def outcome_of_answer(answer: CommandAnswer) -> CommandOutcome:
    """The answer of a command of the effect dialect."""
    if answer.status == CommandStatus.SUCCESS:
        return Success(answer.message, answer.data)
    kind = Rejected if answer.status == CommandStatus.REJECTED else CommandCancelled
    return kind(answer.code, answer.message)
