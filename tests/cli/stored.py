"""Something that extensions have stored, for tests of `exthost state`; and the command on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.running import run

from trio_exthost.state import Advance, Checkout, Commit, SessionState, read_actions
from trio_exthost.state.sqlite import SqliteStores


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
