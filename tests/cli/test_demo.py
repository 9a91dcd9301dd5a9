"""`exthost demo`: what it shows, counts and leaves behind."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from cli.running import run

from trio_exthost.cli.demo_view import COUNTED, View
from trio_exthost.errors import LoadError
from trio_exthost.policy import Outcome, Step, StepKind, Verdict
from trio_exthost.runtime.status import LoadReport


def test_demo_is_readable_at_80_columns_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    done = run(home, "demo", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert "guard blocked tool_call" in done.stdout
    assert 'greet.sh now says: echo "hello, world"' in done.stdout
    assert list(tmp_path.glob("exthost-demo*")) == []


def test_demo_as_json_tells_what_was_decided(home: Path) -> None:
    record = json.loads(run(home, "demo", "--json").stdout)
    assert record["extensions"]["guard"] == "ready"
    blocked = [verdict for verdict in record["verdicts"] if verdict["outcome"] == "block"]
    assert [verdict["by"] for verdict in blocked] == ["guard"]
    left = {"redact", "weather"} - set(record["left_out"])
    assert set(record["extensions"]) == {"guard", "audit", "todo", *left}
    assert "sk-demo" not in record["said"][-1] or "redact" in record["left_out"]
    summary = record["summary"]
    assert set(summary) == set(COUNTED)
    assert (summary["refused"], summary["rewrote"], summary["hidden"]) == (1, 1, 0)
    assert summary["replaced"] == ("redact" not in record["left_out"])


def test_demo_with_keep_says_where_its_folder_is(home: Path, tmp_path: Path) -> None:
    record = json.loads(run(home, "demo", "--json", "--keep", TMPDIR=str(tmp_path)).stdout)
    (folder,) = tmp_path.glob("exthost-demo*")
    assert record["folder"] == str(folder)
    assert (folder / "project/greet.sh").read_text() == record["greet_sh"]


def verdict(event: str, *steps: Step) -> Verdict:
    return Verdict(event=event, outcome=Outcome.ALLOW, value={}, original={}, steps=steps)


def test_summary_counts_refused_calls_and_hidden_texts_apart(capsys) -> None:
    view = View(is_silent=False)
    view.verdict(verdict("tool_call", Step("g", StepKind.BLOCKED), Step("h", StepKind.REWROTE, 0, "", {}, {"a": 1})))
    view.verdict(verdict("assistant_message", Step("g", StepKind.BLOCKED)))
    view.verdict(verdict("assistant_message", Step("r", StepKind.REWROTE, 0, "", "one", "two")))
    view.verdict(verdict("turn_start", Step("g", StepKind.TIMED_OUT)))
    view.end(1.5, None)
    assert view.record["summary"] == {
        "events told": 0, "asked": 5, "refused": 1, "rewrote": 1, "hidden": 1, "replaced": 1, "confirmed": 0, "tools run": 0,
    }  # fmt: skip
    shown = capsys.readouterr().out
    assert "g hid assistant_message" in shown
    assert "g timed out turn_start" in shown
    assert "1 refused, 1 rewrote, 1 hidden, 1 replaced" in " ".join(shown.split())


def test_long_rewrite_is_shown_around_the_difference(capsys) -> None:
    same = "word " * 50
    step = Step("redact", StepKind.REWROTE, 0, "", f"{same}sk-key", f"{same}[red]gone[/red]")
    View(is_silent=False).verdict(verdict("assistant_message", step))
    shown = capsys.readouterr().out
    text = " ".join(shown.split())
    assert "word sk-key => ..." in text
    assert text.endswith("word [red]gone[/red]")


def test_texts_of_models_tools_and_errors_cannot_act_on_the_terminal(capsys) -> None:
    evil = "\x1b[2J\u202e[bold]x[/]"
    view = View(is_silent=False)
    view.begin(evil, evil, {evil: evil})
    view.loaded(LoadReport(ready=(evil,), late=(), failed=(LoadError(evil, stderr_tail=f"{evil}\nlast"),), rows=()))
    view.event(evil, {"tool_name": evil}, (evil,))
    view.event("tool_call", {"tool_name": "t", "tool_args_raw": evil}, ())
    view.event(
        "tool_result", {"tool_name": evil, "status": evil, "result": {"content": [{"type": "text", "text": evil}]}}, ()
    )
    view.verdict(verdict(evil, Step(evil, StepKind.REWROTE, 0, evil, evil, f"{evil}!")))
    view.note(evil, evil, evil)
    view.say(f"{evil}\n")
    view.result(evil)
    view.end(0, Path(evil))
    shown = capsys.readouterr().out
    assert shown.count(r"\x1b[2J\u202e[bold]x[/]") > 10
    assert shown.replace("\n", "").isprintable()
    assert re.search("^ +stderr: .*\n +last", shown, re.MULTILINE)


def test_script_that_is_gone_is_a_result(capsys) -> None:
    View(is_silent=False).result("")
    shown = capsys.readouterr().out
    assert "greet.sh is empty or gone" in shown


def test_stream_that_breaks_is_told_once_and_kept(monkeypatch) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stdout", Broken())
    view = View(is_silent=False)
    calls: list[str] = []
    view.on_broken = lambda: calls.append("broken")
    view.note("a", "info", "one")
    view.note("a", "info", "two")
    assert calls == ["broken"]
    assert isinstance(view.broken, OSError)
    assert [note["message"] for note in view.record["notes"]] == ["one", "two"]
