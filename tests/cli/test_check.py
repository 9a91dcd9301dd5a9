"""`exthost check`: what is registered, or why not, and the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import extension, good, run


def test_good_extension_says_what_it_registers(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(good(tmp_path / "good")))
    assert done.returncode == 0, done.stderr
    assert "good 1.2: ready" in done.stdout
    assert r"command /hi  says \x1b[31mhi\u202e [bold red]loud[/]" in done.stdout
    assert "tool look  looks" in done.stdout
    assert "events: turn_start" in done.stdout
    assert "intercepts: tool_call" in done.stdout
    assert "\x1b" not in done.stdout


def test_good_extension_as_json_is_one_object(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", "--json", str(good(tmp_path / "good")))
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert found["error"] is None
    assert [tool["name"] for tool in found["tools"]] == ["look"]
    assert found["intercepts"] == ["tool_call"]


FAILURES = {
    "exits": (
        "print('no API_KEY \\x1b[2J [red]x[/red]', file=sys.stderr); sys.exit(3)",
        "20",
        "exited",
        ["exit: exit 3", r"no API_KEY \x1b[2J [red]x[/red]", "stage: hello", "log: ", "run it by hand: cd "],
    ),
    "silent": ("time.sleep(60)", "0.5", "load_failed", ["no hello within 0.5 s", "way out: "]),
    "prints instead of hello": (
        "print('a [b]banner[/b] \\x1b[7m'); print('{broken', flush=True); time.sleep(60)",
        "1",
        "load_failed",
        [r"warning stray_output: not JSON: a [b]banner[/b] \x1b[7m", "not JSON: {broken", "print everything else"],
    ),
    "no hello first": (
        "print('a banner'); send(type='ready'); time.sleep(60)",
        "20",
        "frame_illegal",
        ["the first frame is ready", "way out: hello comes first", "warning stray_output: not JSON: a banner"],
    ),
    "other version": (
        "send(type='hello', name='x', protocol_version=99); time.sleep(60)",
        "20",
        "",
        ["speaks 99, host speaks 1", "way out: "],
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_extension_says_why_and_the_way_out_and_exits_1(home: Path, tmp_path: Path, failure: str) -> None:
    program, timeout, _, words = FAILURES[failure]
    done = run(home, "check", "--timeout", timeout, str(extension(tmp_path / "bad", program)))
    assert done.returncode == 1
    shown = " ".join(done.stderr.split())
    for word in words:
        assert word in shown
    assert "\x1b" not in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_extension_as_json_has_error_hint_and_diagnostics(home: Path, tmp_path: Path, failure: str) -> None:
    program, timeout, code, _ = FAILURES[failure]
    done = run(home, "check", "--json", "--timeout", timeout, str(extension(tmp_path / "bad", program)))
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["ok"], found["state"], found["ready_s"]) == (False, "failed", None)
    assert found["error"]["hint"]
    assert code in found["error"]["code"]
    told = [each["message"] for each in found["diagnostics"]]
    assert not [message for message in told if message.endswith(found["error"]["message"])], "said twice"
    if "banner" in program:
        first = found["diagnostics"][0]
        assert first["code"] == "stray_output"
        assert "banner" in first["message"]
        assert "stderr" in first["hint"]
        assert found["counts"]["stray_output"] >= 1


def test_extension_that_never_says_ready_is_taken_as_ready_and_told_the_way_out(home: Path, tmp_path: Path) -> None:
    program = 'send(type="hello", name="x"); send(type="register_command", name="a"); sys.stdin.read()'
    done = run(home, "check", str(extension(tmp_path / "quiet", program)))
    assert done.returncode == 0
    assert "taken as ready without a ready frame" in done.stdout
    assert 'way out: send {"type": "ready"} after the last registration' in done.stdout


def test_extension_that_dies_after_ready_is_not_ok(home: Path, tmp_path: Path) -> None:
    program = 'send(type="hello", name="x"); send(type="ready"); sys.stdin.readline(); sys.exit(7)'
    done = run(home, "check", str(extension(tmp_path / "brief", program)))
    assert done.returncode == 1
    assert "exit 7" in done.stderr


def test_many_messages_of_one_code_are_three_and_a_number(home: Path, tmp_path: Path) -> None:
    program = """
    for number in range(30): print("noise")
    send(type="hello", name="x"); send(type="ready"); sys.stdin.read()
    """
    done = run(home, "check", str(extension(tmp_path / "noisy", program)))
    assert done.stdout.count("not JSON: noise") == 3
    assert "(30 of these in all)" in done.stdout


def test_refused_registration_is_shown(home: Path, tmp_path: Path) -> None:
    program = """
    send(type="hello", name="x"); send(type="register_tool", name="t", schema={"type": "array"}, description="d")
    send(type="ready"); sys.stdin.read()
    """
    done = run(home, "check", str(extension(tmp_path / "wrong", program)))
    assert "registration_refused: tool 't' is refused" in done.stdout
    assert "it registers nothing" in done.stdout


def test_skills_alone_are_in_order(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "extension.json").write_text('{"name": "texts", "skills": ["skills"]}')
    done = run(home, "check", str(folder))
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "texts")
    assert json.loads(run(home, "check", "--json", str(folder)).stdout)["state"] == "static"


def test_missing_manifest_names_the_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run(home, "check", str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "extension.json: no such file" in " ".join(done.stderr.split())
    assert 'way out: correct extension.json; a small one is {"name": "empty",' in done.stderr


def test_extension_that_is_switched_off_says_how_to_switch_it_on(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(extension(tmp_path / "off", "", enabled=False)))
    assert done.returncode == 1
    assert 'way out: take "enabled": false out of extension.json' in done.stderr


def test_broken_manifest_names_line_and_column_once(home: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/extension.json").write_text('{"name": "x",\n "exec": }')
    done = run(home, "check", str(tmp_path / "broken"))
    assert done.returncode == 1
    assert done.stderr.count("line 2, column 10") == 1


def test_missing_program_names_what_was_looked_for(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(extension(tmp_path / "x", "", exec="[red]no-such-program")))
    assert done.returncode == 1
    assert "exec '[red]no-such-program' was not found" in done.stderr
    assert "way out: it is not installed" in done.stderr


def test_missing_directory_is_a_wrong_call(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(tmp_path / "no\x1b[1mwhere"))
    assert done.returncode == 2
    assert r"no\x1b[1mwhere' does not exist" in " ".join(done.stderr.split())
    assert "\x1b" not in done.stderr
