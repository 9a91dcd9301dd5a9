"""`exthost replay` where something does not work: extensions, files, calls; and its help."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from cli.replaying import guard, replay, replay_json
from cli.running import extension
from cli.transcript_texts import CLAUDE, lines, recording
from click.testing import CliRunner

from trio_exthost.cli.group import exthost


@pytest.fixture(autouse=True)
def its_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTHOST_HOME", str(home))


def test_extension_that_does_not_start_is_an_error_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path, lines(CLAUDE))
    bad = extension(tmp_path / "bad", "print('no API_KEY \\x1b[2J', file=sys.stderr); sys.exit(3)")
    replay(path, "--ext", guard(), "--ext", bad, status=1)
    out, err = capsys.readouterr()
    assert out == ""
    for words in ("bad: ", "stage: hello", "exit: exit 3", r"no API_KEY \x1b[2J", "log: ", "way out: "):
        assert words in err
    found = replay_json(capsys, path, "--ext", guard(), "--ext", bad, status=1)
    assert (found["ok"], found["error"]["extension"], found["error"]["exit_status"]) == (False, "bad", "exit 3")
    assert [row["state"] for row in found["extensions"]] == ["ready", "failed"]


def test_extension_that_ends_on_the_way_is_said_and_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brief = extension(
        tmp_path / "brief",
        """
        send(type="hello", name="x"); send(type="subscribe", intercept=["tool_call"]); send(type="ready")
        sys.stdin.readline(); sys.stdin.readline(); sys.exit(7)
        """,
    )
    path = recording(tmp_path, lines(CLAUDE))
    found = replay_json(capsys, path, "--ext", brief, status=1)
    assert (found["ok"], found["error"]) == (False, None)
    assert found["extensions"][0]["state"] == "failed"
    assert [(each["deed"], each["point"]) for each in found["findings"]] == [("no_answer", "tool_call")]
    replay(path, "--ext", brief, status=1)
    assert "failed in the end: " in capsys.readouterr().out


def test_required_guard_that_is_gone_refuses_under_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.toml").write_text('[extensions.other]\nrequired = true\nguards = ["tool:bash"]\n')
    found = replay_json(
        capsys, recording(tmp_path, lines(CLAUDE)), "--ext", guard(), "--policy", tmp_path / "policy.toml"
    )
    refused = [each for each in found["findings"] if each["extension"] == "other"]
    assert [(each["deed"], each["tool"], each["count"]) for each in refused] == [("refused", "bash", 1)]
    assert "is required here and is not installed" in refused[0]["reason"]


@pytest.mark.parametrize(
    ("data", "words", "why"),
    [
        (b"", [], "recording: is empty"),
        (b"PK\x03\x04 no text", [], "recording: is in no format that is known"),
        (lines([{"type": "summary", "leafUuid": "x"}] * 2), [], "there is no conversation in it, read as claude; skipped: summary 2"),
        (lines(CLAUDE), ["--format", "events"], "read as events; unreadable: 9; line 1 is no event"),
        (b'{"a": [\n1]}', [], 'read as openai; unreadable: 1; message 1 is an object without a list under "messages"'),
    ],
)  # fmt: skip
def test_file_without_a_conversation_is_a_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, words: list[str], why: str
) -> None:
    for more in ([], ["--json"]):
        with pytest.raises(click.ClickException) as caught:
            replay(recording(tmp_path, data), "--ext", guard(), *words, *more)
        assert why in caught.value.format_message()
        assert caught.value.exit_code == 1
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ext", "none"], "does not exist"),
        ([], "Missing option '--ext'"),
        (["--ext", ".", "--format", "zip"], "'zip' is not one of 'events', 'openai', 'claude'"),
        (["--ext", ".", "--policy", "none.toml"], "the policy cannot be used"),
    ],
)
def test_wrong_calls_are_2(tmp_path: Path, words: list[str], said: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        replay(recording(tmp_path, lines(CLAUDE)), *words)
    assert said in caught.value.format_message()
    assert caught.value.exit_code == 2


def test_json_has_no_field_that_the_help_does_not_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documented = CliRunner().invoke(exthost, ["replay", "--help"]).stdout.partition("--json prints one object")[2]
    path = recording(tmp_path, lines([*CLAUDE, 7]))
    bad = extension(tmp_path / "bad", "sys.exit(1)")
    for ext, status in ((guard(), 0), (bad, 1)):
        found = replay_json(capsys, path, "--ext", ext, status=status)
        inner = [item for part in found.values() if isinstance(part, list) for item in part if isinstance(item, dict)]
        keys = {*found, *(found["error"] or {}), *(key for each in inner for key in each)}
        assert [key for key in sorted(keys) if key not in documented] == []
