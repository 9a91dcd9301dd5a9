"""Cases from the field: how editors save, and extensions that write into their own folder."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from cli.running import extension
from cli.test_dev import PROGRAM, developing, edit, save_by_making_anew, save_by_renaming, save_by_truncating


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An extension whose command `say` tells its words, one of them from a file that it imports."""
    made = extension(tmp_path / "mine", PROGRAM)
    (made / "helper.py").write_text("WORD = 'first'\n")
    return made


def save_by_deleting(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def save_by_deleting_long_before(path: Path, text: str) -> None:
    path.unlink()
    time.sleep(0.4)  # longer than what ends a burst: the file is missing when one looks
    path.write_text(text)


def test_c76_every_way_of_saving_ends_with_the_last_text_and_no_missing_file(tmp_path: Path, folder: Path) -> None:
    main = folder / "main.py"
    ways = (
        save_by_truncating,
        save_by_renaming,
        save_by_making_anew,
        save_by_deleting,
        save_by_deleting_long_before,
    )
    with developing(tmp_path / "home", folder) as running:
        said = "one"
        assert running.says() == "one first"
        for way, word in zip(ways, ("two", "three", "four", "five", "six"), strict=True):
            way(main, main.read_text().replace(said, word))
            said = word
            assert running.says() == f"{word} first"
        reloads = [told for told in running.seen if told["what"] == "reloaded"]
        assert [told["failed"] for told in reloads] == [[]] * len(ways), "one each, and none that fails"


def test_c76_what_is_deleted_for_good_fails_and_is_told(tmp_path: Path, folder: Path) -> None:
    with developing(tmp_path / "home", folder) as running:
        assert running.says() == "one first"
        (folder / "helper.py").unlink()
        (failure,) = running.next("reloaded")["failed"]
        assert "No module named 'helper'" in failure["reason"]
        (folder / "helper.py").write_text("WORD = 'back'\n")
        assert running.says() == "one back"


def test_c76_200_saves_are_a_burst_and_only_its_end_counts(tmp_path: Path, folder: Path) -> None:
    helper = folder / "helper.py"
    with developing(tmp_path / "home", folder) as running:
        assert running.says() == "one first"
        for number in range(200):
            save_by_renaming(helper, f"WORD = 'save {number}'\n")
        while running.says() != "one save 199":
            pass
        reloads = [told for told in running.seen if told["what"] == "reloaded"]
        assert len(reloads) < 20
        assert all(told["failed"] == [] for told in reloads)


def test_c76_a_half_written_manifest_leaves_the_old_one_until_it_is_whole(tmp_path: Path, folder: Path) -> None:
    manifest = folder / "extension.json"
    with developing(tmp_path / "home", folder) as running:
        assert running.says() == "one first"
        whole = manifest.read_text()
        manifest.write_text(whole[: len(whole) // 2])
        (failure,) = running.next("reloaded")["failed"]
        assert (failure["stage"], "extension.json" in failure["reason"]) == ("discovery", True)
        manifest.write_text(whole)
        edit(folder / "helper.py", "first", "second")
        assert running.next("reloaded")["failed"] == []
        assert running.says() == "one second"


OWN = """
import threading, time
def write(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    for number in range(1000):
        with open(path, "a") as file:
            file.write("more")
        if number == 50 and path == "state.json":
            send(type="ready")
        time.sleep(0.01)
for each in ("__pycache__/x", ".venv/y", "node_modules/z.js", "state.json"):
    threading.Thread(target=write, args=(each,), daemon=True).start()
"""


def test_c77_what_it_writes_itself_reloads_nothing(tmp_path: Path, folder: Path) -> None:
    edit(folder / "extension.json", '"args"', '"exthost": {"watch_ignore": ["state.json"]}, "args"')
    edit(folder / "main.py", 'send(type="ready")', OWN)
    with developing(tmp_path / "home", folder) as running:
        assert running.says() == "one first"
        edit(folder / "helper.py", "first", "second")
        assert running.says() == "one second"
        assert [told["paths"] for told in running.seen if told["what"] == "changed"] == [["helper.py"]]


def test_c77_one_that_rewrites_its_own_source_is_limited_with_a_message(tmp_path: Path, folder: Path) -> None:
    edit(folder / "main.py", "import helper", 'import helper; open("helper.py", "a").write("# more\\n")')
    with developing(tmp_path / "home", folder, "--limit", "2") as running:
        assert running.next("paused")["most"] == 2
        assert sum(told["what"] == "reloaded" for told in running.seen) == 2
