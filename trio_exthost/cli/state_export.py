"""`exthost state export NAME`: everything that is stored under a name, as it is."""

from __future__ import annotations

import contextlib
import heapq
import json
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from trio_exthost.cli.group import HELP_OPTIONS, Command
from trio_exthost.cli.state_places import SESSION, find, stores_here
from trio_exthost.cli.text import write_json
from trio_exthost.state.entries import StoredBatch, decode_batch
from trio_exthost.state.projection import Projection
from trio_exthost.state.sqlite import SqliteStores
from trio_exthost.state.sqlite_session import SqliteSessionStore
from trio_exthost.state.tree import Tree

EPILOG = """
Examples:
  exthost state export my-session > my-session.jsonl
  exthost state export my-extension --extension --json

Nothing is masked or cut. One JSON object a line, in the order in which it
came to be; `type` says what it is:
  position   row, entry_id, after (the entry id before it; empty: the beginning)
  batch      row, position (an entry id), extension, schema, sequence,
             revision, entries: objects whose `op` is set (key, value, by),
             delete (key), event (event_id, custom_type, payload), context
             (context_id, placement, content) or migration (from_schema,
             to_schema)
Of what an extension shares:
  head       extension, schema, revision
  value      key, value, revision
  event      event_id, custom_type, sequence, payload

--json prints one object: {name, kind, selected, lines}; kind is session or
extension, selected the selected entry id (null of an extension), lines the
same objects in a list.

Exit status: 0 written, 1 it cannot be read, 2 wrong call.
"""


@click.command("export", cls=Command, epilog=EPILOG, context_settings=HELP_OPTIONS)
@click.argument("name")
@click.option("--extension", "is_extension", is_flag=True, help="NAME is an extension: what it shares.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def export_command(name: str, is_extension: bool, as_json: bool) -> None:
    """Write everything that is stored in the session NAME, or shared by the extension NAME, to stdout."""
    stores = stores_here()
    kind = find(stores, name, is_extension=is_extension).kind
    if kind == SESSION:
        with contextlib.closing(stores.look_into_session(name)) as store:
            tree = store.load_tree().tree
            _write(name, kind, tree.selected.name, session_lines(store, tree), as_json=as_json)
    else:
        _write(name, kind, None, shared_lines(stores, name), as_json=as_json)


def _write(name: str, kind: str, selected: str | None, lines: Iterator[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        write_json({"name": name, "kind": kind, "selected": selected, "lines": list(lines)})
        return
    for each in lines:
        # ASCII: no text in it reaches a terminal as anything else.
        sys.stdout.write(json.dumps(each, ensure_ascii=True, allow_nan=False) + "\n")


def session_lines(store: SqliteSessionStore, tree: Tree) -> Iterator[dict[str, Any]]:
    """Positions and batches of a session by row, up to the moment of the tree: a host may go on writing meanwhile."""
    names = {position.row: position.name for position in tree.positions.values()}
    positions = (
        (each.row, {"type": "position", "row": each.row, "entry_id": each.name, "after": each.parent.name})
        for each in sorted(tree.positions.values(), key=lambda each: each.row)
        if each.parent is not None
    )
    batches = ((each.row, _batch(each, names)) for each in store.load_all() if each.row < tree.next_row)
    return (line for _, line in heapq.merge(positions, batches, key=lambda each: each[0]))


def _batch(stored: StoredBatch, names: dict[int, str]) -> dict[str, Any]:
    batch = decode_batch(stored.body)
    words = msgspec.json.decode(stored.body)
    return {
        "type": "batch", "row": stored.row, "position": names[stored.position], "extension": batch.extension,
        "schema": batch.schema, "sequence": batch.sequence, "revision": batch.revision, "entries": words["entries"],
    }  # fmt: skip


def shared_lines(stores: SqliteStores, extension: str) -> Iterator[dict[str, Any]]:
    """What an extension shares, as it stands."""
    projection: Projection = stores.open_extension(extension).read()
    yield {
        "type": "head",
        "extension": extension,
        "schema": projection.schema,
        "revision": projection.revision,
    }
    for key, value in projection.values.items():
        yield {"type": "value", "key": key, "value": projection.get(key), "revision": value.revision}
    for event in projection.replay_events():
        yield {
            "type": "event", "event_id": event.event_id, "custom_type": event.custom_type,
            "sequence": event.sequence, "payload": event.payload,
        }  # fmt: skip
