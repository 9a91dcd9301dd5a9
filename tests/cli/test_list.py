"""`exthost list`: every extension with its state."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import extension, good, run


def test_project_extension_is_listed_as_blocked_with_the_command_that_allows_it(home: Path, tmp_path: Path) -> None:
    folder = good(tmp_path / "project/.exthost/extensions/good")
    done = run(home, "list", cwd=tmp_path / "project")
    assert done.returncode == 0
    assert "good 1.2  blocked  (project)" in done.stdout
    assert f"exthost trust {folder}" in " ".join(done.stdout.split())
    (row,) = json.loads(run(home, "list", "--json", "--cwd", str(tmp_path / "project")).stdout)["extensions"]
    assert (row["status"], row["code"], row["origin"]) == ("blocked", "trust_required", "project")


def test_names_and_reasons_are_escaped(home: Path, tmp_path: Path) -> None:
    extension(home / "extensions/a\x1b[1mb", "", name="a", version="[red]1\x1b[2J")
    (home / "extensions/c\x1b[1md").mkdir()
    (home / "extensions/c\x1b[1md/extension.json").write_text('{"name": "\x1b"}')
    done = run(home, "list", cwd=tmp_path)
    assert r"a [red]1\x1b[2J  effective  (user)" in done.stdout
    assert r"c\x1b[1md  rejected" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_nothing_there_says_where_was_looked(home: Path, tmp_path: Path) -> None:
    done = run(home, "list", cwd=tmp_path)
    assert done.returncode == 0
    assert str(tmp_path / ".exthost/extensions") in done.stdout
    assert str(home / "extensions") in done.stdout


def test_damaged_trust_store_is_a_warning_of_list(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "trust.json").write_text("{")
    done = run(home, "list", cwd=tmp_path)
    assert done.returncode == 0
    assert "trust.json is damaged at line" in " ".join(done.stderr.split())
    assert "damaged" in json.loads(run(home, "list", "--json", cwd=tmp_path).stdout)["trust_problem"]
