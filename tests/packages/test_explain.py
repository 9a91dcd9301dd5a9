"""Programs that do not start, really spawned: each cause has its own message and way out."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from package_files import make_program

from trio_exthost.packages import explain_exit, explain_spawn_error


def explanation(program: Path, directory: Path) -> str:
    with pytest.raises(OSError) as caught:
        subprocess.run([str(program)], cwd=directory, check=False)
    return explain_spawn_error(caught.value, [str(program)], directory)


def test_the_four_usual_mistakes_have_four_messages(tmp_path):
    not_executable = make_program(tmp_path / "a b.py", b"#!/bin/sh\n", 0o644)
    windows = make_program(tmp_path / "b", b"#!/bin/sh\r\necho\r\n")
    bare = make_program(tmp_path / "c", b"print('hi')\n")
    missing = make_program(tmp_path / "d", b"#! /opt/none/python3 -u\n")
    found = [explanation(each, tmp_path) for each in (not_executable, windows, bare, missing)]
    assert found[0] == f"{not_executable} is not executable; run: chmod +x '{not_executable}'"
    assert "Windows line ends" in found[1]
    assert f"perl -pi -e 's/\\r$//' {windows}" in found[1]
    assert "has no #! line" in found[2]
    assert "begins with #!/opt/none/python3, and there is no such program" in found[3]
    assert len(set(found)) == 4


def test_the_way_out_that_is_named_works(tmp_path):
    program = make_program(tmp_path / "it's", b"#!/bin/sh\r\nexit 3\n", 0o644)
    for _ in range(2):
        fix = explanation(program, tmp_path).partition("run: ")[2]
        subprocess.run(["/bin/sh", "-c", fix], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 3


def test_program_that_is_not_there_is_named(tmp_path):
    assert f"{tmp_path}/none does not exist" in explanation(tmp_path / "none", tmp_path)


def test_broken_link_is_named(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "gone")
    assert "is a broken link" in explanation(tmp_path / "run", tmp_path)


def test_directory_as_program_is_named(tmp_path):
    (tmp_path / "run").mkdir()
    assert "is a directory" in explanation(tmp_path / "run", tmp_path)


def test_working_directory_that_went_away_is_named(tmp_path):
    program = make_program(tmp_path / "run", b"#!/bin/sh\n")
    assert "the directory" in explanation(program, tmp_path / "gone")


def test_empty_program_is_named(tmp_path):
    assert "is empty" in explanation(make_program(tmp_path / "run", b""), tmp_path)


def test_byte_order_mark_before_the_first_line_is_named(tmp_path):
    assert "byte order mark" in explanation(make_program(tmp_path / "run", b"\xef\xbb\xbf#!/bin/sh\n"), tmp_path)


@pytest.mark.parametrize(
    ("magic", "system"),
    [(b"\x7fELF", "Linux"), (b"\xcf\xfa\xed\xfe", "macOS"), (b"\xca\xfe\xba\xbe", "macOS"), (b"MZ\x90", "Windows")],
)
def test_program_for_another_machine_is_named(magic, system, tmp_path):
    program = make_program(tmp_path / "run", magic + b"\0" * 200)
    text = explain_spawn_error(OSError(errno.ENOEXEC, "Exec format error"), [str(program)], tmp_path)
    assert system in text
    assert os.uname().machine in text


def test_truncated_binary_is_refused_by_the_system_as_another_machines(tmp_path):
    assert "is a program for Linux" in explanation(make_program(tmp_path / "run", b"\x7fELF" + b"\0" * 200), tmp_path)


def test_binary_without_its_loader_is_named(tmp_path):
    program = make_program(tmp_path / "run", b"\x7fELF" + b"\0" * 200)
    text = explain_spawn_error(FileNotFoundError(errno.ENOENT, "no"), [str(program)], tmp_path)
    assert "the loader it needs" in text


def test_interpreter_without_execute_bit_is_named(tmp_path):
    interpreter = make_program(tmp_path / "interpreter", b"#!/bin/sh\n", 0o644)
    program = make_program(tmp_path / "run", f"#!{interpreter}\n".encode())
    assert f"#!{interpreter}, and that is not executable" in explanation(program, tmp_path)


def test_executable_that_is_still_refused_points_to_user_and_mount(tmp_path):
    program = make_program(tmp_path / "run", b"#!/bin/sh\n")
    text = explain_spawn_error(PermissionError(errno.EACCES, "no"), [str(program)], tmp_path)
    assert "noexec" in text


def test_program_that_cannot_be_reached_points_to_the_directories_above(tmp_path):
    text = explain_spawn_error(PermissionError(errno.EACCES, "no"), [str(tmp_path / "x/run")], tmp_path)
    assert "cannot be reached" in text


def test_too_many_arguments_are_named(tmp_path):
    program = make_program(tmp_path / "run", b"#!/bin/sh\n")
    with pytest.raises(OSError) as caught:
        subprocess.run([str(program), "x" * (64 * 1024 * 1024)], check=False)
    assert "longer than the system takes" in explain_spawn_error(caught.value, [str(program)], tmp_path)


def test_any_other_error_is_passed_on_in_the_systems_words(tmp_path):
    program = make_program(tmp_path / "run", b"#!/bin/sh\n")
    text = explain_spawn_error(OSError(errno.EMFILE, "Too many open files"), [str(program)], tmp_path)
    assert text == f"{program} could not be started: Too many open files"
    assert explain_spawn_error(OSError("odd"), [str(program)], tmp_path).endswith("odd")


def test_control_characters_of_a_file_reach_no_message(tmp_path):
    program = make_program(tmp_path / "run\x1b[31m", b"#!/x\x1b[2J\n")
    assert "\x1b" not in explanation(program, tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#!/usr/bin/env nosuchprogram\n", "asks for nosuchprogram"),
        (b"#!/usr/bin/env -S A=1 nosuchprogram -u\n", "asks for nosuchprogram"),
        (b"#!/usr/bin/env python3\r\n", "Windows line ends"),
        (b"#!/bin/sh\nnosuchprogram\n", "status 127 is what a shell says"),
    ],
)
def test_exit_of_a_program_that_env_could_not_find_is_explained(content, words, tmp_path):
    program = make_program(tmp_path / "run", content)
    status = subprocess.run([str(program)], check=False, stderr=subprocess.DEVNULL).returncode
    text = explain_exit(status, [str(program)], "/usr/bin:/bin")
    assert words in text
    if "asks" in words:
        assert "(/usr/bin:/bin)" in text


def test_windows_line_ends_explain_any_failure(tmp_path):
    program = make_program(tmp_path / "run", b"#!/bin/sh -e\r\n")
    assert "Windows line ends" in explain_exit(2, [str(program)], None)
    assert explain_exit(0, [str(program)], None) == ""


@pytest.mark.parametrize("status", [0, 1, -9])
def test_exit_with_another_status_is_not_explained(status, tmp_path):
    program = make_program(tmp_path / "run", b"#!/usr/bin/env python3\n")
    assert explain_exit(status, [str(program)], None) == ""


def test_exit_of_a_program_that_is_gone_is_not_explained(tmp_path):
    assert explain_exit(1, [str(tmp_path / "gone")], None) == ""
