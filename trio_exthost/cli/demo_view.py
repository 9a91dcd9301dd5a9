"""What the demo shows: each point, who was asked, what was decided and why, how long it took, what the user sees."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trio_exthost.cli.text import printable
from trio_exthost.diagnostics import Diagnostic
from trio_exthost.policy import StepKind, Verdict
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.commands import CommandOutcome
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.session import Session
from trio_exthost.runtime.status import LoadReport
from trio_exthost.runtime.toolcall import ToolCall
from trio_exthost.wire.from_extension import PanelSpec

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS = {
    StepKind.ALLOWED: "green",
    StepKind.OWN_CALL: "dim",
    StepKind.REWROTE: "yellow",
    StepKind.BLOCKED: "red",
}


class View:
    """Prints, counts and records."""

    def __init__(self, console: Console, *, is_silent: bool) -> None:
        """Print nothing when silent; record in any case."""
        self._console = console
        self._is_silent = is_silent
        self._open_text = ""
        self._counts: Counter[str] = Counter()
        self.record: dict[str, Any] = {"events": [], "verdicts": [], "notes": [], "said": []}
        self.client: HostClient = _Client(self)
        self.instrument: HostInstrument = _Instrument(self)

    # --- printing ---

    def line(self, mark: str, text: str, style: str = "", indent: int = 0) -> None:
        """A marked line; the mark says whose it is."""
        self._end_text()
        if not self._is_silent:
            first = f"{'  ' * indent}{mark:<9}"
            for each in hanging(first, printable(text), self._console.width):
                self._console.print(each, style=style or None)

    def _end_text(self) -> None:
        if self._open_text:
            text, self._open_text = self._open_text.strip(), ""
            if text:
                self.record["said"].append(text)
                self.line("agent", text, "bold")

    def say(self, text: str) -> None:
        """A piece of what the user sees; printed when the line is complete."""
        self._open_text += text
        if text.endswith("\n"):
            self._end_text()

    # --- the course of it ---

    def begin(self, task: str, model: str, left_out: Mapping[str, str]) -> None:
        """Before anything is started."""
        self.record |= {"task": task, "model": model, "left_out": dict(left_out)}
        self.line("user", task, "bold")
        self.line(
            "model", f"{model}" + (" (no OPENAI_API_KEY: plays a script, offline)" if model == "scripted" else "")
        )
        for name, why in left_out.items():
            self.line("left out", f"{name}: {why}", "yellow")

    def loaded(self, report: LoadReport) -> None:
        """Which extensions run."""
        self.record["extensions"] = {row.name: row.state for row in report.rows}
        self.line("host", f"ready: {', '.join(report.ready)}", "cyan")
        for error in report.failed:
            self.line("host", str(error), "red")

    def event(self, event: str, payload: Mapping[str, Any], receivers: tuple[str, ...]) -> None:
        """Something was told."""
        self._counts["events told"] += len(receivers)
        self.record["events"].append({"event": event, "told": list(receivers)})
        told = f" -> {', '.join(receivers)}" if receivers else ""
        detail = payload.get("tool_name") or payload.get("name") or payload.get("status") or ""
        if event == "tool_result":
            self._counts["tools run"] += bool(payload.get("executed"))
            text = "; ".join(block.get("text", "") for block in payload["result"]["content"])
            detail = f"{payload['tool_name']} {payload['status']}: {text}"
        if event == "tool_call":
            detail = f"{payload['tool_name']} {payload['tool_args']}"
        self.line("event", f"{event} {_short(str(detail))}".rstrip() + told, "dim", 1)

    def verdict(self, verdict: Verdict) -> None:
        """Somebody was asked."""
        for step in verdict.steps:
            self._counts["asked"] += 1
            self._counts[{"blocked": "refused"}.get(step.kind.value, step.kind.value)] += 1
            words = f"{step.extension} {step.kind.value} {verdict.event} in {step.seconds * 1000:.1f} ms"
            if step.kind is StepKind.REWROTE:
                words += f": {_short(str(step.before))} => {_short(str(step.after))}"
            if step.reason:
                words += f": {step.reason}"
            self.line("asked", words, _COLOURS.get(step.kind, "red"), 1)
        self.record["verdicts"].append(
            {
                "event": verdict.event,
                "outcome": verdict.outcome.value,
                "reason": verdict.reason,
                "by": verdict.by,
                "steps": [
                    {"extension": step.extension, "kind": step.kind.value, "ms": round(step.seconds * 1000, 2)}
                    for step in verdict.steps
                ],
            }
        )

    def confirmed(self, call: ToolCall) -> None:
        """The person said yes (the demo's person always does)."""
        self._counts["confirmed"] += 1
        self.line("person", f"says yes to {call.name} {_short(str(dict(call.arguments)))}", "", 1)

    def note(self, extension: str, level: str, message: str) -> None:
        """An extension tells the user something."""
        self.record["notes"].append({"extension": extension, "level": level, "message": message})
        self.line("note", f"{extension}: {message}", "magenta", 1)

    def command(self, name: str, outcome: CommandOutcome) -> None:
        """A slash command was run."""
        text = getattr(outcome, "text", None) or outcome.action
        self.line("user", f"/{name}", "bold")
        for each in str(text).split("\n"):
            self.line("", each, "", 1)

    def result(self, text: str) -> None:
        """What the agent left behind."""
        self.record["greet_sh"] = text
        self.line("result", f"greet.sh now says: {text.strip().splitlines()[-1]}", "bold")

    def end(self, seconds: float, folder: Path | None) -> None:
        """The summary."""
        self.record |= {"seconds": round(seconds, 3), "summary": dict(self._counts)}
        if folder is not None:
            self.record["folder"] = str(folder)
        order = ("events told", "asked", "refused", "rewrote", "confirmed", "tools run")  # in the order they happen
        words = [f"{self._counts[word]} {word}" for word in order]
        extensions = len(self.record.get("extensions", ()))
        self.line("summary", f"{extensions} extensions, {', '.join(words)}, {seconds:.1f} s", "cyan")
        if folder is not None:
            self.line("kept", str(folder))


def hanging(first: str, text: str, width: int) -> list[str]:
    """The text wrapped to `width`, its later lines below where it began."""
    pad = " " * len(first)
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=pad) or [first.rstrip()]


def _short(text: str, most: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


class _Client(HostClient):
    def __init__(self, view: View) -> None:
        self._view = view

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:  # noqa: ARG002 - the protocol
        self._view.note(extension, level, message)

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:  # noqa: ARG002 - the protocol
        self._view.line("panel", f"{extension}: {panel.title}", "magenta", 1)

    def diagnostic(self, session: Session | None, diagnostic: Diagnostic) -> None:  # noqa: ARG002 - the protocol
        self._view.line("host", f"{diagnostic.code}: {diagnostic.message}", "yellow", 1)


class _Instrument(HostInstrument):
    def __init__(self, view: View) -> None:
        self._view = view

    def event_emitted(
        self,
        session_id: str,  # noqa: ARG002 - the protocol
        event: str,
        sequence: int,  # noqa: ARG002 - the protocol
        payload: Mapping[str, Any],
        receivers: tuple[str, ...],
    ) -> None:
        self._view.event(event, payload, receivers)

    def chain_ended(self, session_id: str, verdict: Verdict, seconds: float) -> None:  # noqa: ARG002 - the protocol
        self._view.verdict(verdict)
