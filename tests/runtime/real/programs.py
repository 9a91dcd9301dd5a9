"""Real extensions for tests: programs in files, started by a real host, and a look at what they leave behind.

`GUEST` is a small library that each program imports; it writes down the ids of its processes, so that afterwards a test can
ask which still live. `GOOD` is the neighbour that must keep answering whatever the others do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from trio_exthost import Deadlines, Host, HostClient, HostConfig, Limits, Session, open_host

PATIENCE_S = 60
"""When a test is stuck, not slow."""
SLACK_S = 1.0
"""What leaving may take over its bound, on a busy machine."""
QUICK = Deadlines(ready_cap_s=30, stop_grace_s=0.3, term_grace_s=0.2)
"""Patient with starts, which a busy machine delays; impatient with those who do not end."""

GUEST = '''
import json, os, signal, subprocess, sys, time

def remember(pid):
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{pid}\\n")

def start(*argv, **options):
    """A process of its own that holds our stdout and stderr open."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **options)
    remember(child.pid)
    return child

def put(data):
    data = memoryview(data)
    while data:
        data = data[os.write(1, data):]

def send(**frame):
    put(json.dumps(frame).encode() + b"\\n")

def greet(*, events=(), intercept=(), tools=(), commands=(), capabilities=(), ready=True):
    send(type="hello", name="guest", capabilities=list(capabilities))
    for name in tools:
        send(type="register_tool", name=name, description="", schema={"type": "object"})
    for name in commands:
        send(type="register_command", name=name, description="")
    if events or intercept:
        send(type="subscribe", events=list(events), intercept=list(intercept))
    if ready:
        send(type="ready")

def frames(*types):
    """Frames of these types (all, if none is named) until shutdown or the end of stdin."""
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        if frame["type"] == "shutdown":
            return
        if not types or frame["type"] in types:
            yield frame

def result(id, text):
    send(type="tool_result", id=id, content=[{"type": "text", "text": text}])

def serve(on_call=lambda frame: result(frame["id"], "ok"), **registrations):
    greet(**registrations)
    for frame in frames("tool_call"):
        on_call(frame)

def wait_for(name):
    """Until the test, or another program, has made this file beside our directory."""
    while not os.path.exists(os.path.join("..", name)):
        time.sleep(0.005)

def hang():
    while True:
        time.sleep(1000)

