"""Any bytes as the trust store.

What must hold: what is not understood is told, counts as no trust, and is never overwritten; what is understood keeps every
decision when one is added.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from fuzz.hostile import file_seeds, file_text, write
from fuzz.scratch import scratch

from trio_exthost.errors import TrustError
from trio_exthost.packages import TrustStore

_FOLDER = scratch()
_FILE = _FOLDER / "trust.json"
_EXTENSION = _FOLDER / "x"
_ENTRY = {
    "path": str(_EXTENSION), "digest": "sha256:1", "decision": "trusted", "name": "x", "decided_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
_OTHER = {**_ENTRY, "path": "/y", "decision": "denied"}
WHOLE: dict[str, Any] = {"version": 1, "decisions": [_ENTRY, _OTHER]}
WORDS = ("version", "decisions", *_ENTRY, "trusted", "denied", str(_EXTENSION), "sha256:1")
DICTIONARY = tuple(map(write, WORDS))
_AT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def seeds() -> Iterator[bytes]:
    return file_seeds(WHOLE, {"version": 1, "decisions": []}, {"version": 2}, [])


def text(data: bytes) -> bytes:
    return file_text(data, WHOLE, WORDS, [_ENTRY, _OTHER], most=3)


def fuzz_one(data: bytes) -> None:
    content = text(data)
    _FILE.write_bytes(content)
    _FILE.chmod(0o600)
    store = TrustStore(_FILE)
    problem, before = store.problem, store.entries()
    if problem is not None:
        problem.encode()
        assert problem.isprintable(), f"a message that cannot be shown: {problem!r}"
        assert before == ()
        assert store.decision(_EXTENSION, "sha256:1") is None
        for act in (lambda: store.trust(_EXTENSION, "sha256:1", decided_at=_AT), lambda: store.forget(_EXTENSION)):
            try:
                act()
            except TrustError:
                continue
            raise AssertionError("what cannot be read was written over")
        assert _FILE.read_bytes() == content
        return
    new = store.trust(_EXTENSION, "sha256:new", name="x", decided_at=_AT)
    after = store.entries()
    assert after[-1] == new
    assert set(after) >= {each for each in before if each.path != str(_EXTENSION)}
    assert store.decision(_EXTENSION, "sha256:new") is True
    assert store.forget(_EXTENSION) == sum(each.path == str(_EXTENSION) for each in after)
