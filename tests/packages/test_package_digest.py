"""What trust is bound to: every change that can change what runs changes the digest."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_files import make_extension, make_program

from trio_exthost.errors import TrustError
from trio_exthost.packages import digest, package_digest


@pytest.fixture
def ext(tmp_path):
    directory = make_extension(tmp_path / "root" / "ext")
    (directory / "lib").mkdir()
    (directory / "lib/a.py").write_text("a")
    return directory


def test_digest_is_64_hex_digits_and_always_the_same(ext):
    first = package_digest(ext)
    assert len(first) == 64
    assert set(first) <= set("0123456789abcdef")
    assert package_digest(ext) == first


def test_copy_elsewhere_and_a_link_to_it_have_the_same_digest(ext, tmp_path):
    shutil.copytree(ext, tmp_path / "copy")
    (tmp_path / "link").symlink_to(ext)
    assert package_digest(tmp_path / "copy") == package_digest(ext) == package_digest(tmp_path / "link")


def edit(path):
    path.write_text("b")


def add(path):
    (path.parent / "new").write_text("")


def rename(path):
    path.rename(path.with_name("z.py"))


def make_executable(path):
    path.chmod(0o755)


def remove(path):
    path.unlink()


def replace_by_link(path):
    path.rename(path.with_name("z.py"))
    path.symlink_to("z.py")


def add_dependency(path):
    (path.parent / "node_modules").mkdir()
    (path.parent / "node_modules/x.js").write_text("x")


def add_sourceless_module(path):
    (path.parent / "b.pyc").write_text("x")


def add_fifo(path):
    os.mkfifo(path.parent / "fifo")


def add_socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:  # absolute, it might be too long
        server.bind("s")


def add_broken_link(path):
    (path.parent / "broken").symlink_to("nowhere")


def add_link_loop(path):
    (path.parent / "loop").symlink_to("loop")


def add_link_through_a_file(path):
    (path.parent / "through").symlink_to("a.py/b")


def file_named_as_a_cache(path):
    (path.parent / "__pycache__").write_text("x")


def directory_named_as_a_left_out_file(path):
    (path.parent / ".DS_Store").mkdir()
    (path.parent / ".DS_Store/x").write_text("")


@pytest.mark.parametrize(
    "change",
    [
        edit, add, rename, make_executable, remove, replace_by_link, add_dependency, add_sourceless_module, add_fifo,
        add_socket, add_broken_link, add_link_loop, add_link_through_a_file, file_named_as_a_cache,
        directory_named_as_a_left_out_file,
    ],
)  # fmt: skip
def test_change_of_what_may_run_changes_the_digest(ext, change):
    before = package_digest(ext)
    change(ext / "lib/a.py")
    after = package_digest(ext)
    assert after != before
    assert package_digest(ext) == after


def test_caches_and_times_do_not_count(ext):
    before = package_digest(ext)
    for cache in ("lib/__pycache__", ".git", ".git/objects"):
        (ext / cache).mkdir()
        (ext / cache / "x").write_text("x")
    (ext / "lib/.DS_Store").write_text("x")
    (ext / "empty").mkdir()
    os.utime(ext / "run", (0, 0))
    assert package_digest(ext) == before


def test_bytes_moved_between_files_change_the_digest(tmp_path):
    digests = set()
    for index, (a, b) in enumerate([("xy", ""), ("x", "y"), ("", "xy")]):
        directory = tmp_path / str(index)
        directory.mkdir()
        (directory / "a").write_text(a)
        (directory / "b").write_text(b)
        digests.add(package_digest(directory))
    assert len(digests) == 3


def test_content_behind_a_link_out_is_covered(ext, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    make_program(outside / "tool", b"1")
    (ext / "file").symlink_to(outside / "tool")
    (ext / "folder").symlink_to(outside)
    seen = {package_digest(ext)}
    make_program(outside / "tool", b"2")
    seen.add(package_digest(ext))
    (outside / "more").write_text("")
    seen.add(package_digest(ext))
    (ext / "folder").unlink()
    shutil.copytree(outside, ext / "folder")
    seen.add(package_digest(ext))
    assert len(seen) == 4


def test_content_in_a_cache_that_a_link_leads_to_is_covered(ext):
    (ext / ".git").mkdir()
    (ext / ".git/evil").write_text("1")
    (ext / "main").symlink_to(".git/evil")
    before = package_digest(ext)
    (ext / ".git/evil").write_text("2")
    assert package_digest(ext) != before


def test_target_of_a_broken_link_counts_once_it_is_there(ext, tmp_path):
    (ext / "later").symlink_to(tmp_path / "later")
    before = package_digest(ext)
    (tmp_path / "later").write_text("")
    assert package_digest(ext) != before


def test_links_back_inside_and_up_end(ext):
    (ext / "self").symlink_to(".")
    (ext / "lib/back").symlink_to("..")
    before = package_digest(ext)
    (ext / "lib/up").symlink_to("../..")  # the parent holds the extension itself
    # Four in the extension, three in lib, and the extension once more as a child of its parent, not walked again.
    assert package_digest(ext, max_files=8) != before


def test_link_to_a_device_is_not_opened(ext):
    (ext / "endless").symlink_to("/dev/zero")
    assert package_digest(ext)


def test_names_that_are_not_utf8_are_covered(ext):
    before = package_digest(ext)
    (ext / os.fsdecode(b"\xff")).touch()
    assert package_digest(ext) != before


def test_very_deep_directory_is_walked(tmp_path):
    deep = tmp_path / "ext"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert package_digest(deep)


def test_too_many_files_are_refused(ext):
    with pytest.raises(TrustError, match="too many files") as caught:
        package_digest(ext, max_files=3)
    assert caught.value.code == "digest_failed"
    assert package_digest(ext, max_files=4)


def test_too_much_content_is_refused(ext):
    size = sum(path.stat().st_size for path in ext.rglob("*") if path.is_file())
    assert package_digest(ext, max_bytes=size)
    with pytest.raises(TrustError, match="too much"):
        package_digest(ext, max_bytes=size - 1)


def test_directory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TrustError, match=f"{tmp_path}/gone cannot be read: No such file"):
        package_digest(tmp_path / "gone")


@pytest.mark.parametrize("filename", [None, "/d/secret"])
def test_file_that_cannot_be_read_is_refused(ext, monkeypatch, filename):
    def no_chunks(path):
        raise PermissionError(13, "Permission denied", filename)

    monkeypatch.setattr(digest, "chunks", no_chunks)
    with pytest.raises(TrustError, match=f"{filename or ext} cannot be read: Permission denied"):
        package_digest(ext)


def test_entry_whose_kind_cannot_be_read_is_refused(ext, monkeypatch):
    class Unreadable:
        """As a directory entry behind a link into a directory that may not be searched."""

        def stat(self):
            raise PermissionError(13, "Permission denied", "/d/secret")

    kind_of = digest._mode
    monkeypatch.setattr(digest, "_mode", lambda child: kind_of(Unreadable() if child.name == "run" else child))
    with pytest.raises(TrustError, match="/d/secret cannot be read"):
        package_digest(ext)


trees = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join),
    st.tuples(st.binary(max_size=3), st.booleans()),
    max_size=4,
).filter(lambda tree: not any(b.startswith(a + "/") for a in tree for b in tree))


@given(trees, trees, st.randoms())
def test_digests_agree_exactly_when_trees_do(tmp_path_factory, one, other, random):
    found = []
    for tree in (one, other):
        root = tmp_path_factory.mktemp("tree")
        items = list(tree.items())
        random.shuffle(items)
        for name, (content, executable) in items:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            make_program(root / name, content, 0o755 if executable else 0o644)
        found.append(package_digest(root))
        shutil.rmtree(root)
    assert (found[0] == found[1]) == (one == other)
