"""`exthost state export` and `compact`; and what is said where there is nothing, or it is damaged."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from cli.running import run
from cli.stored import branched, commit, error_of, opened, put, shared, shown, stores_of, write
from click.testing import CliRunner

from trio_exthost.cli.group import exthost
from trio_exthost.state.sqlite_session import SqliteSessionStore


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
        said = error_of(home, word, "s1")
        assert str(path) in said.replace(" ", "")
        assert "it was left as it is; restore a copy" in said
        assert path.exists()
    kept = path.with_name("s1.damaged-1.db")
    path.rename(kept)
    said = error_of(home, "show", "s1")
    assert f"is kept as {kept}" in said
    assert ".recover" in said
    assert "damaged, and kept aside" in run(home, "state", "list").stdout


def test_a_row_that_was_altered_and_a_file_of_a_newer_version_are_named_with_the_way_out(home: Path) -> None:
    branched(home)
    path = home / "state/sessions/s1.db"
    change(path, "UPDATE batches SET body = x'7b7d' WHERE row = (SELECT min(row) FROM batches)")
    for word in ("show", "export"):
        said = error_of(home, word, "s1")
        assert "was altered" in said
        assert "it was left as it is; restore a copy" in said
    change(path, "PRAGMA user_version=99")
    for word in ("show", "export", "compact"):
        said = error_of(home, word, "s1")
        assert said.count("s1.db") == 1
        assert "use the newer version; the file was left as it is" in said


def change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_room_that_cannot_be_given_back_is_a_warning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branched(home)
    monkeypatch.setenv("EXTHOST_HOME", str(home))
    monkeypatch.setattr(SqliteSessionStore, "_give_back", lambda _: "the disk is full")
    done = CliRunner().invoke(exthost, ["state", "compact", "s1"])
    assert (done.exit_code, done.stderr) == (0, "warning: the disk is full\n")
    done = CliRunner().invoke(exthost, ["state", "compact", "s1", "--json"])
    assert json.loads(done.stdout)["problem"] == "the disk is full"
