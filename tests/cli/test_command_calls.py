"""Wrong calls and help: short, with the nearest name; every command's help has an example and the form of its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import extension, good, run
from click.testing import CliRunner

from trio_exthost.cli.group import COMMANDS, exthost


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["LST"], "No such command 'LST'. Did you mean 'list'?"),
        (["xyzzy"], f"The commands are {', '.join(COMMANDS)}."),
        (["x\x1b[1m[red]y"], r"No such command 'x\x1b[1m[red]y'."),
        (["check", "--jsn", "."], "--json"),
        (["trust", "--forgt", "."], "--forget"),
        (["--versio"], "--version"),
        (["list", "--\x1b[1m"], r"--\x1b[1m"),
        (["check"], "DIRECTORY"),
        (["check", "--timeout", "soon", "."], "'soon'"),
        (["list", "more"], "more"),
    ],
)
def test_wrong_call_is_a_short_error_and_exits_2(home: Path, words: list[str], said: str) -> None:
    done = run(home, *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "--help" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) <= 3
    assert "\x1b" not in done.stderr
    assert done.stdout == ""


def test_no_command_shows_the_help_and_exits_2(home: Path) -> None:
    done = run(home)
    assert done.returncode == 2
    for name, (_, line) in COMMANDS.items():
        assert name in done.stderr
        assert line in done.stderr


WITHOUT_JSON = {"logs"}
"""What it prints is a program's own text already."""


def help_of(*words: str) -> str:
    result = CliRunner().invoke(exthost, [*words, "--help"])
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example_and_fits_80_columns(command: str) -> None:
    text = help_of(command)
    _, found, examples = text.partition("Example")
    assert found
    assert f"\n  exthost {command}" in examples
    assert ("\n--json prints one object" in examples) == (command not in WITHOUT_JSON)
    assert max(map(len, text.splitlines())) <= 80


def test_help_of_the_command_itself_imports_no_command() -> None:
    text = help_of()
    assert "For example: exthost check" in text
    assert [line for _, line in COMMANDS.values() if line not in text] == []


def test_short_help_of_each_command_is_the_one_of_the_list() -> None:
    for name, (_, line) in COMMANDS.items():
        command = exthost.get_command(None, name)  # type: ignore[arg-type] - our group does not look at it
        assert command is not None
        assert command.short_help == line


def test_json_is_one_object_whose_fields_the_help_names(home: Path, tmp_path: Path) -> None:
    folder = str(good(tmp_path / "good"))
    bad = str(extension(tmp_path / "bad", "sys.exit(1)"))
    (tmp_path / "project/.exthost/extensions").mkdir(parents=True)
    good(tmp_path / "project/.exthost/extensions/good")
    calls = {
        "check": [["--json", folder], ["--json", bad]],
        "demo": [["--json"]],
        "list": [["--json", "--cwd", str(tmp_path / "project")]],
        "trust": [["--json", folder], ["--json"], ["--json", "--forget", folder]],
    }
    for command, each in calls.items():
        documented = help_of(command).partition("--json prints one object")[2]
        for words in each:
            value = json.loads(run(home, command, *words).stdout)
            assert isinstance(value, dict)
            assert [key for key in fields(value) if key not in documented] == [], (command, words)


def fields(value: dict[str, object]) -> set[str]:
    """The fields of an object and of the objects in its lists; of others only where the help names them."""
    inner = [item for part in value.values() if isinstance(part, list) for item in part if isinstance(item, dict)]
    return {*value, *(key for each in inner for key in each)}