remember(os.getpid())
'''

GOOD = """
ticks = []
greet(events=["tick"], tools=["echo"], commands=["ticks"])
for frame in frames():
    if frame["type"] == "event":
        ticks.append(frame["n"])
    elif frame["type"] == "tool_call":
        result(frame["id"], frame["args"]["text"])
    elif frame["type"] == "command_invoked":
        send(type="command_response", id=frame["id"], action="display", display=json.dumps(ticks))
        ticks = []
"""


class Place:
    """A directory with extensions; everything the host keeps is in it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pids = path / "pids"
        self.pids.touch()
        self.directories: list[Path] = []

    def add(self, name: str, source: str, *, root: str = "", **section: Any) -> Path:
        """A program; `section` is its manifest's `exthost`. One under a `root` is not named in the configuration."""
        directory = self.path / root / name
        directory.mkdir(parents=True)
        manifest = {"name": name, "exec": sys.executable, "args": ["main.py"], "exthost": section}
        (directory / "extension.json").write_text(json.dumps(manifest))
        (directory / "guest.py").write_text(GUEST)
        (directory / "main.py").write_text(f"from guest import *\n{source}\n")
        if not root:
            self.directories.append(directory)
        return directory

    def signal(self, name: str) -> None:
        """Let go who waits for this file (`wait_for`)."""
        (self.path / name).touch()

    def config(self, *, deadlines: Deadlines = QUICK, limits: Limits | None = None, **more: Any) -> HostConfig:
        return HostConfig(
            deadlines=deadlines,
            limits=limits or Limits(),
            data_dir=self.path / "data",
            extensions=more.pop("extensions", self.directories),
            user_roots=(),
            env={"PIDS": str(self.pids)},
            **more,
        )

    @property
    def started(self) -> list[int]:
        """Every process that any program has told of."""
        return [int(line) for line in self.pids.read_text().split()]

    def alive(self) -> list[str]:
        """Those that still run, or that we have not reaped, as `ps` shows them."""
        started = ",".join(map(str, self.started))
        if not started:
            return []
        command = ["ps", "-o", "pid=,ppid=,stat=,args=", "-p", started]
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
        # An orphan is for init to reap; only a zombie of our own is our fault.
        return [line for line in lines if "Z" not in line.split()[2] or int(line.split()[1]) == os.getpid()]

    def wait_gone(self, seconds: float = PATIENCE_S) -> None:
        """Return once none lives; fail when `seconds` have passed."""
        until = time.monotonic() + seconds
        while left := self.alive():
            assert time.monotonic() < until, left
            time.sleep(0.02)


def descriptors() -> dict[int, tuple[int, int]]:
    """Our open descriptors and what they are, without the one that lists them."""
    found = {}
    for path in list(Path("/dev/fd").iterdir()):
        with suppress(OSError):
            about = os.fstat(int(path.name))
            found[int(path.name)] = (about.st_dev, about.st_ino)
    return found


@contextmanager
def nothing_left(place: Place, bound_s: float) -> Iterator[Callable[[], None]]:
    """Fails if what is inside leaves a process, a descriptor or a temporary file, or goes on for too long after `leave()`."""
    temporary = place.path / "temporary"
    temporary.mkdir()
    old, tempfile.tempdir = tempfile.tempdir, str(temporary)
    before = descriptors()
    leaving_at: list[float] = []
    try:
        yield lambda: leaving_at.append(time.monotonic())
    finally:
        tempfile.tempdir = old
    if leaving_at:
        assert time.monotonic() - leaving_at[0] < bound_s + SLACK_S
    after = descriptors()
    assert after == before
    assert list(temporary.iterdir()) == []
    assert place.alive() == []


@asynccontextmanager
async def running(
    place: Place, *, client: HostClient | None = None, tools: Sequence[Any] = (), load: bool = True, **config: Any
) -> AsyncIterator[tuple[Host, Session]]:
    """A host and a session over all extensions of a place, which have been loaded; afterwards nothing may be left."""
    settings = place.config(**config)
    with nothing_left(place, settings.deadlines.stop_total_s) as leave:
        with trio.fail_after(PATIENCE_S):
            async with open_host(settings) as host:
                async with host.open_session("s", cwd=place.path, client=client, tools=tools) as session:
                    if load:
                        await session.load_all()
                    try:
                        yield host, session
                    finally:
                        leave()


async def assert_good_answers(session: Session) -> None:
    """The neighbour is well."""
    with trio.fail_after(PATIENCE_S):
        answer = await session.call_tool("echo", {"text": "still here"})
    assert text_of(answer) == "still here"


def text_of(answer: Any) -> str:
    """The text of a tool's result."""
    return "".join(block.text for block in answer.content)


def row_of(session: Session, name: str) -> Any:
    """The row of an extension."""
    (row,) = [row for row in session.extensions() if row.name == name]
    return row


async def until_state(session: Session, name: str, *states: str) -> Any:
    """Wait until an extension is in one of these states; its row."""
    with trio.fail_after(PATIENCE_S):
        while not any(row.name == name and row.state in states for row in session.extensions()):
            await session.wait_changed(session.version)
    return row_of(session, name)


async def emit_in_step(session: Session, first: int, last: int, **body: Any) -> list[int]:
    """Emit `tick` with n from `first` to `last`, as fast as GOOD reads; what GOOD has seen of it."""
    seen: list[int] = []
    for n in range(first, last):
        session.emit("tick", {"n": n, **body})
        if n % 200 == 199 or n == last - 1:
            seen += json.loads((await session.run_command("ticks")).text)
    return seen


def codes_of(host: Host, name: str) -> list[str]:
    """The codes of the diagnostics of an extension, in order."""
    return [each.code.value for each in host.diagnostics.of(name)]


def run_alone(scenario: Callable[[Place], Any], place: Place) -> dict[str, Any]:
    """Run an async function of a test module in a process of its own; what it returns, and `grown_mib`, its memory."""
    done = subprocess.run(
        alone_argv(scenario, place), stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def alone_argv(scenario: Callable[[Place], Any], place: Place) -> list[str]:
    """How to start such a process; its last line of stdout is the outcome as JSON."""
    here = Path(__file__).parent
    program = (
        f"import sys; sys.path[:0] = {[str(here), str(here.parents[1])]!r}\n"
        f"import {scenario.__module__} as module\n"
        "from runtime.real.programs import main\n"
        f"main(module.{scenario.__name__}, {str(place.path)!r})"
    )
    return [sys.executable, "-W", "error", "-c", program]


def main(scenario: Callable[[Place], Any], path: str) -> None:
    """What such a process does."""
    import resource

    unit = 1024 if sys.platform == "linux" else 1
    place = Place(Path(path))
    place.directories = sorted(each.parent for each in Path(path).glob("*/extension.json"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = trio.run(scenario, place) or {}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({**result, "grown_mib": grown * unit / 2**20}))
