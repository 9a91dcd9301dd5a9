"""Extensions started raw, and stopped whatever the test did."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from raw_extension import EXTENSIONS, RawExtension, manifest_argv

Start = Callable[..., RawExtension]


def greet(extension: RawExtension) -> RawExtension:
    """Go through the handshake."""
    assert extension.receive()["type"] == "hello"
    extension.send({"type": "hello_ack", "protocol_version": 1, "zot_version": "0", "cwd": "/"})
    while extension.receive()["type"] != "ready":
        pass
    return extension


@pytest.fixture(scope="session")
def weather_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `weather`, with the compiler's checks of memory and arithmetic if it has them."""
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    program = tmp_path_factory.mktemp("weather") / "weather"
    command = ["cc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(program)]
    source = str(EXTENSIONS / "weather" / "weather.c")
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    if subprocess.run([*command, *checks, source], capture_output=True, check=False).returncode != 0:
        subprocess.run([*command, source], check=True)
    return program


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Run an extension by name, as its manifest says or with another command line. The caller closes it."""

    def run_one(name: str, argv: list[str] | None = None) -> RawExtension:
        if argv is None and name == "weather":
            argv = [str(request.getfixturevalue("weather_program"))]
        return RawExtension(argv or manifest_argv(name), EXTENSIONS / name, tmp_path_factory.mktemp(name) / "log")

    return run_one


@pytest.fixture
def start(run: Start) -> Iterator[Start]:
    """Start an extension that has not been greeted yet, and stop it after the test."""
    started: list[RawExtension] = []

    def start_one(name: str, argv: list[str] | None = None) -> RawExtension:
        started.append(run(name, argv))
        return started[-1]

    yield start_one
    for extension in started:
        extension.close()


@pytest.fixture
def ready(start: Start) -> Start:
    """Start an extension and go through the handshake with it, up to its `ready`."""
    return lambda name, argv=None: greet(start(name, argv))


@pytest.fixture(scope="module")
def shared(run: Start) -> Iterator[Callable[[str], RawExtension]]:
    """Like `ready`, but one process for all tests of the module; for questions whose answer depends on nothing before."""
    running: dict[str, RawExtension] = {}

    def get(name: str) -> RawExtension:
        if name in running and running[name].process.poll() is not None:
            running.pop(name).close()
        if name not in running:
            running[name] = run(name)
            greet(running[name])
        return running[name]

    yield get
    for extension in running.values():
        extension.close()
