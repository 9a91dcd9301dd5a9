"""An extension spoken to over its pipes, line by line, without a host; each wait is bounded."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

EXTENSIONS = Path(__file__).parents[2] / "examples" / "extensions"
PATIENCE_SECONDS = 20
"""After this a test fails; a healthy extension answers in milliseconds."""


def manifest_argv(name: str) -> list[str]:
    """Return what the extension's manifest says to run; the Python is the one that runs the tests."""
    manifest = json.loads((EXTENSIONS / name / "extension.json").read_text(encoding="utf-8"))
    program = sys.executable if manifest["exec"] == "python3" else manifest["exec"]
    if not program.startswith("./") and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return [program, *manifest.get("args", [])]


def encode(frame: Any) -> bytes:
    """Return a frame as most hosts write it: compact, and UTF-8 rather than escapes."""
    return json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode()


def refuse_constant(text: str) -> None:
    """NaN and the infinities are no JSON."""
    raise ValueError(text)


class RawExtension:
    """A running extension. Its group is killed by `close`, whatever it did."""

    def __init__(self, argv: list[str], cwd: Path, stderr: Path) -> None:
        with stderr.open("wb") as log:
            self.process = subprocess.Popen(
                argv, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        self.stderr = stderr
        self.buffer = b""

    def send(self, *frames: Any, end: bytes = b"\n") -> None:
        """Write frames as compact JSON, and bytes as they are, each with a line end."""
        for frame in frames:
            self.write((frame if isinstance(frame, bytes) else encode(frame)) + end)

    def write(self, data: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            while data:
                assert selector.select(deadline - time.monotonic()), "it does not read its input"
                data = data[os.write(self.stdin, data) :]

    def receive(self) -> dict[str, Any]:
        """Return the next frame, which must be strict JSON in UTF-8 on one line."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdout, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                assert selector.select(deadline - time.monotonic()), f"no frame came; log: {self.log()}"
                data = os.read(self.stdout, 65536)
                assert data, f"it ended; log: {self.log()}"
                self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        frame = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
        assert isinstance(frame, dict)
        return frame

    def ask(self, frame: Any, end: bytes = b"\n") -> dict[str, Any]:
        """Send a frame and return the next one that comes."""
        self.send(frame, end=end)
        return self.receive()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> tuple[int, list[bytes]]:
        """Return the exit status and the lines that were still to be read."""
        status = self.process.wait(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        return status, (self.buffer + self.process.stdout.read()).splitlines()

    def log(self) -> str:
        return self.stderr.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        """Kill its group, unless its leader is already reaped, and release the pipes."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
