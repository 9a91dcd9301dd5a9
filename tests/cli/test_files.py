"""The list of files that a person is shown."""

from __future__ import annotations

from pathlib import Path

from trio_exthost.cli import files
from trio_exthost.cli.files import files_of


def test_files_of_all_levels_are_sorted_and_links_shown_with_their_target(tmp_path: Path) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "b/c/d.py").write_text("")
    (tmp_path / "a.py").write_text("")
    (tmp_path / "outside").symlink_to("/etc")
    (tmp_path / "gone").symlink_to("nowhere")
    for left_out in (".git", "__pycache__"):
        (tmp_path / left_out).mkdir()
        (tmp_path / left_out / "x").write_text("")
    (tmp_path / ".DS_Store").write_text("")
    assert files_of(tmp_path).names == ("a.py", "b/c/d.py", "gone -> nowhere", "outside -> /etc")


def test_beyond_the_limit_files_are_counted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "LIMIT", 2)
    for name in "cab":
        (tmp_path / name).write_text("")
    assert (files_of(tmp_path).names, files_of(tmp_path).count) == (("a", "b"), 3)
