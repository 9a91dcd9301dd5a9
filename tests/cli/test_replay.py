"""`exthost replay`: recorded conversations through real extensions; nothing is executed, everything is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli.replaying import guard, listener, replay, replay_json, told
from cli.transcript_texts import CLAUDE, MESSAGES, PUSH, RECORDINGS, WIPE, lines, recording

from trio_exthost.cli.examples import examples_directory
from trio_exthost.cli.text import cells

GUARD_REASON = "guard refuses rm -r of /, ~, *, . or a system directory. Name the exact files below the project."


@pytest.fixture(autouse=True)
def its_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTHOST_HOME", str(home))


@pytest.mark.parametrize("name", ["events", "list", "object", "trajectories", "claude"])
def test_guard_refuses_and_rewrites_the_same_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    told_format, data = RECORDINGS[name]
    found = replay_json(capsys, recording(tmp_path, data), "--ext", guard())
    assert (found["ok"], found["format"], found["error"]) == (True, told_format, None)
    assert [found[word] for word in ("conversations", "prompts", "turns", "texts", "calls", "results")] == [
        1,
        1,
        2,
        1,
        2,
        2,
    ]
    assert [
        (each["deed"], each["tool"], each["reason"], each["count"], each["tool_id"]) for each in found["findings"]
    ] == [
        ("refused", "bash", GUARD_REASON, 1, "c1"),
        ("rewritten", "bash", "", 1, "c2"),
    ]
    refused, rewritten = found["findings"]
    assert refused["example"] == '{"command": "rm -rf / ***"}'
    assert rewritten["example"] == 'command: "git push origin main" -> "git push --dry-run origin main"'
    assert found["verdicts"]["tool_call"] == {"allow": 1, "ask": 0, "block": 1}
    assert found["unaware"] == ["guard"]
    (row,) = found["extensions"]
    assert (row["name"], row["state"], row["asked"], row["points"]) == ("guard", "ready", 2, {"tool_call": 2})
    assert 0 < row["p50_s"] <= row["p99_s"] <= row["max_s"]


@pytest.mark.skipif(shutil.which("node") is None, reason="redact needs Node")
def test_redact_hides_the_key_and_the_report_does_not_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path, RECORDINGS["claude"][1])
    found = replay_json(capsys, path, "--ext", examples_directory() / "extensions/redact")
    (finding,) = found["findings"]
    assert (finding["extension"], finding["deed"], finding["tool"], finding["at"]) == (
        "redact",
        "rewritten",
        "",
        "line 4",
    )
    assert "sk-0123456789abcdefghij" not in json.dumps(found)


def test_events_are_told_as_usual_with_the_recorded_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = listener(
        tmp_path / "x", tool_call={"block": True, "reason": "never"}, assistant_message={"replace_text": "***"}
    )
    found = replay_json(capsys, recording(tmp_path, json.dumps(MESSAGES).encode()), "--ext", folder)
    frames = [each for each in told(folder) if each["type"] in ("event", "event_intercept")]
    assert [(each["type"] == "event_intercept", each["event"]) for each in frames] == [
        (False, "session_start"),
        (True, "before_agent_start"),
        (False, "user_prompt_submit"),
        (False, "turn_start"),
        (True, "turn_start"),
        (True, "assistant_message"),
        (False, "assistant_message"),
        (False, "tool_call"),
        (True, "tool_call"),
        (False, "turn_end"),
        (False, "tool_result"),
        (False, "turn_start"),
        (True, "turn_start"),
        (False, "tool_call"),
        (True, "tool_call"),
        (False, "turn_end"),
        (False, "tool_result"),
        (False, "session_end"),
    ]
    events = {(each["event"], each.get("tool_id")): each for each in frames if each["type"] == "event"}
    assert events["user_prompt_submit", None]["text"].split() == ["tidy", "up"]
    assert events["user_prompt_submit", None]["image_count"] == 1
    assert events["assistant_message", None]["text"] == "***"
    assert events["tool_call", "c1"]["tool_args"] == WIPE
    result = events["tool_result", "c2"]
    assert (result["tool_name"], result["tool_args"], result["status"], result["executed"]) == (
        "bash",
        PUSH,
        "completed",
        True,
    )
    assert result["result"] == {"content": [{"type": "text", "text": "done"}], "is_error": False}
    questions = {each["event"]: each for each in frames if each["type"] == "event_intercept"}
    assert questions["before_agent_start"]["system_prompt"] == "be brief"
    assert questions["turn_start"]["step"] == 2
    assert [(each["deed"], each["point"], each["reason"], each["count"]) for each in found["findings"]] == [
        ("refused", "tool_call", "never", 2),
        ("rewritten", "assistant_message", "", 1),
    ]


def test_text_that_would_be_hidden_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = listener(tmp_path / "x", assistant_message={"block": True, "reason": "secret"}, turn_start={"block": True})
    found = replay_json(capsys, recording(tmp_path, lines(CLAUDE)), "--ext", folder)
    assert ("event", "assistant_message") not in [(each["type"], each.get("event")) for each in told(folder)]
    assert [(each["deed"], each["point"], each["count"]) for each in found["findings"]] == [
        ("refused", "turn_start", 2),
        ("hidden", "assistant_message", 1),
    ]
    assert [each["status"] for each in told(folder) if each.get("event") == "tool_result"] == ["failed", "completed"]


def test_calls_and_results_are_paired_by_id_or_else_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*ids: str) -> dict[str, Any]:
        calls = [{"id": each, "function": {"name": f"t{place}", "arguments": "{}"}} for place, each in enumerate(ids)]
        return {"role": "assistant", "tool_calls": calls}

    def result(id: str | None, content: str) -> dict[str, Any]:
        return {"role": "tool", "content": content, **({"tool_call_id": id} if id else {})}

    user = {"role": "user", "content": "go"}
    first = [user, call("a", "b"), result("b", "rb"), result("z", "nobody's"), result("a", "ra"), call("c"), user]
    second = [
        user,
        call("", ""),
        result(None, "r0"),
        result(None, "r1"),
        result(None, "none left"),
        result("c", "of another"),
    ]
    folder = listener(tmp_path / "x")
    found = replay_json(capsys, recording(tmp_path, lines([first, second])), "--ext", folder)
    assert (found["conversations"], found["calls"], found["results"], found["unpaired_results"]) == (2, 5, 7, 3)
    pairs = [
        (each["tool_name"], each["result"]["content"][0]["text"])
        for each in told(folder)
        if each.get("event") == "tool_result"
    ]
    assert pairs == [("t1", "rb"), ("t0", "ra"), ("t0", "r0"), ("t1", "r1")]
    runs = [each["agent_run_id"] for each in told(folder) if each.get("event") == "user_prompt_submit"]
    assert len(set(runs)) == 3


def test_arguments_that_are_no_object_are_refused_by_the_host_and_told_as_they_stand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [{"id": "c", "function": {"name": "bash", "arguments": '{"command": '}}]
    path = recording(
        tmp_path,
        lines([[{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "c", "content": ""}]]),
    )
    folder = listener(tmp_path / "x")
    found = replay_json(capsys, path, "--ext", folder)
    ((extension_, deed, reason),) = [(each["extension"], each["deed"], each["reason"]) for each in found["findings"]]
    assert (extension_, deed) == (None, "refused")
    assert reason.startswith("the arguments are not JSON")
    assert [each["tool_args_raw"] for each in told(folder) if each.get("event") == "tool_result"] == ['{"command": ']
    assert found["turns"] == 1
    replay(path, "--ext", folder)
    assert "the host itself\n  refuses 1x tool_call bash: the arguments are not JSON" in capsys.readouterr().out


def test_log_that_tells_no_turns_has_one_for_each_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [{"event": "tool_call", "tool_id": "c1", "tool_name": "bash", "tool_args": PUSH}]
    for _ in range(2):
        events += [
            {"event": "user_prompt_submit", "text": "go"},
            {"event": "assistant_message", "text": "well"},
            events[0],
        ]
    folder = listener(tmp_path / "x")
    found = replay_json(capsys, recording(tmp_path, lines(events)), "--ext", folder)
    assert (found["turns"], found["calls"]) == (3, 3)
    steps = [
        (each["agent_run_id"], each["step"])
        for each in told(folder)
        if each["type"] == "event" and each["event"] == "turn_start"
    ]
    assert [step for _, step in steps] == [1, 1, 1]
    assert len(set(steps)) == 3


def test_every_event_reaches_an_extension_however_many_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than may wait for one extension, of a size that fills its pipe."""
    many = [{"event": "user_prompt_submit", "text": f"{number} {'x' * 2000}"} for number in range(1500)]
    folder = listener(tmp_path / "x")
    found = replay_json(capsys, recording(tmp_path, lines(many)), "--ext", folder)
    assert [each["text"].split()[0] for each in told(folder) if each.get("event") == "user_prompt_submit"] == [
        str(n) for n in range(1500)
    ]
    assert found["extensions"][0]["missed"] == 0


