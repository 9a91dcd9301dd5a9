"""`exthost check --policy`: the extension under a policy, and what of the policy is in force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import extension, good, run

POLICY = """
[defaults]
headless_ask = "allow"
[defaults.tool_call]
deadline_s = 2.5
[extensions.good]
required = true
guards = ["tool:bash"]
[extensions.good.tool_call]
on_failure = "allow"
[extensions.other]
restart = "on_crash"
[conflicts.prefer]
look = "other"
elsewhere = "other"
"""


def policy(tmp_path: Path, text: str = POLICY) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return str(path)


def test_settings_in_force_are_shown_with_rule_and_key(home: Path, tmp_path: Path) -> None:
    file = policy(tmp_path)
    done = run(home, "check", "--policy", file, str(good(tmp_path / "good")))
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    for words in (
        f"policy {file}",
        "headless_ask: allow [default: defaults.headless_ask]",
        "tool_call deadline_s: 2.5 [point_default: defaults.tool_call.deadline_s]",
        "good required: true [extension: extensions.good.required]",
        "good guards: tool:bash [extension: extensions.good.guards]",
        "good tool_call on_failure: allow [extension_point: extensions.good.tool_call.on_failure]",
        "prefer look: other [conflicts: conflicts.prefer.look]",
        "extensions it speaks of besides: other",
    ):
        assert words in shown
    assert "other restart" not in shown
    assert "elsewhere" not in shown
    assert max(map(len, done.stdout.replace(file, "").splitlines())) <= 80


def test_settings_in_force_as_json_are_rows(home: Path, tmp_path: Path) -> None:
    file = policy(tmp_path)
    found = json.loads(run(home, "check", "--json", "--policy", file, str(good(tmp_path / "good"))).stdout)["policy"]
    assert (found["file"], found["named"], found["others"]) == (file, True, ["other"])
    assert {
        "extension": "good",
        "point": "",
        "setting": "guards",
        "value": ["tool:bash"],
        "rule": "extension",
        "where": "extensions.good.guards",
    } in found["rows"]
    assert {row["extension"] for row in found["rows"] if row["setting"] != "prefer"} == {"", "good"}


def test_manifest_counts_where_the_policy_is_silent(home: Path, tmp_path: Path) -> None:
    program = 'send(type="hello", name="x"); send(type="subscribe", intercept=["tool_call"]); send(type="ready"); sys.stdin.read()'
    folder = extension(tmp_path / "strict", program, exthost={"on_failure": "block", "restart": "on_crash"})
    shown = run(home, "check", "--policy", policy(tmp_path, ""), str(folder)).stdout
    assert "strict tool_call on_failure: block [manifest]" in shown
    assert "strict restart: on_crash [manifest]" in shown
    assert "which does not speak of this extension by name" in " ".join(shown.split())
    assert "besides" not in shown


def test_extension_is_loaded_under_the_policy(home: Path, tmp_path: Path) -> None:
    program = 'send(type="hello", name="x"); send(type="ready"); sys.stdin.readline(); sys.exit(7)'
    text = '[extensions.brief]\nrestart = "on_crash"\nrestart_delay_s = 0.01\nrestart_delay_max_s = 0.01'
    done = run(home, "check", "--policy", policy(tmp_path, text), str(extension(tmp_path / "brief", program)))
    assert done.returncode == 1
    assert "it is started again in" in done.stderr
    assert "extensions.brief.restart" in done.stderr


def test_policy_of_an_extension_that_fails_is_shown_all_the_same(home: Path, tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good/extension.json").write_text("{")
    done = run(home, "check", "--policy", policy(tmp_path), str(tmp_path / "good"))
    assert done.returncode == 1
    assert "extension.json" in done.stderr
    assert "good required: true" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[extensions.good]\nrestrat = 1", ["policy.toml at extensions.good.restrat: is not known here", "restart"]),
        ("[extensions.good]\ngrant = 1\n[x]\n", ["2 mistakes", " extensions.good.grant: must be", " x: is not known"]),
        ("[defaults]\na b", ["policy.toml at line 2, column 3: "]),
        ('[extensions.good]\n"\\u001b[2J[red]" = 1', [r"\u001b[2J[red]"]),
        (None, ["policy.toml: cannot be read: No such file or directory"]),
    ],
)
@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_policy_that_cannot_be_used_names_file_and_key_and_runs_nothing(
    home: Path, tmp_path: Path, text: str | None, words: list[str], json_option: list[str]
) -> None:
    file = policy(tmp_path, text) if text is not None else str(tmp_path / "policy.toml")
    folder = extension(tmp_path / "good", f"open({str(tmp_path / 'ran')!r}, 'w')")
    done = run(home, "check", *json_option, "--policy", file, str(folder))
    assert done.returncode == 2
    assert done.stdout == ""
    assert str(tmp_path) in done.stderr
    for word in words:
        assert word in " ".join(done.stderr.split())
    assert "\x1b" not in done.stderr
    assert not (tmp_path / "ran").exists()
