"""`exthost state show NAME`: what stands on a branch of a session, or in what an extension shares, for a person."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs
import click

from trio_exthost.cli.group import HELP_OPTIONS, Command
from trio_exthost.cli.state_places import SESSION, Stored, find, size_text, stores_here
from trio_exthost.cli.state_tree import position_lines, position_name, positions_json
from trio_exthost.cli.text import Output, write_json
from trio_exthost.policy.shown import MASKED, Keeper, cut, json_text
from trio_exthost.state.limits import DEFAULT_LIMITS
from trio_exthost.state.projection import Projection, replay
from trio_exthost.state.sqlite import SqliteStores
from trio_exthost.state.tree import Position, Tree, path_to

V = TypeVar("V")

MOST = 100
"""Keys, events and contexts of each extension that are printed; --json has all."""
_KEY = 80
"""Characters of a name that are printed."""

EPILOG = """
Examples:
  exthost state show my-session
  exthost state show my-session --branch message-12
  exthost state show my-extension --extension

Values are cut, and what looks like a secret is masked, also with --json;
`exthost state export` has all of it.

--json prints one object:
  name, kind   kind is session, or extension for what an extension shares
  path         its file; size_bytes: of it
  branch       the entry id whose branch is shown ("": the beginning);
  selected     the one that is selected; both null of an extension
  positions    [{entry_id, after}], in the order in which they were made
  extensions   [{extension, schema, revision, usage, keys, events, contexts}]
    usage      {live_bytes, limit_bytes, values, value_bytes, events,
               event_bytes, contexts, context_bytes}
    keys       [{key, value, revision, whole}]
    events     [{event_id, custom_type, sequence, value, whole}], oldest first
    contexts   [{context_id, placement, value, whole}]
    whole      whether nothing of value was cut or masked

