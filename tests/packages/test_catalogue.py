"""Discovery: order, names, trust; every candidate a row with its reason."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import pytest
from package_files import make_extension

from trio_exthost.config import HostConfig
from trio_exthost.packages import Candidate, Origin, Status, TrustStore, catalogue, discover


class Place:
    """A user, a project, and what is found there."""

    def __init__(self, base: Path) -> None:
        self.cwd = base / "project"
        self.cwd.mkdir()
        self.data = base / "data"
        self.project = self.cwd / ".exthost/extensions"
        self.user = self.data / "extensions"
        self.store = TrustStore(self.data / "trust.json")

    def find(self, **config: object) -> tuple[Candidate, ...]:
        return discover(HostConfig(data_dir=self.data, **config), self.cwd, trust=self.store)


def trust_all(_candidate: object) -> bool:
    return True


@pytest.fixture
def place(tmp_path):
    return Place(Path(os.path.realpath(tmp_path)))


def states(rows: tuple[Candidate, ...]) -> list[tuple[str, Origin, Status, str]]:
    return [(row.name, row.origin, row.status, row.code) for row in rows]


def test_nothing_anywhere_is_an_empty_catalogue(place):
    assert place.find() == ()


def test_order_is_explicit_then_project_then_user_each_sorted(place, tmp_path):
    for root in (place.project, place.user):
        for name in "ba":
            make_extension(root / f"{root.parent.name[-1]}{name}")
    explicit = (make_extension(tmp_path / "z"), make_extension(tmp_path / "y"))
    rows = place.find(extensions=explicit)
    assert [(row.origin.value, row.name) for row in rows] == [
        ("explicit", "z"), ("explicit", "y"), ("project", "ta"), ("project", "tb"), ("user", "aa"), ("user", "ab"),
    ]  # fmt: skip


def test_user_and_explicit_ones_are_trusted_and_not_asked_about(place, tmp_path):
    def never(candidate):
        raise AssertionError(candidate)

    make_extension(place.user / "u")
    explicit = make_extension(tmp_path / "e")
    config = HostConfig(data_dir=place.data, extensions=(explicit,), trust=never)
    rows = discover(config, place.cwd)
    assert states(rows) == [("e", Origin.EXPLICIT, Status.EFFECTIVE, ""), ("u", Origin.USER, Status.EFFECTIVE, "")]
    assert all(row.active and row.manifest and row.digest is None and not row.reason for row in rows)


def test_several_roots_and_absolute_ones_are_searched_in_order(place, tmp_path):
    make_extension(place.cwd / ".zot/extensions/one")
    make_extension(tmp_path / "roots/two")
    make_extension(place.cwd / "mine/three")
    rows = place.find(
        project_roots=(Path(".zot/extensions"), place.cwd / "mine"), user_roots=(tmp_path / "roots", tmp_path / "none")
    )
    assert [row.name for row in rows] == ["one", "three", "two"]
    assert [row.origin for row in rows] == [Origin.PROJECT, Origin.PROJECT, Origin.USER]


def test_relative_explicit_path_is_relative_to_the_process_not_the_project(place, tmp_path, monkeypatch):
    make_extension(place.cwd / "ext")
    expected = make_extension(tmp_path / "elsewhere/ext")
    monkeypatch.chdir(tmp_path / "elsewhere")
    (row,) = place.find(extensions=(Path("ext"),))
    assert row.directory == expected.resolve()


def test_project_local_extension_is_blocked_until_trusted(place):
    make_extension(place.project / "p")
    (row,) = place.find()
    assert states((row,)) == [("p", Origin.PROJECT, Status.BLOCKED, "trust_required")]
    assert row.reason == f"project-local and not trusted; after reading it: exthost trust {place.project}/p"
    assert row.manifest
    assert row.digest
    assert not row.active
    place.store.trust(row.directory, row.digest)
    (trusted,) = place.find()
    assert (trusted.status, trusted.digest) == (Status.EFFECTIVE, row.digest)


def test_changed_or_moved_extension_is_asked_about_again(place):
    directory = make_extension(place.project / "p")
    (row,) = place.find()
    place.store.trust(row.directory, row.digest)
    (directory / "run").write_text("evil")
    (changed,) = place.find()
    assert changed.code == "trust_required"
    place.store.trust(changed.directory, changed.digest)
    directory.rename(place.project / "q")
    (moved,) = place.find()
    assert moved.code == "trust_required"


def test_denied_extension_stays_blocked_and_nobody_is_asked(place):
    make_extension(place.project / "p")
    (row,) = place.find()
    place.store.deny(row.directory, row.digest)
    config = HostConfig(data_dir=place.data, trust=trust_all)
    (denied,) = discover(config, place.cwd, trust=place.store)
    assert (denied.status, denied.code) == (Status.BLOCKED, "trust_denied")
    assert "exthost trust" in denied.reason


def ask(place: Place, answer) -> Candidate:
    (row,) = discover(HostConfig(data_dir=place.data, trust=answer), place.cwd)
    return row


def test_callback_is_asked_with_the_candidate_and_its_yes_is_not_stored(place):
    make_extension(place.project / "p")
    asked = []

    def yes(candidate):
        asked.append(candidate)
        return True

    row = ask(place, yes)
    assert row.status is Status.EFFECTIVE
    assert asked == [row]
    assert row.digest
    assert place.find()[0].status is Status.BLOCKED
    assert not place.store.entries()


def test_callback_that_says_no_or_nonsense_or_raises_does_not_trust(place):
    make_extension(place.project / "p")

    def broken(_candidate):
        raise LookupError("secret")

    assert ask(place, lambda candidate: False).reason.endswith("exthost trust " + str(place.project / "p"))
    for answer, words in ((lambda candidate: "yes", "returned str, not a bool"), (broken, "raised LookupError")):
        row = ask(place, answer)
        assert (row.status, row.code) == (Status.BLOCKED, "trust_required")
        assert row.reason.endswith(f"the trust callback {words}")


def test_async_callback_does_not_trust(place):
    make_extension(place.project / "p")

    async def trust(_candidate):
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "never awaited": the embedder is told twice
        row = ask(place, trust)
    assert row.status is Status.BLOCKED
    assert "returned coroutine, not a bool" in row.reason


def test_trust_written_in_the_project_has_no_effect(place):
    directory = make_extension(place.project / "p", trusted=True, trust=True)
    (row,) = place.find()
    for inside in (directory, place.project, place.cwd, place.cwd / ".exthost"):
        TrustStore(inside / "trust.json").trust(row.directory, package(place))
    assert place.find()[0].status is Status.BLOCKED


def package(place: Place) -> str:
    return place.find()[0].digest or ""


def test_project_directory_that_is_a_link_to_the_users_gains_nothing(place, tmp_path):
    make_extension(place.user / "u")
    place.project.parent.mkdir()
    place.project.symlink_to(place.user)
    rows = place.find()
    assert states(rows) == [
        ("u", Origin.PROJECT, Status.BLOCKED, "trust_required"), ("u", Origin.USER, Status.EFFECTIVE, ""),
    ]  # fmt: skip


def test_damaged_trust_store_is_named_beside_the_block(place):
    make_extension(place.project / "p")
    place.data.mkdir()
    place.store.path.write_text("{")
    (row,) = place.find()
    assert row.status is Status.BLOCKED
    assert f"the trust store {place.store.path}" in row.reason


def test_extension_that_cannot_be_digested_is_blocked(place, monkeypatch):
    make_extension(place.project / "p")
    real = catalogue.package_digest
    monkeypatch.setattr(catalogue, "package_digest", lambda directory: real(directory, max_files=1))
    (row,) = discover(HostConfig(data_dir=place.data, trust=trust_all), place.cwd)
    assert (row.status, row.code) == (Status.BLOCKED, "digest_failed")
    assert "too many files" in row.reason


def test_trusted_project_extension_shadows_the_users_of_the_same_directory_name(place):
    make_extension(place.project / "guard", name="project-guard")
    make_extension(place.user / "guard", name="user-guard")
    rows = discover(HostConfig(data_dir=place.data, trust=trust_all), place.cwd)
    assert [row.status for row in rows] == [Status.EFFECTIVE, Status.SHADOWED]
    assert rows[1].reason == f"shadowed by {place.project}/guard (the same directory name)"
    assert rows[1].code == "shadowed"


@pytest.mark.parametrize("keys", [{}, {"enabled": False}, {"name": 7}])
def test_project_extension_that_does_not_count_cannot_push_the_users_aside(place, keys):
    make_extension(place.project / "guard", **keys)
    make_extension(place.user / "guard")
    rows = place.find()
    assert not rows[0].active
    assert rows[1].status is Status.EFFECTIVE


def test_later_one_of_a_manifest_name_is_shadowed_by_the_first(place, tmp_path):
    first = make_extension(tmp_path / "e/one", name="guard")
    make_extension(place.user / "two", name="guard")
    make_extension(place.user / "three", name="guard")
    rows = place.find(extensions=(first,))
    assert [row.status for row in rows] == [Status.EFFECTIVE, Status.SHADOWED, Status.SHADOWED]
    assert {row.reason for row in rows[1:]} == {f"shadowed by {first} (the same name)"}


def test_directory_names_count_between_roots_only(place, tmp_path):
    explicit = make_extension(tmp_path / "e/guard", name="one")
    make_extension(place.user / "guard", name="two")
    assert [row.status for row in place.find(extensions=(explicit,))] == [Status.EFFECTIVE, Status.EFFECTIVE]


def test_shadowed_project_extension_is_not_asked_about(place, tmp_path):
    def never(candidate):
        raise AssertionError(candidate)

    make_extension(place.project / "guard")
    explicit = make_extension(tmp_path / "e/guard")
    rows = discover(HostConfig(data_dir=place.data, extensions=(explicit,), trust=never), place.cwd)
    assert [row.code for row in rows] == ["", "shadowed"]


def test_directory_found_twice_runs_once(place, tmp_path):
    explicit = make_extension(tmp_path / "real")
    place.user.mkdir(parents=True)
    (place.user / "link").symlink_to(explicit)
    rows = place.find(extensions=(explicit, explicit))
    assert [row.status for row in rows] == [Status.EFFECTIVE, Status.SHADOWED, Status.SHADOWED]
    assert "the same directory)" in rows[2].reason


def test_disabled_extension_is_a_row_and_frees_its_name(place, tmp_path):
    explicit = make_extension(tmp_path / "e", name="guard", enabled=False)
    make_extension(place.user / "guard")
    rows = place.find(extensions=(explicit,))
    assert states(rows) == [
        ("guard", Origin.EXPLICIT, Status.DISABLED, "disabled"), ("guard", Origin.USER, Status.EFFECTIVE, ""),
    ]  # fmt: skip
    assert "enabled: false" in rows[0].reason


def test_extension_of_skills_only_is_static_counts_and_needs_trust_too(place):
    make_extension(place.user / "s", exec=None, skills=["skills"])
    make_extension(place.project / "p", exec=None, skills=["skills"])
    assert states(place.find()) == [
        ("p", Origin.PROJECT, Status.BLOCKED, "trust_required"), ("s", Origin.USER, Status.STATIC, ""),
    ]  # fmt: skip
    assert place.find()[1].active


def test_warnings_of_a_manifest_are_kept(place):
    make_extension(place.user / "u", timout_s=5)
    (row,) = place.find()
    assert row.status is Status.EFFECTIVE
    assert "did you mean" in row.warnings[0]


def test_bad_manifest_is_a_row_named_after_its_directory(place):
    make_extension(place.user / "u", args="x")
    (row,) = place.find()
    assert states((row,)) == [("u", Origin.USER, Status.REJECTED, "manifest_invalid")]
    assert f"{place.user}/u/extension.json at $.args" in row.reason
    assert row.manifest is None


def test_directories_and_files_that_are_no_extensions_are_ignored(place):
    (place.user / "empty").mkdir(parents=True)
    (place.user / "README").write_text("")
    assert place.find() == ()


def test_linked_directory_is_followed_and_shown_by_its_link(place, tmp_path):
    real = make_extension(tmp_path / "real")
    (tmp_path / "plain").mkdir()
    place.user.mkdir(parents=True)
    (place.user / "link").symlink_to(real)
    (place.user / "no-extension").symlink_to(tmp_path / "plain")
    (row,) = place.find()
    assert (row.status, row.directory, row.shown) == (Status.EFFECTIVE, real.resolve(), str(place.user / "link"))


def test_links_that_lead_nowhere_are_rows(place, tmp_path):
    place.user.mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (place.user / "a").symlink_to(tmp_path / "gone")
    (place.user / "b").symlink_to("b")
    (place.user / "c").symlink_to(tmp_path / "file")
    (place.user / "d").symlink_to(tmp_path / "file/below")
    rows = place.find()
    assert states(rows) == [(name, Origin.USER, Status.REJECTED, "broken_link") for name in "abcd"]
    assert [row.reason.partition(" is a broken link: ")[2] for row in rows] == [
        "nothing is there", "it leads back to itself", "it leads to no directory", "nothing is there",
    ]  # fmt: skip


def test_broken_link_as_manifest_is_a_row(place):
    (place.user / "u").mkdir(parents=True)
    (place.user / "u/extension.json").symlink_to("gone")
    (row,) = place.find()
    assert (row.status, row.code) == (Status.REJECTED, "manifest_invalid")


def test_explicit_path_that_is_no_extension_is_a_row(place, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    rows = place.find(extensions=(tmp_path / "empty", tmp_path / "file", tmp_path / "gone", tmp_path / "file/x"))
    assert [(row.name, row.code) for row in rows] == [
        ("empty", "manifest_invalid"), ("file", "not_a_directory"), ("gone", "not_a_directory"), ("x", "unreadable"),
    ]  # fmt: skip
    assert "name the directory that holds extension.json" in rows[1].reason
    assert "does not exist" in rows[2].reason
    assert all(row.status is Status.REJECTED for row in rows)


def test_unreadable_and_broken_roots_are_rows_and_hide_nothing_else(place, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").symlink_to("gone")
    make_extension(place.user / "u")
    rows = place.find(user_roots=(tmp_path / "file", tmp_path / "broken", place.user))
    assert [(row.name, row.code) for row in rows] == [("file", "unreadable"), ("broken", "broken_link"), ("u", "")]
    assert f"the root {tmp_path}/file cannot be read" in rows[0].reason


def test_directory_that_cannot_be_searched_is_a_row(place, monkeypatch):
    directory = make_extension(place.user / "u")
    real = Path.lstat

    def lstat(path):
        if path.parent == directory:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    def unreadable(path, limit_bytes):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr("trio_exthost.packages.manifest.read_regular", unreadable)
    (row,) = place.find()
    assert states((row,)) == [("u", Origin.USER, Status.REJECTED, "manifest_invalid")]
    assert "Permission denied" in row.reason


def test_control_characters_of_a_path_reach_neither_name_nor_reason(place):
    directory = place.user / "u\x1b[2J"
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text("{")
    (place.user / os.fsdecode(b"\xff")).mkdir()
    (place.user / os.fsdecode(b"\xff") / "extension.json").touch()
    rows = place.find()
    assert [row.name for row in rows] == ["u\\x1b[2J", "\\xff"]
    for row in rows:
        assert (row.name + row.shown + row.reason).isprintable()


def test_candidates_are_values(place):
    make_extension(place.user / "u")
    first, again = place.find(), place.find()
    assert first == again
    assert hash(first) == hash(again)
    shutil.rmtree(place.user / "u")
    assert place.find() == ()
