"""What the author or user of an extension can do about what went wrong with it, where the message does not say so itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code

if TYPE_CHECKING:
    from trio_exthost.packages import Candidate, Manifest

HINTS: Mapping[str, str] = {
    Code.STRAY_OUTPUT: "stdout is for frames, one JSON object a line; print everything else to stderr",
    Code.FRAME_INVALID: "correct that frame; the host left it out",
    Code.FRAME_UNKNOWN: "the host ignores such a frame; is its type misspelt?",
    Code.FRAME_ILLEGAL: "hello comes first and once; then registrations, then ready",
    Code.FRAME_TOO_LONG: "send less in one frame, or end each frame with a line feed",
    Code.AUTO_READY: 'send {"type": "ready"} after the last registration',
    Code.REPLY_UNKNOWN: "answer each request once, with the id it came with",
    Code.OUTPUT_CLOSED: "keep stdout open as long as the program runs",
    Code.INPUT_CLOSED: "read stdin until it ends, and exit then",
    Code.UNRESPONSIVE: "read stdin all the time",
    Code.KILLED: "exit when stdin ends, or when told to shut down",
}
"""By the code of a diagnostic."""

_NOT_STARTED: Mapping[str, str] = {
    "broken_link": "correct the link, or remove it",
    "not_a_directory": "name the directory that holds extension.json",
    "unreadable": "let this user read it",
    "disabled": 'take "enabled": false out of extension.json',
    "shadowed": "the first that is found counts: remove one of the two, or give it another name",
    "digest_failed": "remove what cannot be read from its directory",
}
"""By the code of a candidate; where there is none, its reason says the way out."""


def way_to_start(candidate: Candidate) -> str:
    """What to do about an extension that is not to be started; empty where its reason says so, or where nothing is wrong."""
    if candidate.code == "manifest_invalid":
        name = json.dumps(candidate.directory.name)
        return f'correct extension.json; a small one is {{"name": {name}, "exec": "./main"}}'
    return _NOT_STARTED.get(candidate.code, "")


def next_step(code: str | None, stage: str, directory: Path, manifest: Manifest) -> str:
    """The next step after a failure.

    Args:
      code: Of the failure.
      stage: Of its life; a `spawn` that fails says the way out itself.
      directory: Where the extension is.
      manifest: Its manifest.
    """
    if stage == "spawn":
        return ""
    if code is not None and code in HINTS:
        return HINTS[code]
    if stage == "running":
        return 'its log has all it wrote; a reload, or "restart": "on_crash" in its manifest, starts it again'
    # It does start: whoever runs it can talk to it, or read its traceback.
    command = shlex.join([manifest.exec, *manifest.args])
    return f"to see more, run it by hand: cd {shlex.quote(str(directory))} && {command}"
