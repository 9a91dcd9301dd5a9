"""Text for a terminal: escaped, wrapped, coloured where it may be."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path

import pytest
from cli.running import good, run, run_on_terminal
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.text import cells, hanging, print_error, printable, write_json


def test_controls_bidi_and_surrogates_are_shown_as_escapes() -> None:
    assert printable("a\x1b[1m\u202eb\ud800\r\n\té") == r"a\x1b[1m\u202eb\ud800\r\n\té"


@given(st.text(alphabet=st.characters()))
def test_printable_text_holds_nothing_that_acts_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert printable(shown) == shown


@given(st.text(max_size=20), st.text(max_size=300), st.integers(40, 120))
def test_wrapped_lines_fit_unless_one_word_does_not_and_lose_nothing(first: str, text: str, width: int) -> None:
    first = printable(first).strip()
    lines = hanging(first, text, width)
    for place, line in enumerate(lines):
        assert cells(line) <= width or len(line.removeprefix(first if place == 0 else "").split(" ")) <= 1
    assert "".join("".join(lines).split()) == "".join((first + printable(text)).split())


def test_later_lines_begin_below_the_text_and_long_words_stay_whole() -> None:
    assert hanging("  mark ", "one two /a/long/path three", 14) == [
        "  mark one two",
        "       /a/long/path",
        "       three",
    ]
    assert hanging("a label of many words ", "one two", 26) == ["a label of many words one", "      two"]


def test_indentation_of_a_text_is_kept() -> None:
    assert hanging("", "    at line 3", 80) == ["    at line 3"]


def test_wide_characters_count_as_two_columns() -> None:
    assert cells("日本e\u0301") == 5
    assert hanging("", "日本 日本", 8) == ["日本", "日本"]


def test_error_is_wrapped_and_escaped(monkeypatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    print_error("[bold]no\x1b[2J\nsecond " + "word " * 20)
    lines = stream.getvalue().splitlines()
    assert lines[0] == r"Error: [bold]no\x1b[2J"
    assert lines[1].startswith("       second word")
    assert max(map(len, lines)) <= 80


def test_json_is_ascii_whatever_is_in_it(monkeypatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    value = {"a": "\x1b[2J\x7f\x9b\u202e\ud800é"}
    write_json(value)
    assert stream.getvalue().isascii()
    assert stream.getvalue().replace("\n", "").isprintable()
    assert json.loads(stream.getvalue()) == value


def test_json_refuses_what_is_none() -> None:
    with pytest.raises(TypeError, match="set is no JSON value"):
        write_json({"a": set()})


def test_terminal_gets_colour_and_nothing_of_the_extension_acts_there(home: Path, tmp_path: Path) -> None:
    code, shown = run_on_terminal(home, "check", str(good(tmp_path / "good")))
    assert code == 0
    assert "\x1b[32mgood 1.2: ready" in shown
    assert "\x1b[31m" not in shown
    assert r"says \x1b[31mhi\u202e [bold red]loud[/]" in shown


def test_terminal_with_no_color_gets_plain_text(home: Path, tmp_path: Path) -> None:
    code, shown = run_on_terminal(home, "check", str(good(tmp_path / "good")), NO_COLOR="1")
    assert code == 0
    assert "good 1.2: ready" in shown
    assert "\x1b" not in shown


def test_json_on_a_terminal_has_no_control_character(home: Path, tmp_path: Path) -> None:
    code, shown = run_on_terminal(home, "check", "--json", str(good(tmp_path / "good")))
    assert code == 0
    assert json.loads(shown)["commands"][0]["description"].startswith("says \x1b[31mhi")
    assert shown.replace("\n", "").isprintable()


def test_pipe_gets_plain_text_of_80_columns_even_if_told_otherwise(home: Path, tmp_path: Path) -> None:
    done = run(home, "check", str(good(tmp_path / "good")), FORCE_COLOR="1", COLUMNS="40", CLICOLOR_FORCE="1")
    assert "\x1b" not in done.stdout
    assert r"  command /hi  says \x1b[31mhi\u202e [bold red]loud[/]" in done.stdout


def test_output_that_knows_ascii_only_gets_escapes(home: Path, tmp_path: Path) -> None:
    (tmp_path / "é").mkdir()
    done = run(home, "list", "--cwd", str(tmp_path / "é"), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert r"\xe9/.exthost" in done.stdout
