"""`exthost why` and `exthost stats` on logs as a host writes them."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import click
import pytest

from trio_exthost.cli.stats import stats_command
from trio_exthost.cli.text import cells
from trio_exthost.cli.why import time_text, why_command
from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
from trio_exthost.policy.decision import Decision

REWRITE = Step("redact", StepKind.REWROTE, 0.0012, "a key", {"command": "curl -H 'token: abc'"}, {"command": "curl"})
LATE = Step(
    "slow", StepKind.TIMED_OUT, 5.0, "gave no answer within 5 s", policy=OnFailure.ALLOW, rule="interceptor_default"
)
REFUSAL = Step("guard", StepKind.BLOCKED, 0.002, "no \x1b[31mpushes\u202e")


def decision(tool_id: str, *steps: Step, session_id: str = "s1", **more: object) -> Decision:
    verdict = Verdict(
        "tool_call", Outcome.BLOCK, {}, {"tool_id": tool_id, "tool_name": "bash"}, "no \x1b[31mpushes\u202e", "guard", steps, **more
    )  # fmt: skip
    return Decision.of(verdict, time=1_764_685_558.0, session_id=session_id, seconds=5.1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "decisions.jsonl"
    older = [decision("c1", REWRITE, LATE, REFUSAL, code="refused", hint="use a branch", run_id="r1")]
    path.with_name("decisions.jsonl.1").write_bytes(b"".join(each.to_line() for each in older))
    newer = [decision("c2"), decision("c1", session_id="s2")]
    path.write_bytes(b"".join(each.to_line() for each in newer) + b'{"time":')
    return path


def why(*words: object) -> object:
    return why_command.main([str(word) for word in words], standalone_mode=False)


def stats(*words: object) -> object:
    return stats_command.main([str(word) for word in words], standalone_mode=False)


def test_why_explains_each_decision_about_the_call_oldest_first(log, capsys):
    assert why(log, "c1") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.split("\n") == [
        "2025-12-02 14:25:58 UTC, session s1, run r1, tool bash",
        r"  tool_call: block by guard [refused]: no \x1b[31mpushes\u202e",
        """    redact rewrote command: "curl -H '***'" -> "curl": a key (1.2 ms)""",
        "    slow timed out: gave no answer within 5 s [policy: allow;",
        "    interceptor_default] (5000.0 ms)",
        r"    guard blocked: no \x1b[31mpushes\u202e (2.0 ms)",
        "    way out: use a branch",
        "2025-12-02 14:25:58 UTC, session s2, tool bash",
        r"  tool_call: block by guard: no \x1b[31mpushes\u202e",
        "",
    ]


def test_why_of_one_session(log, capsys):
    assert why(log, "c1", "--session", "s2") == 0
    assert "session s1" not in capsys.readouterr().out


def test_why_as_json_is_one_document_that_reads_back(log, capsys):
    assert why(log, "c1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tool_id"], found["problems"]) == ("c1", [])
    assert [Decision.from_json(each).session_id for each in found["decisions"]] == ["s1", "s2"]


def test_why_of_an_unknown_call_says_so_and_is_1(log, capsys):
    with pytest.raises(
        click.ClickException, match=r"nothing was decided about a tool call 'c9'; .* has 3 decisions"
    ) as caught:
        why(log, "c9")
    assert caught.value.exit_code == 1
    with pytest.raises(click.ClickException, match="'c2' of session 's2'"):
        why(log, "c2", "--session", "s2")
    assert why(log, "c9", "--json") == 1
    assert json.loads(capsys.readouterr().out)["decisions"] == []


@pytest.mark.parametrize("word", ["x", "日本", "\x1b[2J", "\u202e"])
def test_no_line_of_a_long_value_is_wider_than_80_columns(tmp_path, capsys, word):
    step = Step(word * 100, StepKind.REWROTE, 0, word * 900, {"a": word * 900}, {"a": "y" + word * 900})
    path = tmp_path / "d.jsonl"
    wide = attrs.evolve(decision("c1", step, hint=word * 900), session_id=word * 100, by=word * 50)
    path.write_bytes(wide.to_line())
    for command, more in ((why, ["c1"]), (stats, [])):
        assert command(path, *more) == 0
        for line in capsys.readouterr().out.split("\n"):
            assert line.isprintable()
            assert cells(line) <= 80


def test_stats_counts_from_the_log(log, capsys):
    assert stats(log) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.split("\n") == [
        "3 decisions: block 3",
        "2025-12-02 14:25:58 UTC to 2025-12-02 14:25:58 UTC",
        "extension        asked for              count     p50     p95     max  late fail",
        "guard            tool_call                  1 1.99 ms 1.99 ms 2.00 ms     0    0",
        "redact           tool_call                  1 1.18 ms 1.18 ms 1.20 ms     0    0",
        "slow             tool_call                  1  5.00 s  5.00 s  5.00 s     1    0",
        "",
    ]


def test_stats_as_json(log, capsys):
    assert stats(log, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["decisions"], found["first"], found["last"]) == (3, 1_764_685_558.0, 1_764_685_558.0)
    assert found["outcomes"] == {"allow": 0, "ask": 0, "block": 3}
    assert [(each["extension"], each["timeouts"]) for each in found["points"]] == [
        ("guard", 0),
        ("redact", 0),
        ("slow", 1),
    ]


def test_one_decision_is_one(tmp_path, capsys):
    (tmp_path / "d").write_bytes(decision("c1").to_line())
    assert stats(tmp_path / "d") == 0
    assert capsys.readouterr().out.startswith("1 decision: block 1\n")
    with pytest.raises(click.ClickException, match=r"d has 1 decision$"):
        why(tmp_path / "d", "c2")


def test_log_without_decisions(tmp_path, capsys):
    (tmp_path / "d").write_bytes(b"")
    assert stats(tmp_path / "d") == 0
    assert capsys.readouterr().out == "0 decisions\n"
    assert stats(tmp_path / "d", "--json") == 0
    assert json.loads(capsys.readouterr().out)["first"] is None


def test_lines_that_cannot_be_read_are_told_and_the_others_count(tmp_path, capsys):
    path = tmp_path / "d"
    path.write_bytes(b"no\x1b[2J\n" * 8 + decision("c1").to_line())
    assert why(path, "c1") == 0
    err = capsys.readouterr().err
    assert err.count("warning: ") == 6
    assert "line 5: is no JSON" in err.replace("\n         ", " ")
    assert "3 more lines cannot be read" in err
    assert why(path, "c1", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (err, found["unreadable"], len(found["problems"])) == ("", 8, 8)


def test_log_that_is_not_there_is_a_wrong_call(tmp_path):
    for command in (why, stats):
        with pytest.raises(click.UsageError, match="does not exist"):
            command(tmp_path / "none", *(["c1"] if command is why else []))


def test_time_beyond_the_calendar_is_a_number():
    assert time_text(1e300) == "1e+300 s since 1970"
