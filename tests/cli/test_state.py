"""`exthost state`: what there is, what stands where, and how it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import run
from cli.stored import EVENT, branched, commit, error_of, opened, put, shared, shown, write

from trio_exthost.state import Advance, Checkout


def test_list_names_what_is_stored_and_what_cannot_be_read(home: Path) -> None:
    assert "nothing is stored in" in run(home, "state", "list").stdout
    branched(home)
    shared(home)
    (home / "state/sessions/broken.db").write_bytes(b"not a database, and long enough to be looked at")
    value = shown(home, "list")
    assert value["directory"] == str(home / "state")
    assert [(each["name"], each["problem"] is None) for each in value["sessions"]] == [("broken", False), ("s1", True)]
    assert [each["name"] for each in value["extensions"]] == ["todo"]
    assert all(each["size_bytes"] > 0 for each in (*value["sessions"], *value["extensions"]))
    text = run(home, "state", "list").stdout
    assert "s1  " in text
    assert "KiB" in text
    assert "damaged: file is not a database" in text
    assert "file is not a database" in error_of(home, "show", "broken")


def test_show_tells_the_selected_branch_or_another(home: Path) -> None:
    branched(home)
    value = shown(home, "show", "s1")
    assert (value["kind"], value["branch"], value["selected"]) == ("session", "m2", "m2")
    assert value["positions"] == [
        {"entry_id": "m1", "after": ""},
        {"entry_id": "m2", "after": "m1"},
        {"entry_id": "m3", "after": "m1"},
    ]
    other, todo = value["extensions"]
    assert (other["extension"], todo["extension"], todo["schema"], todo["revision"]) == ("other", "todo", 2, 3)
    assert todo["keys"] == [{"key": "k", "revision": 3, "value": "two", "whole": True}]
    assert [(each["event_id"], each["custom_type"], each["sequence"], each["value"]) for each in todo["events"]] == [
        ("e1", "done", 7, {"n": 1})
    ]
    assert [(each["context_id"], each["placement"], each["value"]) for each in todo["contexts"]] == [
        ("c", "system_prompt_section", "Be kind.")
    ]
    assert (todo["usage"]["values"], todo["usage"]["events"], todo["usage"]["contexts"]) == (1, 1, 1)
    for branch, kept in (("m1", "one"), ("m3", "three"), ("", "at the beginning")):
        value = shown(home, "show", "s1", "--branch", branch)
        assert (value["branch"], value["selected"]) == (branch, "m2")
        assert [each["keys"][0]["value"] for each in value["extensions"]] == [kept]
    assert "no position" in error_of(home, "show", "s1", "--branch", "m9")


def test_show_for_a_person_has_the_tree_and_a_way_without_branches_is_one_line(home: Path) -> None:
    branched(home)
    with opened(home) as state:
        write(state, Checkout("m3"), *(Advance(f"n{number}") for number in range(50)))
    lines = run(home, "state", "show", "s1", "--branch", "m2").stdout.splitlines()
    tree = lines[lines.index("positions") + 1 :]
    assert tree == ["  (the beginning) > m1", "    m2 [shown]", "    m3 > n0 > ... 47 more ... > n48 > n49 [selected]"]
    assert '    k (revision 3) "two"' in lines
    assert '    e1 (done) {"n": 1}' in lines
    assert '    c (system_prompt_section) "Be kind."' in lines


def test_values_are_masked_and_cut_and_steer_no_terminal(home: Path) -> None:
    with opened(home) as state:
        evil = commit(
            put("api_token", "sesame"),
            put("note", "\x1b[31mred\u202e API_KEY=sesame"),
            put("long", "x" * 9000),
            put("deep", {"password": "sesame"}),
            put("bidi\u202e[bold red]", 1),
        )
        write(state, evil)
    text = run(home, "state", "show", "s1").stdout
    assert "sesame" not in text
    assert text.replace("\n", "").isprintable()
    assert r"\u202e[bold red]" in text
    assert r"\u001b[31mred" in text
    assert "(9000 characters)" in text
    assert len(text) < 2000
    (todo,) = shown(home, "show", "s1")["extensions"]
    assert {each["key"]: each["whole"] for each in todo["keys"]} == {
        "api_token": False, "note": False, "long": False, "deep": False, "bidi\u202e[bold red]": True,
    }  # fmt: skip
    assert "sesame" not in json.dumps(todo)
    assert run(home, "state", "export", "s1").stdout.count("sesame") == 3


def test_many_keys_are_counted_not_printed(home: Path) -> None:
    with opened(home) as state:
        for first in range(0, 160, 32):
            write(state, commit(*(put(f"k{number}", number) for number in range(first, first + 32))))
    text = run(home, "state", "show", "s1").stdout
    assert "keys (100 of 160)" in text
    assert len(text.splitlines()) < 120
    assert len(shown(home, "show", "s1")["extensions"][0]["keys"]) == 160


def test_the_last_of_many_events_are_printed_and_a_branch_without_anything_says_so(home: Path) -> None:
    with opened(home) as state:
        for number in range(120):
            write(state, commit({**EVENT, "event_id": f"e{number}"}))
        write(state, Advance("m1"))
    shared(home, "void", {"kind": "delete_state", "key": "never there"})
    lines = run(home, "state", "show", "s1", "--branch", "").stdout.splitlines()
    assert "  events (the last 100 of 120)" in lines
    assert [line.split()[0] for line in lines if "(done)" in line] == [f"e{number}" for number in range(20, 120)]
    with opened(home, "empty") as state:
        write(state, Advance("m1"))
    assert "  nothing is stored here" in run(home, "state", "show", "empty").stdout.splitlines()
    assert shown(home, "show", "void")["extensions"][0]["keys"] == []


def test_what_an_extension_shares_is_shown_and_a_session_of_the_same_name_goes_first(home: Path) -> None:
    shared(home)
    value = shown(home, "show", "todo")
    assert (value["kind"], value["branch"], value["selected"], value["positions"]) == ("extension", None, None, [])
    assert [each["value"] for each in value["extensions"][0]["keys"]] == [3]
    assert "no branches" in error_of(home, "show", "todo", "--branch", "m1")
    with opened(home, "todo") as state:
        write(state, commit(put("k", 1)))
    assert shown(home, "show", "todo", "--extension")["kind"] == "extension"
    done = run(home, "state", "show", "todo")
    assert done.stdout.startswith("session todo ")
    assert "exthost state show todo --extension" in " ".join(done.stderr.split())


@pytest.mark.parametrize(("words", "said"), [((), "Commands"), (("shwo", "x"), "No such command"), (("show",), "NAME")])
def test_a_wrong_call_exits_2(home: Path, words: tuple[str, ...], said: str) -> None:
    assert said in error_of(home, *words, status=2)


@pytest.mark.parametrize("command", ["list", "show", "export", "compact"])
def test_help_has_an_example_and_names_every_field_of_the_json(home: Path, command: str) -> None:
    branched(home)
    text = run(home, "state", command, "--help").stdout
    assert f"\n  exthost state {command}" in text
    assert max(map(len, text.splitlines())) <= 80
    documented = text.partition("Example")[2]
    value = shown(home, command, *([] if command == "list" else ["s1"]))
    assert [key for key in keys_of(value) if key not in documented] == []


def keys_of(value: object) -> set[str]:
    """The fields of all objects in it, but of what extensions stored."""
    if isinstance(value, list):
        return {key for each in value for key in keys_of(each)}
    if not isinstance(value, dict):
        return set()
    inner = {key for name, each in value.items() if name not in ("value", "payload") for key in keys_of(each)}
    return {*value, *inner}
