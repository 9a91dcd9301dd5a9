"""Where stored state lies, and which file a NAME on the command line means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from trio_exthost.config import HostConfig
from trio_exthost.state.sqlite import SqliteStores, file_stem
from trio_exthost.state.sqlite_file import recovery
from trio_exthost.state.store import StoredName

SESSION, EXTENSION = "session", "extension"


@attrs.frozen(kw_only=True)
class Stored:
    """What a NAME means."""

    kind: str
    """`session`, or `extension` for what an extension shares."""
    about: StoredName
    """Its file; can be read as far as the list of names knows."""
    other: bool
    """Whether there is also one of the other kind under this name."""


def stores_here() -> SqliteStores:
    """The stores of a host whose data directory is the default one."""
    return SqliteStores(HostConfig().data_dir / "state")


def find(stores: SqliteStores, name: str, *, is_extension: bool) -> Stored:
    """What is stored under a name: a session, or what an extension shares where there is no such session.

    Args:
      stores: Where to look.
      name: The session's id, or the extension's name.
      is_extension: Look for an extension only.

    Raises:
      click.ClickException: There is nothing of this name, or it cannot be read; says what there is.
      StoreFailed: The directory cannot be listed.
    """
    found = {SESSION: stores.sessions(), EXTENSION: stores.extensions()}
    kinds = [EXTENSION] if is_extension else [SESSION, EXTENSION]
    usable = {kind: [each for each in rows if each.name == name and not each.problem] for kind, rows in found.items()}
    for kind in kinds:
        if usable[kind]:
            return Stored(kind=kind, about=usable[kind][0], other=all(usable.values()))
        _check_no_problem(name, found[kind])
    names = [each.name for kind in kinds for each in found[kind]]
    raise _missing(stores, name, names, is_extension=is_extension)


def _check_no_problem(name: str, rows: Sequence[StoredName]) -> None:
    """Raise, if there is a file for this name which cannot be read, or which was damaged and is kept aside."""
    stem = file_stem(name)
    broken = [each for each in rows if each.problem]
    for each in broken:
        if each.name in (name, stem):
            raise click.ClickException(f"{each.path}: {each.problem}{_way_out(each)}")
    kept = [each for each in broken if each.name.startswith(f"{stem}.damaged-") or each.name == name]
    if kept:
        path = kept[-1].path
        raise click.ClickException(
            f"the state of {name!r} was damaged and is kept as {path}; nothing was put in its place\n"
            f"restore a copy, or try: {recovery(Path(path))}"
        )


def _way_out(broken: StoredName) -> str:
    """What to do about a damaged file; what else is wrong says so itself."""
    if not broken.problem.startswith("damaged"):
        return ""
    return f"\nit was left as it is; restore a copy, or try: {recovery(Path(broken.path))}"


def _missing(stores: SqliteStores, name: str, names: list[str], *, is_extension: bool) -> click.ClickException:
    what = "extension" if is_extension else "session or extension"
    if not names:
        return click.ClickException(f"no {what} has stored anything in {stores.directory}")
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`exthost state list` says what there is"
    return click.ClickException(f"no {what} {name!r} has stored anything in {stores.directory}\n{hint}")


def size_text(size: int) -> str:
    """A size as a person reads it."""
    return f"{size} bytes" if size < 1024 else f"{size / 1024:,.1f} KiB"
