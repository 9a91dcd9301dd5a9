"""`exthost state`: what there is, what stands where, all of it as lines, made smaller; and what it says where it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.running import run
from click.testing import CliRunner

from trio_exthost.cli.group import exthost
from trio_exthost.state import Advance, Checkout, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores
from trio_exthost.state.sqlite_session import SqliteSessionStore


def stores_of(home: Path) -> SqliteStores:
    return SqliteStores(home / "state")


def put(key: str, value: object) -> dict[str, object]:
    return {"kind": "set_state", "key": key, "value": value}


def commit(*actions: dict[str, object], extension: str = "todo") -> Commit:
    return Commit(extension=extension, schema=2, actions=read_actions(list(actions), extension=extension), sequence=7)


EVENT = {"kind": "append_custom_event", "event_id": "e1", "custom_type": "done", "payload": {"n": 1}}
CONTEXT = {
    "kind": "append_model_context",
    "context_id": "c",
    "placement": "system_prompt_section",
    "content": "Be kind.",
}


@contextmanager
def opened(home: Path, name: str = "s1") -> Iterator[SessionState]:
    state = SessionState(stores_of(home).open_session(name))
    try:
        yield state
    finally:
        state.close()


def write(state: SessionState, *operations: object) -> None:
    state.publish(state.write(operations))  # type: ignore[arg-type]


def branched(home: Path) -> None:
    """A session in which `m1` has the children `m2`, which is selected, and `m3`."""
    with opened(home) as state:
        write(state, commit(put("k", "at the beginning")), Advance("m1"), commit(put("k", "one"), EVENT))
        write(state, Advance("m2"), commit(put("k", "two"), CONTEXT), commit(put("x", 1), extension="other"))
        write(state, Checkout("m1"), Advance("m3"), commit(put("k", "three")), Checkout("m2"))


def shared(home: Path, name: str = "todo", *actions: dict[str, object]) -> None:
    stores_of(home).open_extension(name).commit(read_actions(actions or [put("n", 3), EVENT], extension=name), schema=1)


def shown(home: Path, *words: str) -> dict[str, object]:
    done = run(home, "state", *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def error_of(home: Path, *words: str, status: int = 1) -> str:
    done = run(home, "state", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


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


def test_room_that_cannot_be_given_back_is_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branched(home)
    monkeypatch.setenv("EXTHOST_HOME", str(home))
    monkeypatch.setattr(SqliteSessionStore, "_give_back", lambda _: "the disk is full")
    done = CliRunner().invoke(exthost, ["state", "compact", "s1"])
    assert (done.exit_code, done.stderr) == (0, "warning: the disk is full\n")
    done = CliRunner().invoke(exthost, ["state", "compact", "s1", "--json"])
    assert json.loads(done.stdout)["problem"] == "the disk is full"


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


def test_export_has_every_batch_of_every_branch_in_the_order_of_rows(home: Path) -> None:
    branched(home)
    done = run(home, "state", "export", "s1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["row"] for each in lines] == list(range(1, 9))
    assert [(each["entry_id"], each["after"]) for each in lines if each["type"] == "position"] == [
        ("m1", ""), ("m2", "m1"), ("m3", "m1"),
    ]  # fmt: skip
    batches = [each for each in lines if each["type"] == "batch"]
    assert [(each["position"], each["extension"], each["revision"]) for each in batches] == [
        ("", "todo", 1), ("m1", "todo", 2), ("m2", "todo", 3), ("m2", "other", 1), ("m3", "todo", 3),
    ]  # fmt: skip
    assert batches[1]["entries"] == [
        {"op": "set", "key": "k", "value": "one"},
        {"op": "event", "event_id": "e1", "custom_type": "done", "payload": {"n": 1}},
    ]
    assert (batches[1]["schema"], batches[1]["sequence"]) == (2, 7)
    assert shown(home, "export", "s1") == {"name": "s1", "kind": "session", "selected": "m2", "lines": lines}


def test_export_of_what_an_extension_shares(home: Path) -> None:
    shared(home)
    value = shown(home, "export", "todo", "--extension")
    assert (value["kind"], value["selected"]) == ("extension", None)
    assert value["lines"] == [
        {"type": "head", "extension": "todo", "schema": 1, "revision": 1},
        {"type": "value", "key": "n", "value": 3, "revision": 1},
        {"type": "event", "event_id": "e1", "custom_type": "done", "sequence": 0, "payload": {"n": 1}},
    ]


def test_an_open_session_is_shown_and_exported_but_not_compacted(home: Path) -> None:
    with opened(home) as state:
        write(state, *(commit(put("k", number)) for number in range(20)))
        assert shown(home, "show", "s1")["extensions"][0]["keys"][0]["value"] == 19
        assert len(run(home, "state", "export", "s1").stdout.splitlines()) == 20
        said = error_of(home, "compact", "s1")
        assert "session 's1' is open in process" in said
        assert "close it there first" in said
        write(state, commit(put("k", "still ours")))
    value = shown(home, "compact", "s1")
    assert (value["name"], value["batches_before"], value["batches_after"], value["problem"]) == ("s1", 21, 1, None)
    assert value["bytes_after"] < value["bytes_before"]
    assert shown(home, "show", "s1")["extensions"][0]["keys"][0]["value"] == "still ours"
    assert run(home, "state", "compact", "s1").stdout.startswith("1 batches, ")
    assert "1 batches, " in run(home, "state", "compact", "s1").stdout


def test_what_is_not_there_is_an_error_and_is_not_made(home: Path) -> None:
    assert "has stored anything in" in error_of(home, "show", "s1")
    branched(home)
    shared(home, "counter")
    for words in (("show",), ("export",), ("compact",)):
        assert "did you mean 'counter'?" in error_of(home, *words, "countr")
    assert "no extension 's1' has stored anything" in error_of(home, "export", "s1", "--extension")
    assert "exthost state list" in error_of(home, "show", "qqqq")
    assert "nothing to compact" in error_of(home, "compact", "counter")
    assert {each.name for each in stores_of(home).sessions()} == {"s1"}


def test_a_damaged_session_is_left_where_it_is_by_a_look_and_one_kept_aside_is_named(home: Path) -> None:
    branched(home)
    path = home / "state/sessions/s1.db"
    path.write_bytes(path.read_bytes()[:5000])
    for word in ("show", "export"):
        assert str(path) in error_of(home, word, "s1")
        assert path.exists()
    kept = path.with_name("s1.damaged-1.db")
    path.rename(kept)
    said = error_of(home, "show", "s1")
    assert f"is kept as {kept}" in said
    assert ".recover" in said
    assert "damaged, and kept aside" in run(home, "state", "list").stdout


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