Exit status: 0 shown, 1 it cannot be read, 2 wrong call.
"""


@click.command("show", cls=Command, epilog=EPILOG, context_settings=HELP_OPTIONS)
@click.argument("name")
@click.option("--branch", metavar="ENTRY", help='Another position than the selected one; "" is the beginning.')
@click.option("--extension", "is_extension", is_flag=True, help="NAME is an extension: what it shares.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def show_command(name: str, branch: str | None, is_extension: bool, as_json: bool) -> None:
    """Show what extensions have stored in the session NAME, or what the extension NAME shares between sessions.

    Per extension its keys, events and model contexts on the selected branch; then all positions of the transcript.
    """
    stores = stores_here()
    stored = find(stores, name, is_extension=is_extension)
    if stored.kind == SESSION:
        view = _session(stores, stored, branch)
    elif branch is not None:
        raise click.ClickException(f"{name!r} is an extension; what it shares has no branches")
    else:
        view = _View(stored=stored, projections=(stores.open_extension(name).read(),))
    if as_json:
        write_json(_json(view))
        return
    if stored.other and not is_extension:
        hint = f"the extension {name} shares something, too: exthost state show {name} --extension"
        Output(stderr=True).line(hint, first="note: ", style="dim")
    _tell(view)


@attrs.frozen(kw_only=True)
class _View:
    """What is shown; without a tree and a position where an extension shares it."""

    stored: Stored
    projections: tuple[Projection, ...]
    tree: Tree | None = None
    position: Position | None = None


def _session(stores: SqliteStores, stored: Stored, branch: str | None) -> _View:
    name = stored.about.name
    with contextlib.closing(stores.look_into_session(name)) as store:
        tree = store.load_tree().tree
        position = tree.selected if branch is None else tree.find(branch)
        found = replay(each.body for each in store.load_branch(path_to(position)))
    projections = tuple(found[each] for each in sorted(found))
    return _View(stored=stored, projections=projections, tree=tree, position=position)


# --- as JSON ---


def _json(view: _View) -> dict[str, Any]:
    about = view.stored.about
    return {
        "name": about.name,
        "kind": view.stored.kind,
        "path": about.path,
        "size_bytes": about.size_bytes,
        "branch": view.position.name if view.position is not None else None,
        "selected": view.tree.selected.name if view.tree is not None else None,
        "positions": positions_json(view.tree) if view.tree is not None else [],
        "extensions": [_extension_json(each) for each in view.projections],
    }


def _extension_json(projection: Projection) -> dict[str, Any]:
    used = projection.usage
    return {
        "extension": projection.extension,
        "schema": projection.schema,
        "revision": projection.revision,
        "usage": {"live_bytes": used.live_bytes, "limit_bytes": DEFAULT_LIMITS.live_bytes, **attrs.asdict(used)},
        "keys": [
            {"key": key, "revision": value.revision, **_masked(key, projection.get(key))}
            for key, value in projection.values.items()
        ],
        "events": [
            {"event_id": each.event_id, "custom_type": each.custom_type, "sequence": each.sequence}
            | _masked(each.custom_type, each.payload)
            for each in projection.replay_events()
        ],
        "contexts": [
            {"context_id": each.context_id, "placement": each.placement.value, **_masked(each.context_id, each.content)}
            for each in projection.contexts.values()
        ],
    }


def _masked(name: str, value: Any) -> dict[str, Any]:
    """A value as it may be shown: hidden wholly where its name says that it is a secret."""
    keeper = Keeper()
    if keeper.hides(name):
        return {"value": MASKED, "whole": False}
    shown = keeper.value(value)
    return {"value": shown, "whole": keeper.is_whole}


# --- for a person ---


def _tell(view: _View) -> None:
    out, about = Output(), view.stored.about
    out.line(f"{view.stored.kind} {about.name}  {size_text(about.size_bytes)}", style="bold")
    out.line(about.path, first="  ", style="dim")
    if view.position is not None:
        out.line(f"on the branch of {position_name(view.position)}", first="  ")
    if not view.projections:
        out.line("nothing is stored here", first="  ")
    for each in view.projections:
        _tell_extension(out, each)
    if view.tree is not None and len(view.tree.positions) > 1:
        out.line("positions", style="bold")
        for line in position_lines(view.tree, shown=view.position):
            out.line(line.text, first=line.first, style="green" if line.is_selected else "")


def _tell_extension(out: Output, projection: Projection) -> None:
    used = projection.usage
    out.line(f"{projection.extension}  schema {projection.schema}, revision {projection.revision}", style="bold")
    out.line(f"{used.live_bytes} bytes of {DEFAULT_LIMITS.live_bytes}: {used.explain()}", first="  ")
    _tell_some(
        out,
        "keys",
        [(key, f"revision {value.revision}", key, projection.get(key)) for key, value in _first(projection.values)],
        len(projection.values),
    )
    _tell_some(
        out,
        "events",
        [
            (each.event_id, each.custom_type, each.custom_type, each.payload)
            for _, each in list(projection.events.items())[-MOST:]
        ],
        len(projection.events),
    )
    _tell_some(
        out,
        "model contexts",
        [(name, each.placement.value, name, each.content) for name, each in _first(projection.contexts)],
        len(projection.contexts),
    )


def _first(table: Mapping[str, V]) -> list[tuple[str, V]]:
    return list(itertools.islice(table.items(), MOST))


def _tell_some(out: Output, title: str, rows: Sequence[tuple[str, str, str, Any]], count: int) -> None:
    """Lines of a title: a name, a word about it, the name by which a value may be hidden, the value."""
    if not rows:
        return
    which = "" if len(rows) == count else f" ({'the last ' if title == 'events' else ''}{len(rows)} of {count})"
    out.line(f"{title}{which}", first="  ")
    for name, word, secret_name, value in rows:
        shown = json_text(_masked(secret_name, value)["value"])
        out.line(f"{cut(name, _KEY)} ({word}) {shown}", first="    ")
