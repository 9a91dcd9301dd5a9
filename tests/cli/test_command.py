"""The command as a user runs it: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from trio_exthost.cli.text import printable

READY = """
import json, sys
def send(**frame): print(json.dumps(frame), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *words: str, cwd: Path | None = None, timeout: float = 90) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    env |= {"EXTHOST_HOME": str(home), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "trio_exthost", *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def extension(folder: Path, program: str, **manifest: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(READY + textwrap.dedent(program))
    (folder / "extension.json").write_text(
        json.dumps({"name": folder.name, "exec": sys.executable, "args": ["main.py"], **manifest})
    )
    return folder


def good(folder: Path) -> Path:
    return extension(
        folder,
        """
        send(type="hello", name="good")
        send(type="register_command", name="hi", description="says \\x1b[31mhi\\u202e")
        send(type="register_tool", name="look", schema={"type": "object"}, description="looks")
        send(type="subscribe", events=["turn_start"], intercept=["tool_call"])
        send(type="ready")
        for line in sys.stdin: pass
        """,
        version="1.2",
    )


def test_check_of_a_good_extension_says_what_it_registers(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(good(tmp_path / "good")))
    assert done.returncode == 0, done.stderr
    assert "good 1.2: ready" in done.stdout
    assert r"command /hi  says \x1b[31mhi\u202e" in done.stdout
    assert "tool look  looks" in done.stdout
    assert "events: turn_start" in done.stdout
    assert "intercepts: tool_call" in done.stdout
    assert "\x1b" not in done.stdout


def test_check_as_json_is_one_document(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", "--json", str(good(tmp_path / "good")))
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert [tool["name"] for tool in found["tools"]] == ["look"]
    assert found["intercepts"] == ["tool_call"]


FAILURES = {
    "exits": (
        "print('no API_KEY \\x1b[2J', file=sys.stderr); sys.exit(3)",
        "20",
        ["exit 3", r"no API_KEY \x1b[2J", "stage: hello", "log: "],
    ),
    "silent": ("import time; time.sleep(60)", "0.5", ["no hello within 0.5 s"]),
    "no hello first": (
        "print('a banner'); send(type='ready'); import time; time.sleep(60)",
        "20",
        ["the first frame is ready"],
    ),
    "other version": (
        "send(type='hello', name='x', protocol_version=99); import time; time.sleep(60)",
        "20",
        ["speaks 99, host speaks 1"],
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_check_of_a_failing_extension_says_why_and_exits_1(home: Path, tmp_path: Path, failure: str) -> None:
    program, timeout, words = FAILURES[failure]
    done = run(home, "check", "--timeout", timeout, str(extension(tmp_path / "bad", program)))
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr
    assert "\x1b" not in done.stderr


def test_check_without_a_manifest_names_the_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run(home, "check", str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "extension.json" in done.stderr


def test_list_and_trust_of_a_project(home: Path, tmp_path: Path) -> None:
    folder = good(tmp_path / "project/.exthost/extensions/good")
    project = tmp_path / "project"

    def status() -> tuple[str, str]:
        (row,) = json.loads(run(home, "list", "--json", cwd=project).stdout)["extensions"]
        return row["status"], row["code"]

    assert status() == ("blocked", "trust_required")
    assert "exthost trust" in run(home, "list", cwd=project).stdout
    told = run(home, "trust", str(folder))
    assert told.returncode == 0, told.stderr
    assert "trusted" in told.stdout
    assert status() == ("effective", "")
    (folder / "more.py").write_text("")
    assert status() == ("blocked", "trust_required")
    assert json.loads(run(home, "trust", "--deny", "--json", str(folder)).stdout)["decision"] == "denied"
    assert status() == ("blocked", "trust_denied")
    assert json.loads(run(home, "trust", "--forget", "--json", str(folder)).stdout)["forgotten"] == 2
    assert json.loads(run(home, "trust", "--json").stdout)["decisions"] == []


def test_wrong_call_exits_2(home: Path) -> None:
    done = run(home, "chek")
    assert done.returncode == 2
    assert "No such command 'chek'" in done.stderr


def test_demo_is_readable_at_80_columns_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    env |= {"EXTHOST_HOME": str(home), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "trio_exthost", "demo"], env=env, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert "guard blocked tool_call" in done.stdout
    assert 'greet.sh now says: echo "hello, world"' in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("exthost-demo")] == []


def test_demo_as_json_tells_what_was_decided(home: Path) -> None:
    record = json.loads(run(home, "demo", "--json").stdout)
    assert record["summary"]["refused"] == 1
    assert record["extensions"]["guard"] == "ready"
    blocked = [verdict for verdict in record["verdicts"] if verdict["outcome"] == "block"]
    assert [verdict["by"] for verdict in blocked] == ["guard"]
    left = {"redact", "weather"} - set(record["left_out"])
    assert set(record["extensions"]) == {"guard", "audit", "todo", *left}
    assert "sk-demo" not in record["said"][-1] or "redact" in record["left_out"]


def test_printable_shows_controls_bidi_and_surrogates_as_escapes() -> None:
    assert printable("a\x1b[1m\u202eb\ud800\r\n\té") == r"a\x1b[1m\u202eb\ud800\r\n\té"
