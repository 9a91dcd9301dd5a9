"""`exthost trust`: the facts, then the decision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import extension, good, run, run_on_terminal

from trio_exthost.packages import TrustStore, package_digest


def decisions(home: Path) -> list[tuple[str, bool]]:
    return [(each.name, each.trusted) for each in TrustStore(home / "trust.json").entries()]


def demanding(folder: Path) -> Path:
    return extension(
        folder,
        "",
        name="demanding",
        exec="python3",
        args=["main.py", "two words"],
        skils=["misspelt"],
        description="harmless \x1b[8m[blink]really[/]",
        exthost={"permissions": ["process.spawn"], "env_from": ["AWS_SECRET"], "env": {"MODE": "hidden"}},
    )


def test_facts_are_shown_and_then_the_decision(home: Path, tmp_path: Path) -> None:
    folder = demanding(tmp_path / "x")
    done = run(home, "trust", str(folder))
    assert done.returncode == 0, done.stderr
    facts, decided, _ = done.stdout.partition("trusted: demanding")
    assert decided
    for fact in (
        f"path: {folder}",
        f"digest: {package_digest(folder)}",
        "exec: python3",
        "args: main.py 'two words'",
        "extension.json",
        "main.py",
        "permissions: process.spawn",
        "env from: AWS_SECRET",
        "env: MODE",
        r"harmless \x1b[8m[blink]really[/]",
        "did you mean skills?",
    ):
        assert fact in facts
    assert "hidden" not in done.stdout, "values may be secrets"
    assert "\x1b" not in done.stdout
    assert decisions(home) == [("demanding", True)]


def test_facts_as_json_have_the_decision(home: Path, tmp_path: Path) -> None:
    folder = demanding(tmp_path / "x")
    known = json.loads(run(home, "trust", "--json", str(folder)).stdout)
    assert known["decision"] == "trusted"
    assert (known["exec"], known["args"]) == ("python3", ["main.py", "two words"])
    assert (known["files"], known["file_count"]) == (["extension.json", "main.py"], 2)
    assert known["asks"] == {"permissions": ["process.spawn"], "env_from": ["AWS_SECRET"], "env": ["MODE"]}
    assert known["digest"] == package_digest(folder)


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("\x04", 1)])
def test_person_at_a_terminal_is_asked_after_the_facts(home: Path, tmp_path: Path, typed: str, status: int) -> None:
    code, shown = run_on_terminal(
        home, "trust", str(good(tmp_path / "good")), typed=typed, after="[y/N] ", NO_COLOR="1"
    )
    assert code == status
    assert 0 < shown.index("main.py") < shown.index("Let it run? [y/N]")
    assert decisions(home) == ([("good", True)] if status == 0 else [])


@pytest.mark.parametrize(("option", "trusted"), [("--yes", True), ("--deny", False)])
def test_person_at_a_terminal_is_not_asked_with(home: Path, tmp_path: Path, option: str, trusted: bool) -> None:
    code, shown = run_on_terminal(home, "trust", option, str(good(tmp_path / "good")))
    assert code == 0
    assert "[y/N]" not in shown
    assert decisions(home) == [("good", trusted)]


def test_decision_is_bound_to_content_and_can_be_denied_and_forgotten(home: Path, tmp_path: Path) -> None:
    folder = good(tmp_path / "project/.exthost/extensions/good")

    def status() -> tuple[str, str]:
        (row,) = json.loads(run(home, "list", "--json", cwd=tmp_path / "project").stdout)["extensions"]
        return row["status"], row["code"]

    assert run(home, "trust", str(folder)).returncode == 0
    assert status() == ("effective", "")
    (folder / "more.py").write_text("")
    assert status() == ("blocked", "trust_required")
    assert json.loads(run(home, "trust", "--deny", "--json", str(folder)).stdout)["decision"] == "denied"
    assert status() == ("blocked", "trust_denied")
    assert "good  denied" in run(home, "trust").stdout
    assert json.loads(run(home, "trust", "--forget", "--json", str(folder)).stdout)["forgotten"] == 2
    assert json.loads(run(home, "trust", "--json").stdout) == {"decisions": [], "problem": None}
    assert run(home, "trust").stdout == "no decisions\n"


def test_decision_about_a_directory_that_is_gone_can_be_forgotten(home: Path, tmp_path: Path) -> None:
    folder = good(tmp_path / "good")
    run(home, "trust", str(folder))
    folder.rename(tmp_path / "elsewhere")
    done = run(home, "trust", "--forget", str(folder))
    assert f"forgot 1 decision about {folder}" in " ".join(done.stdout.split())
    assert decisions(home) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--deny", "--forget", "."], "--deny and --forget exclude each other"),
        (["--deny"], "--deny needs the DIRECTORY"),
        (["--forget"], "--forget needs the DIRECTORY"),
        (["--yes"], "--yes needs the DIRECTORY"),
        (["no\x1bwhere"], r"Directory 'no\x1bwhere' does not exist"),
    ],
)
def test_contradiction_or_missing_directory_is_a_wrong_call(
    home: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    done = run(home, "trust", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert decisions(home) == []


@pytest.mark.parametrize("content", ["{", None])
def test_store_that_cannot_be_read_is_an_error_and_left_alone(home: Path, tmp_path: Path, content: str | None) -> None:
    home.mkdir()
    store = home / "trust.json"
    if content is None:
        store.mkdir()
    else:
        store.write_text(content)
    for words in (["trust"], ["trust", str(good(tmp_path / "good"))], ["trust", "--forget", str(tmp_path)]):
        done = run(home, *words)
        assert done.returncode == 1
        assert "trust.json" in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
    assert store.is_dir() if content is None else store.read_text() == content
    assert json.loads(run(home, "trust", "--json").stdout)["problem"]


def test_broken_manifest_cannot_be_trusted(home: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/extension.json").write_text("{")
    done = run(home, "trust", str(tmp_path / "broken"))
    assert done.returncode == 1
    assert "extension.json at line 1" in " ".join(done.stderr.split())
    assert decisions(home) == []


def test_program_that_is_not_there_is_a_warning(home: Path, tmp_path: Path) -> None:
    known = json.loads(run(home, "trust", "--json", str(extension(tmp_path / "x", "", exec="no-such-program"))).stdout)
    assert known["program"] == ""
    assert "'no-such-program' was not found" in known["warnings"][0]
