"""What `exthost dev` shows: the demo's lines while the agent works, and between them what changed and what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from trio_exthost.cli.demo_view import View
from trio_exthost.cli.streams import ReaderGone
from trio_exthost.cli.text import short
from trio_exthost.errors import HostError
from trio_exthost.runtime.outcomes import CommandOutcome
from trio_exthost.runtime.reload_report import ReloadReport
from trio_exthost.runtime.status import LoadReport

_ROUND: dict[str, type[list[Any]]] = {"events": list, "verdicts": list, "notes": list, "said": list, "commands": list}
"""What is recorded while the agent works, and forgotten when it begins again."""
_SHOWN_PATHS = 3


class DevView(View):
    """Prints each line at once, or with `as_json` an object a line."""

    def __init__(self, directory: Path, *, as_json: bool) -> None:
        """Show an extension's folder."""
        super().__init__(is_silent=as_json)
        self._directory = directory
        self._as_json = as_json

    def line(self, mark: str, text: str, style: str = "", indent: int = 0) -> None:
        """As the demo's, but never kept back: whoever reads it waits for it."""
        super().line(mark, text, style, indent)
        self._send("")

    def _tell(self, what: str, **facts: Any) -> None:
        if self._as_json:
            self._send(json.dumps({"what": what, **facts}, allow_nan=False, default=str) + "\n")

    def _send(self, text: str) -> None:
        if self.broken is None:
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except (ReaderGone, OSError) as exc:
                self.broken = exc
                self.on_broken()

    # --- the extension ---

    def loaded(self, report: LoadReport) -> None:
        """How the first start went."""
        super().loaded(report)
        failed = [
            {"name": each.extension, "stage": each.stage, "reason": str(each), "log_path": each.log_path}
            for each in report.failed
        ]
        self._tell("loaded", ready=report.ready, failed=failed)
        if not report.ready:
            self._wait_for_a_save()

    def changed(self, paths: Iterable[str]) -> None:
        """These were saved."""
        names = [str(Path(path).relative_to(self._directory)) for path in paths]
        more = f" and {len(names) - _SHOWN_PATHS} more" if len(names) > _SHOWN_PATHS else ""
        self.line("changed", short(", ".join(names[:_SHOWN_PATHS]), 200) + more, "cyan")
        self._tell("changed", paths=names)

    def waiting(self) -> None:
        """The successor takes over once the agent is through."""
        self.line("host", "reloaded when the agent is through", "cyan")

    def reloaded(self, report: ReloadReport, seconds: float) -> None:
        """What came of a change."""
        for name in report.added:
            self.line("added", f"{name} in {seconds:.2f} s", "green")
        for each in report.restarted:
            self.line("reloaded", f"{each.name}: process {each.old_pid} -> {each.new_pid} in {seconds:.2f} s", "green")
        for name in report.removed:
            self.line("removed", name, "yellow")
        for failure in report.failed:
            self.lines("failed", f"{failure.name}: {failure.reason.removeprefix(f'{failure.name}: ')}", "red")
        if not (report.added or report.restarted or report.removed or report.failed):
            self.line("host", "nothing has changed in what it consists of", "dim")
        self._tell("reloaded", seconds=round(seconds, 3), **attrs.asdict(report))
        if report.failed:
            self._wait_for_a_save()

    def paused(self, seconds: float, most: int, window_s: float) -> None:
        """It changes too often."""
        reason = f"{most} reloads in {window_s:g} s: paused for {seconds:.0f} s; does it write into its own folder?"
        self.line("paused", f"{reason} (exthost.watch_ignore names such files)", "yellow")
        self._tell("paused", seconds=round(seconds, 1), most=most, window_s=window_s)

    def _wait_for_a_save(self) -> None:
        self.line("host", "waiting for the next save", "dim")

    # --- the agent ---

    def begin_round(self, task: str) -> None:
        """The agent begins to work, from the start."""
        self.record |= {key: make() for key, make in _ROUND.items()}
        self.line("user", task, "bold")

    def command(self, name: str, outcome: CommandOutcome) -> None:
        """A command was run."""
        super().command(name, outcome)
        text = getattr(outcome, "text", None) or outcome.action
        self.record["commands"].append({"command": name, "action": outcome.action, "text": str(text)})

    def command_failed(self, name: str, error: HostError) -> None:
        """A command gave nothing."""
        self.line("user", f"/{name}", "bold")
        self.lines("", str(error), "red", 1)
        self.record["commands"].append({"command": name, "action": "failed", "text": str(error)})

    def end_round(self) -> None:
        """The agent is through."""
        self._tell("played", **{key: self.record[key] for key in _ROUND})
        self.line("host", "waiting for the next save; Ctrl-C ends it", "dim")
