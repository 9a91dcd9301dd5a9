"""Extensions on disk, for the tests of this directory."""

from __future__ import annotations

import json
from pathlib import Path

from trio_exthost.packages import Manifest, parse_manifest


def manifest_of(**keys: object) -> Manifest:
    """A manifest with these keys over the least that is needed."""
    return parse_manifest(json.dumps({"name": "x", "exec": "./run", **keys}).encode())[0]


def make_extension(directory: Path, **keys: object) -> Path:
    """A directory with a manifest named after it, and a program."""
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text(json.dumps({"name": directory.name, "exec": "./run", **keys}))
    make_program(directory / "run", b"#!/bin/sh\n")
    return directory


def make_program(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path
