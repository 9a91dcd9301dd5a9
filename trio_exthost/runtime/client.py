"""HostClient: how the embedder's user interface hears what extensions want to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_exthost.wire.from_extension import PanelSpec

if TYPE_CHECKING:
    from trio_exthost.diagnostics import Diagnostic
    from trio_exthost.runtime.questions import Question
    from trio_exthost.runtime.session import Session


class HostClient:
    """Callbacks that do nothing; override those you care about, or pass any object that has them.

    They are called on the trio thread, with the session first, never from inside a change: when one is called, all views
    already say the new state. They must not block. One that raises becomes a diagnostic (`callback_failed`); the host
    goes on. A command's action (insert, display, prompt, ...) is its outcome and is not told here.
    """

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:
        """A note for the user; level is info, success, warn or error."""

    def clear_notes(self, session: Session, extension: str) -> None:
        """The extension takes its notes back."""

    def submit(self, session: Session, extension: str, text: str) -> None:
        """Text to be treated as typed by the user; never empty."""

    def submit_slash(self, session: Session, extension: str, text: str) -> None:
        """A slash command to be run as if typed; begins with a slash."""

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:
        """Show a panel."""

    def update_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:
        """Show this in the panel that is open."""

    def close_panel(self, session: Session, extension: str, panel_id: str) -> None:
        """The extension closed its panel, or is gone."""

    def ask_user(self, session: Session, question: Question) -> None:  # noqa: ARG002 - the protocol
        """Ask a person, and settle the question now or whenever there is an answer; several may be open at once.

        Of an extension, while it works on something of yours, whose deadline stands still; of the host itself (`extension`
        is None) about a tool call, where you handed it no `confirm`. Nothing but the person, and whoever asks, limits how
        long it is open. Control characters in its texts are as the extension sent them. Where this raises, the outcome is
        `unavailable`.
        """
        question.unavailable()

    def withdraw_question(self, session: Session, question: Question) -> None:
        """Nobody waits for this answer any more (`question.withdrawn` says why): take it off the screen."""

    def tools_changed(self, session: Session, version: int) -> None:
        """Tools or commands are others now; at most once a tick."""

    def diagnostic(self, session: Session | None, diagnostic: Diagnostic) -> None:
        """Something worth knowing; session is None where it concerns the host."""
