"""Any bytes as an `extension.json`, which may come with a project that nobody trusts yet.

What must hold: `ManifestError` and nothing else, with a message that is short and can be shown; what is taken can be written
into a log's name and handed to a program; written again from what was read, it reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
from fuzz.hostile import file_seeds, file_text, write

from trio_exthost.errors import ManifestError
from trio_exthost.packages import Manifest, parse_manifest

LEAST = {"name": "guard", "exec": "./run"}
WHOLE: dict[str, Any] = {
    **LEAST,
    "version": "1.0",
    "args": ["-v", "x"],
    "language": "python",
    "description": "Guards.",
    "enabled": True,
    "skills": ["skills/one", "SKILL.md"],
    "permissions": {},
    "exthost": {
        "dialect": "effects", "scope": "run", "priority": 5, "permissions": ["tools.register", "secrets.read:key"],
        "optional_permissions": ["session.write"], "overrides": ["bash"], "state_schema": 2, "startup_timeout_s": 3,
        "tool_timeout_s": 0.5, "env": {"A": "b"}, "env_from": ["HOME"], "on_failure": "block", "restart": "on_crash",
        "adapter": "zot", "watch_ignore": ["*.db"],
    },
}  # fmt: skip
WORDS = tuple(sorted({*WHOLE, *WHOLE["exthost"], "timeout", "nane", "tools.override", "guard", "request", "mcp"}))
DICTIONARY = tuple(map(write, WORDS))
MESSAGE = 4000
"""Characters of an error or a warning at most: a name may take 800 escaped, a key as much."""


def seeds() -> Iterator[bytes]:
    return file_seeds(LEAST, WHOLE, {**LEAST, "enabled": None}, {"name": "s", "skills": ["a"]}, [])


def text(data: bytes) -> bytes:
    return file_text(data, WHOLE, WORDS, [WHOLE["exthost"]], most=4)


def fuzz_one(data: bytes) -> None:
    content = text(data)
    try:
        manifest, warnings = parse_manifest(content)
    except ManifestError as exc:
        check_message(str(exc))
        return
    for each in warnings:
        check_message(each)
    check_usable(manifest)
    again, _ = parse_manifest(json.dumps(written_again(manifest)).encode())
    assert again == manifest


def check_message(message: str) -> None:
    message.encode()
    assert len(message) <= MESSAGE, f"a message of {len(message)} characters"
    assert message.isprintable(), f"a message that cannot be shown: {message!r}"


def check_usable(manifest: Manifest) -> None:
    assert manifest.name
    assert "/" not in manifest.name
    assert len(manifest.name.encode()) <= 200
    section = manifest.exthost
    for each in (manifest.exec, *manifest.args, *section.env, *section.env.values(), *section.env_from):
        assert "\0" not in each
        each.encode()


def written_again(manifest: Manifest) -> dict[str, Any]:
    fields = attrs.asdict(manifest, recurse=False)
    section = attrs.asdict(manifest.exthost, recurse=False)
    section["env"] = dict(section["env"])
    return {**fields, "exthost": {key: value for key, value in section.items() if value is not None}}
