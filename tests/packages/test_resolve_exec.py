"""Which program runs, and in which environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from package_files import make_extension, make_program, manifest_of

from trio_exthost.errors import LoadError
from trio_exthost.packages import child_environment, resolve_exec


def refused(exec_: str, directory: Path, env_path: str | None = "/nowhere", **keys: object) -> LoadError:
    with pytest.raises(LoadError) as caught:
        resolve_exec(manifest_of(exec=exec_, **keys), directory, env_path)
    assert caught.value.extension == "x"
    assert caught.value.stage == "spawn"
    return caught.value


@pytest.mark.parametrize("exec_", ["./run", "bin/run", "bin/../run", "~/run", ".//run"])
def test_exec_with_a_separator_is_relative_to_the_extension(exec_, tmp_path, monkeypatch):
    decoy = tmp_path / "decoy"
    decoy.mkdir()
    make_program(decoy / "run", b"")
    monkeypatch.chdir(decoy)
    directory = tmp_path / "ext"
    (program, *args) = resolve_exec(manifest_of(exec=exec_, args=["-a", "b c"]), directory, str(decoy))
    assert program == os.path.normpath(directory / exec_)
    assert args == ["-a", "b c"]


def test_absolute_exec_is_taken_as_it_is(tmp_path):
    assert resolve_exec(manifest_of(exec="/opt/../bin/x", args=["1"]), tmp_path, None) == ["/opt/../bin/x", "1"]


@pytest.mark.parametrize("exec_", ["../x", "..", "./a/../../x", "./../ext2/x"])
def test_exec_outside_the_directory_is_refused(exec_, tmp_path):
    error = refused(exec_, tmp_path / "ext")
    assert error.code == "exec_outside"
    assert repr(exec_) in str(error)
    assert "absolute path" in error.hint


def test_interpreter_of_a_virtual_environment_may_be_a_link_out_and_keeps_its_path(tmp_path):
    directory = make_extension(tmp_path / "ext")
    (directory / "python").symlink_to("/bin/sh")
    assert resolve_exec(manifest_of(exec="./python"), directory, None) == [str(directory / "python")]


def test_bare_word_is_looked_up_in_the_given_path_in_order(tmp_path, monkeypatch):
    for folder in "abc":
        (tmp_path / folder).mkdir()
    make_program(tmp_path / "a/tool", b"", 0o644)
    (tmp_path / "b/tool").mkdir()
    expected = make_program(tmp_path / "c/tool", b"")
    monkeypatch.setenv("PATH", "/nowhere")
    path = os.pathsep.join(str(tmp_path / folder) for folder in "abc")
    assert resolve_exec(manifest_of(exec="tool"), tmp_path, path) == [str(expected)]


@pytest.mark.parametrize("path", ["", ".", "bin", ":", "bin:.:"])
def test_relative_entries_of_path_are_never_searched(path, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    make_program(tmp_path / "tool", b"")
    make_program(tmp_path / "bin/tool", b"")
    monkeypatch.chdir(tmp_path)
    assert refused("tool", tmp_path, path).code == "exec_not_found"


def test_word_not_found_names_word_language_path_and_way_out(tmp_path):
    error = refused("nosuch", tmp_path, "/nowhere:/else", language="ruby")
    assert error.code == "exec_not_found"
    for part in ("'nosuch'", "(language: ruby)", "PATH searched: /nowhere:/else", "not installed", "./nosuch"):
        assert part in str(error)
    assert "(empty)" in str(refused("nosuch", tmp_path, ""))


def test_word_found_without_execute_bit_is_said(tmp_path):
    program = make_program(tmp_path / "tool", b"", 0o644)
    assert f"{program} is there but not executable" in str(refused("tool", tmp_path, str(tmp_path)))


def test_without_a_path_the_systems_default_is_searched(tmp_path):
    assert Path(resolve_exec(manifest_of(exec="sh"), tmp_path, None)[0]).name == "sh"


HOST = {
    "PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "XDG_CACHE_HOME": "/c", "OPENAI_API_KEY": "secret", "LD_PRELOAD": "x.so",
    "PYTHONPATH": "/p", "NODE_OPTIONS": "--x", "EMPTY": "",
}  # fmt: skip
ALLOWED = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "XDG_CACHE_HOME": "/c", "PYTHONUNBUFFERED": "1"}


def test_environment_is_an_allow_list():
    assert child_environment(HOST, manifest_of(), {}) == ALLOWED


def test_manifest_environment_lets_nothing_else_through():
    manifest = manifest_of(exthost={"env": {"A": "1"}})
    assert child_environment(HOST, manifest, {"B": "2"}) == {**ALLOWED, "A": "1", "B": "2"}


def test_declared_names_are_let_through_if_the_host_has_them():
    manifest = manifest_of(exthost={"env_from": ["OPENAI_API_KEY", "EMPTY", "ABSENT"]})
    assert child_environment(HOST, manifest, {}) == {**ALLOWED, "OPENAI_API_KEY": "secret", "EMPTY": ""}


def test_inheriting_passes_everything_on():
    assert child_environment(HOST, manifest_of(), {}, inherit=True) == {**HOST, "PYTHONUNBUFFERED": "1"}


def test_manifest_wins_over_operator_over_host():
    host = {**HOST, "A": "host"}
    let_through = manifest_of(exthost={"env_from": ["A"]})
    assert child_environment(host, let_through, {})["A"] == "host"
    assert child_environment(host, let_through, {"A": "operator"})["A"] == "operator"
    own = manifest_of(exthost={"env_from": ["A"], "env": {"A": "manifest", "PATH": "/m"}})
    result = child_environment(host, own, {"A": "operator"})
    assert (result["A"], result["PATH"]) == ("manifest", "/m")


@pytest.mark.parametrize("value", ["", "0"])
def test_explicit_unbuffered_setting_wins(value):
    name = "PYTHONUNBUFFERED"
    assert child_environment(HOST, manifest_of(exthost={"env": {name: value}}), {})[name] == value
    assert child_environment(HOST, manifest_of(), {name: value})[name] == value
    assert child_environment({name: value}, manifest_of(exthost={"env_from": [name]}), {})[name] == value
    assert child_environment({name: value}, manifest_of(), {}, inherit=True)[name] == value
    assert child_environment({name: value}, manifest_of(), {})[name] == "1"


def test_compiled_modules_are_kept_elsewhere_where_asked():
    name = "PYTHONPYCACHEPREFIX"
    assert child_environment({}, manifest_of(), {}, pycache_dir=Path("/data/pycache"))[name] == "/data/pycache"
    own = manifest_of(exthost={"env": {name: "/own"}})
    assert child_environment({}, own, {}, pycache_dir=Path("/data/pycache"))[name] == "/own"
    assert name not in child_environment({}, manifest_of(), {})


def test_inputs_are_left_as_they_are():
    host, operator = dict(HOST), {"B": "2"}
    child_environment(host, manifest_of(), operator)
    assert (host, operator) == (HOST, {"B": "2"})
