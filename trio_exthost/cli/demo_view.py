"""What the demo shows: each point, who was asked, what was decided and why, how long it took, what the user sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trio_exthost import CommandOutcome
from trio_exthost.cli.difference import around
from trio_exthost.cli.streams import ReaderGone
from trio_exthost.cli.text import Output, printable, short
from trio_exthost.diagnostics import Diagnostic
from trio_exthost.hooks import Event
from trio_exthost.policy import Step, StepKind, Verdict
from trio_exthost.runtime.client import HostClient
from trio_exthost.runtime.instrument import HostInstrument
from trio_exthost.runtime.session import Session
from trio_exthost.runtime.status import LoadReport
from trio_exthost.runtime.toolcall import ToolCall
from trio_exthost.wire.from_extension import PanelSpec

_COLOURS = {
    StepKind.ALLOWED: "green",
    StepKind.OWN_CALL: "dim",
    StepKind.REWROTE: "yellow",
    StepKind.BLOCKED: "red",
}
COUNTED = ("events told", "asked", "refused", "rewrote", "hidden", "replaced", "confirmed", "tools run")
"""The words of the summary, in the order in which they happen. `rewrote` is about arguments, `replaced` about texts."""


class View:
    """Prints, counts and records."""

    def __init__(self, *, is_silent: bool) -> None:
        """Print nothing when silent; record in any case."""
        self._output = Output()
        self._is_silent = is_silent
        self._open_text = ""
        self._counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.record: dict[str, Any] = {"events": [], "verdicts": [], "notes": [], "said": []}
        self.client: HostClient = _Client(self)
        self.instrument: HostInstrument = _Instrument(self)
        self.on_broken: Callable[[], object] = lambda: None
        """Called once, when nothing can be printed any more."""
        self.broken: ReaderGone | OSError | None = None
        """Why nothing can be printed any more. Kept, not raised: whoever calls a view is in the middle of the host."""

    # --- printing ---

    def line(self, mark: str, text: str, style: str = "", indent: int = 0) -> None:
        """A marked line; the mark says whose it is."""
        self._end_text()
        if self._is_silent or self.broken is not None:
            return
        try:
            self._output.line(text, first=f"{'  ' * indent}{mark:<9}", style=style)
        except (ReaderGone, OSError) as exc:
            self.broken = exc
            self.on_broken()

    def lines(self, mark: str, text: str, style: str = "", indent: int = 0) -> None:
        """As `line`, for a text of several lines; the mark stands at the first."""
        for place, each in enumerate(text.replace("\r\n", "\n").split("\n")):
            self.line("" if place else mark, each, style, indent)

    def _end_text(self) -> None:
        if self._open_text:
            text, self._open_text = self._open_text.strip(), ""
            if text:
                self.record["said"].append(text)
                self.lines("agent", text, "bold")

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
            self.lines("host", str(error), "red")

    def event(self, event: str, payload: Mapping[str, Any], receivers: tuple[str, ...]) -> None:
        """Something was told."""
        self._counts["events told"] += len(receivers)
        self.record["events"].append({"event": event, "told": list(receivers)})
        told = f" -> {', '.join(receivers)}" if receivers else ""
        detail = payload.get("tool_name") or payload.get("name") or payload.get("status") or ""
        if event == Event.TOOL_RESULT:
            self._counts["tools run"] += bool(payload.get("executed"))
            text = "; ".join(block.get("text", "") for block in payload["result"]["content"])
            detail = f"{payload['tool_name']} {payload['status']}: {text}"
        if event == Event.TOOL_CALL:
            # Arguments that are no JSON are told as the model wrote them.
            detail = f"{payload['tool_name']} {payload.get('tool_args', payload.get('tool_args_raw', ''))}"
        self.line("event", f"{event} {short(detail)}".rstrip() + told, "dim", 1)

    def verdict(self, verdict: Verdict) -> None:
        """Somebody was asked."""
        for step in verdict.steps:
            done = _deed(verdict, step)
            self._counts["asked"] += 1
            if done in COUNTED:
                self._counts[done] += 1
            words = f"{step.extension} {_SAID.get(done, done)} {verdict.event} in {step.seconds * 1000:.1f} ms"
            if step.kind is StepKind.REWROTE:
                before, after = around(printable(step.before), printable(step.after))
                words += f": {before} => {after}"
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
        self.line("person", f"says yes to {call.name} {short(str(dict(call.arguments)))}", "", 1)

    def note(self, extension: str, level: str, message: str) -> None:
        """An extension tells the user something."""
        self.record["notes"].append({"extension": extension, "level": level, "message": message})
        self.line("note", f"{extension}: {message}", "magenta", 1)

    def command(self, name: str, outcome: CommandOutcome) -> None:
        """A slash command was run."""
        text = getattr(outcome, "text", None) or outcome.action
        self.line("user", f"/{name}", "bold")
        self.lines("", str(text), "", 1)

    def result(self, text: str) -> None:
        """What the agent left behind."""
        self.record["greet_sh"] = text
        lines = text.strip().splitlines()
        self.line("result", f"greet.sh now says: {lines[-1]}" if lines else "greet.sh is empty or gone", "bold")

    def end(self, seconds: float, folder: Path | None) -> None:
        """The summary."""
        self.record |= {"seconds": round(seconds, 3), "summary": dict(self._counts)}
        if folder is not None:
            self.record["folder"] = str(folder)
        words = [f"{self._counts[word]} {word}" for word in COUNTED]
        extensions = len(self.record.get("extensions", ()))
        self.line("summary", f"{extensions} extensions, {', '.join(words)}, {seconds:.1f} s", "cyan")
        if folder is not None:
            self.line("kept", str(folder))


_SAID = {"refused": "blocked", "hidden": "hid"}
"""What an extension did, where the summary's word for it is another."""


def _deed(verdict: Verdict, step: Step) -> str:
    """What one member did, in a word; of a text it is another word than of a call."""
    match step.kind:
        case StepKind.BLOCKED:
            return "hidden" if verdict.event == Event.ASSISTANT_MESSAGE else "refused"
        case StepKind.REWROTE:
            return "replaced" if isinstance(step.after, str) else "rewrote"
        case _:
            return str(step.kind.value).replace("_", " ")


class _Client(HostClient):
    def __init__(self, view: View) -> None:
        self._view = view

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:  # noqa: ARG002 - the protocol
        self._view.note(extension, level, message)

    def open_panel(self, session: Session, extension: str, panel: PanelSpec) -> None:  # noqa: ARG002 - the protocol
        self._view.line("panel", f"{extension}: {panel.title}", "magenta", 1)

    def diagnostic(self, session: Session | None, diagnostic: Diagnostic) -> None:  # noqa: ARG002 - the protocol
        first, *_ = diagnostic.message.splitlines() or [""]
        self._view.line("host", f"{diagnostic.code}: {first}", "yellow", 1)


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
