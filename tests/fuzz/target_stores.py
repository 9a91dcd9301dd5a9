"""Any bytes in the files of durable state: of a session, of what an extension shares, their lock files and journals.

What must hold: what is read is the state as it was stored, or `StoreFailed` says what is wrong; a damaged file is kept whole,
and nothing is ever taken for an empty state.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz.choices import Choices
from fuzz.hostile import RAW
from fuzz.scratch import scratch

from trio_exthost.errors import StoreDamaged, StoreFailed
from trio_exthost.state import Advance, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores

DICTIONARY: tuple[bytes, ...] = (
    b"SQLite format 3\x00", b"CREATE TABLE ", b"batches", b"positions", b"head", b"state", b"events", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83",
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", b"99999999999999999999999999999999", b"                               \n",
)  # fmt: skip
KINDS = ("sessions", "extensions")
SUFFIXES = ("db", "lock", "db-wal", "db-journal", "db-shm", "db.new")


def _batch(number: int) -> Any:
    raw = [
        {"kind": "set_state", "key": f"key {number % 7}", "value": {"n": number, "text": "x" * (number * 7 % 300)}},
        {"kind": "append_custom_event", "event_id": f"event {number}", "custom_type": "tick", "payload": number},
    ]
    return read_actions(raw, extension="todo")


def _fill(stores: SqliteStores) -> None:
    state = SessionState(stores.open_session("todo"))
    for number in range(12):
        todo: list[Any] = [Commit(extension="todo", schema=1, actions=_batch(number), sequence=number)]
        todo += [Advance(f"entry {number}")] if number % 4 == 0 else []
        state.publish(state.write(todo))
        stores.open_extension("todo").commit(_batch(number), schema=1, sequence=number)
    state.close()


def read_session(stores: SqliteStores) -> Any:
    store = stores.open_session("todo")
    try:
        state = SessionState(store)
        return state.projections, list(state.tree.positions), list(state.history())
    finally:
        store.close()


def read_extension(stores: SqliteStores) -> Any:
    return stores.open_extension("todo").read()


READ = (read_session, read_extension)
_ROOT = scratch()
_WHOLE = SqliteStores(_ROOT / "whole")
_fill(_WHOLE)
EXPECTED = tuple(read(_WHOLE) for read in READ)
_FILES = {
    each.relative_to(_WHOLE.directory): each.read_bytes() for each in _WHOLE.directory.rglob("*") if each.is_file()
}


def seeds() -> Iterator[bytes]:
    for kind in range(len(KINDS)):
        for suffix in range(len(SUFFIXES)):
            for how in range(4):
                yield bytes([kind, suffix, how, 1, 200, 3]) + b"SQLite format 3\x00"
    yield b"\x00\x01\x00" + b"99999".ljust(31) + b"\n" + b"99999".ljust(31) + b"\n"


def altered(content: bytes, choices: Choices) -> bytes:
    """A file that was replaced, cut off, or written over in a few places."""
    match choices.below(4):
        case 0:
            return choices.rest()
        case 1:
            return content[: choices.below(len(content) + 1)]
        case 2:
            return content + choices.rest()
    for _ in range(1 + choices.below(4)):
        at = choices.below(len(content) + 1)
        new = choices.pick((choices.take(1), choices.take(16), bytes(64), choices.pick(RAW)[:100]))
        content = content[:at] + new + content[at + len(new) :]
    return content


def check_kept(kept: Path, altered: Path, content: bytes) -> None:
    assert kept.exists() or altered.suffix != ".db"
    if altered.suffix == ".db":
        assert kept.read_bytes() == content


def fuzz_one(data: bytes) -> None:
    choices = Choices(data)
    kind = choices.below(len(KINDS))
    directory = _ROOT / "one"
    shutil.rmtree(directory, ignore_errors=True)
    for name, text in _FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(text)
    path = directory / KINDS[kind] / f"todo.{choices.pick(SUFFIXES)}"
    content = altered(path.read_bytes() if path.exists() else b"", choices)
    path.write_bytes(content)
    stores = SqliteStores(directory)
    for _ in range(2):  # what was told once is told again: a damaged file never becomes an empty one
        try:
            found = READ[kind](stores)
        except StoreDamaged as exc:
            str(exc).encode()
            check_kept(Path(exc.kept), path, content)
        except StoreFailed as exc:
            str(exc).encode()
            check_kept(path, path, content)
        else:
            assert found == EXPECTED[kind], "another state than was stored"
    other = 1 - kind
    assert READ[other](stores) == EXPECTED[other]
    for each in (*stores.sessions(), *stores.extensions()):
        assert each.name
        (each.name + each.problem).encode()