def test_text_that_no_frame_can_hold_is_a_problem_of_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path, lines([{"role": "assistant", "content": "x" * 5_000_000}, *MESSAGES]))
    found = replay_json(capsys, path, "--ext", listener(tmp_path / "x"))
    ((at, why),) = [(each["at"], each["why"]) for each in found["problems"]]
    assert at == "line 1"
    assert why.startswith("cannot be sent: ")
    assert (found["unreadable"], found["calls"]) == (1, 2)


# --- as text -----------------------------------------------------------------------------------------------------------


def test_report_as_text_fits_and_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = listener(tmp_path / "x", tool_call={"block": True, "reason": "no \x1b[31m" + "very " * 30})
    broken = [*lines(CLAUDE).splitlines(), b"{", *[b"\x1b[2J"] * 8, lines([{"type": "\x1b[7mnew"}]).strip()]
    replay(recording(tmp_path, b"\n".join(broken)), "--ext", guard(), "--ext", folder)
    out, err = capsys.readouterr()
    assert err == ""
    shown = " ".join(out.split())
    for words in (
        "(claude): 1 prompt, 2 turns, 1 text, 2 tool calls, 2 results;",
        r"skipped: summary 1, block thinking 1, file-history-snapshot 1, \x1b[7mnew 1",
        "unreadable: line 10 is no JSON",
        "unreadable: 9 in all",
        "guard 0.1.0: asked 2 times, p50 ",
        f"refuses 1x tool_call bash: {GUARD_REASON}",
        'first: line 5, c1: {"command": "rm -rf / ***"}',
        "rewrites 1x tool_call bash",
        "x: asked ",
        r"refuses 1x tool_call bash: no \x1b[31mvery",
        "may have acted on it: guard, x",
    ):
        assert words in shown
    for line in out.split("\n"):
        assert line.isprintable()
        assert cells(line) <= 80 or str(tmp_path) in line


def test_extension_that_had_nothing_to_say_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(recording(tmp_path, lines([{"role": "user", "content": "hi"}])), "--ext", guard())
    assert "guard 0.1.0: asked 0 times\n  nothing refused, hidden, rewritten or asked\n" in capsys.readouterr().out
