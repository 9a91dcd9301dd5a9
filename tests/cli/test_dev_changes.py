"""`exthost dev`: which paths matter, when a burst is over, how often is too often, and what a watched folder tells."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.dev_changes import Relevance
from trio_exthost.cli.dev_pace import Changes, Rate
from trio_exthost.cli.dev_watch import watch

EXT = Path("/ext")


@pytest.mark.parametrize(
    "path",
    [
        "main.py", "extension.json", "lib/deep/helper.js", "data/state.json", "Makefile", "build.tmpl", "logs/readme",
        "4913/x.py", "venv.py", "#notes",
    ],
)  # fmt: skip
def test_what_an_author_writes_matters(path: str) -> None:
    assert Relevance(EXT)(EXT / path)


@pytest.mark.parametrize(
    "path",
    [
        "__pycache__/main.cpython-311.pyc", "lib/__pycache__/x", ".git/index", ".venv/y", "venv/bin/python", ".DS_Store",
        "node_modules/a/index.js", ".idea/x.xml", "lib/.main.py.swp", "main.py~", "#main.py#", ".#main.py", "4913",
        "lib/4913", "main.py.tmp", "main.pyc", "main.py___jb_tmp___", "flycheck_main.py", "out.log", ".mypy_cache/3.11/x",
    ],
)  # fmt: skip
def test_what_tools_make_does_not_matter(path: str) -> None:
    assert not Relevance(EXT)(EXT / path)


def test_what_is_outside_or_the_hosts_own_does_not_matter() -> None:
    relevance = Relevance(EXT, own=(EXT / "data",))
    assert not relevance("/elsewhere/main.py")
    assert not relevance(EXT / "data" / "trust.json")
    assert relevance(EXT / "database")
    assert relevance(EXT)  # the folder itself: moved away, or put back


@pytest.mark.parametrize(
    ("pattern", "path", "matters"),
    [
        ("state.json", "state.json", False),
        ("state.json", "deep/state.json", False),
        ("state.json", "state.json.py", True),
        ("*.db", "cache/x.db", False),
        ("out", "out/a/b", False),
        ("out/", "out/a/b", False),
        ("out/a", "out/a/b", False),
        ("out/a", "lib/out/a", True),
        ("out/*.js", "out/x.js", False),
        ("/out/x.js", "out/x.js", False),
    ],
)
def test_watch_ignore_of_the_manifest(pattern: str, path: str, matters: bool) -> None:
    assert Relevance(EXT, patterns=[pattern])(EXT / path) is matters


# --- pace ---------------------------------------------------------------------------------------------------------


async def test_a_burst_is_one_and_over_after_the_quiet_period(autojump_clock) -> None:
    changes = Changes(quiet_s=0.3, longest_s=10)

    async def save() -> None:
        for number in range(20):
            await trio.sleep(0.1)
            changes.add([f"{number % 3}"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(save)
        assert await changes.wait() == ("0", "1", "2")
        assert trio.current_time() == pytest.approx(20 * 0.1 + 0.3)


async def test_a_file_that_comes_back_late_is_another_burst(autojump_clock) -> None:
    changes = Changes(quiet_s=0.3, longest_s=10)
    changes.add(["a"])
    assert await changes.wait() == ("a",)
    changes.add([])  # nothing
    with trio.move_on_after(100) as waiting:
        await changes.wait()
    assert waiting.cancelled_caught


async def test_changes_while_nobody_waits_are_not_lost(autojump_clock) -> None:
    changes = Changes(quiet_s=0.3, longest_s=10)
    changes.add(["a"])
    await changes.settle()
    changes.add(["b"])
    assert await changes.wait() == ("a", "b")
    assert changes.take() == ()


async def test_a_burst_without_end_is_over_all_the_same(autojump_clock) -> None:
    changes = Changes(quiet_s=0.3, longest_s=10)

    async def write_for_ever() -> None:
        while True:
            changes.add(["a"])
            await trio.sleep(0.1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_for_ever)
        assert await changes.wait() == ("a",)
        assert trio.current_time() == pytest.approx(10)
        nursery.cancel_scope.cancel("seen")


@given(
    st.integers(1, 4),
    st.floats(0.5, 20),
    st.lists(st.floats(0, 10), max_size=30),
)
def test_never_more_than_allowed_in_any_window(most: int, window_s: float, gaps: list[float]) -> None:
    rate, now, done = Rate(most, window_s), 0.0, []
    for gap in gaps:
        now += gap
        wait = rate.wait_s(now)
        assert (wait > 0) == (sum(1 for at in done[-most:] if at + window_s > now) >= most)
        now += wait
        rate.use(now)
        done.append(now)
    for first, last in zip(done, done[most:], strict=False):
        assert last - first >= window_s - 1e-6


# --- the operating system -----------------------------------------------------------------------------------------


async def test_each_way_of_saving_is_told(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "ext"
    (folder / "lib").mkdir(parents=True)
    send, receive = trio.open_memory_channel[str](1000)

    def tell(paths) -> None:
        for path in paths:
            send.send_nowait(path)

    async def until(path: Path) -> None:
        while Path(await receive.receive()) != path:
            pass

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(watch, folder, tell)
            (folder / "main.py").write_text("plain")
            await until(folder / "main.py")
            (folder / "lib" / "new").write_text("written beside")
            (folder / "lib" / "new").rename(folder / "lib" / "helper.py")
            await until(folder / "lib" / "helper.py")
            (folder / "main.py").rename(folder / "main.py~")
            (folder / "main.py").write_text("renamed away, and made anew")
            await until(folder / "main.py")
            # All of the folder is put in place at once, as tools that copy trees do.
            shutil.copytree(folder, tmp_path / "copy")
            folder.rename(tmp_path / "old")
            await until(folder)
            (tmp_path / "copy").rename(folder)
            await until(folder)
            (folder / "main.py").write_text("and it is watched as before")
            await until(folder / "main.py")
            nursery.cancel_scope.cancel("seen")
