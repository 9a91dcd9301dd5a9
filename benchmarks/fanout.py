"""Fan-out and interception: this host beside a floor, measured in the same run, round by round in turn.

One event out to N echoing extensions and an echo back from all; the `emit` call alone; one question and its answer. The floor
is one blocking loop over epoll with one write a line: no host can be faster with this many pipes.

    python benchmarks/fanout.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import trio

from trio_exthost import HostClient, HostConfig, open_host

SIZES = (1, 8, 32, 100)
HERE = Path(__file__).parent
PYTHON_ECHO = """
import json, sys
put = lambda line: (sys.stdout.write(line + "\\n"), sys.stdout.flush())
put('{"type":"hello","name":"echo"}')
put('{"type":"subscribe","events":["turn_start"],"intercept":["tool_call"]}')
put('{"type":"ready"}')
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "event_intercept":
        put(json.dumps({"type": "event_intercept_response", "id": frame["id"]}))
    elif frame["type"] == "event" and "ping" in frame:
        put('{"type":"notify","level":"info","message":"pong"}')
    elif frame["type"] == "shutdown":
        break
"""


def build(folder: Path) -> tuple[list[str], str]:
    """The echo extension: in C where there is a compiler, else in Python, and which it is."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler:
        program = folder / "echo"
        subprocess.run([compiler, "-O2", "-o", program, HERE / "echo_extension.c"], check=True)
        return [str(program)], "C"
    (folder / "echo.py").write_text(PYTHON_ECHO)
    return [shutil.which("python3") or "python3", str(folder / "echo.py")], "Python"


class Floor:
    """One blocking loop over epoll."""

    def __init__(self, argv: list[str], n: int) -> None:
        self.children = [
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) for _ in range(n)
        ]
        self.epoll = select.epoll()
        for child in self.children:
            self.epoll.register(child.stdout.fileno(), select.EPOLLIN)
            lines = b""
            while lines.count(b"\n") < 3:
                lines += os.read(child.stdout.fileno(), 65536)

    def _wait(self, lines: int) -> None:
        while lines > 0:
            for fd, _ in self.epoll.poll():
                lines -= os.read(fd, 65536).count(b"\n")

    def round(self) -> float:
        begun = time.perf_counter()
        line = b'{"type":"event","event":"turn_start","step":1,"ping":1}\n'
        for child in self.children:
            os.write(child.stdin.fileno(), line)
        self._wait(len(self.children))
        return time.perf_counter() - begun

    def ask(self) -> float:
        begun = time.perf_counter()
        line = (
            b'{"type":"event_intercept","id":"7","event":"tool_call","tool_name":"bash","tool_args":{"command":"ls"}}\n'
        )
        os.write(self.children[0].stdin.fileno(), line)
        self._wait(1)
        return time.perf_counter() - begun

    def close(self) -> None:
        self.epoll.close()
        for child in self.children:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()


class Echoes(HostClient):
    """Counts the echoes of a round."""

    def __init__(self) -> None:
        self.left, self.done = 0, trio.Event()

    def notify(self, session, extension, level, message) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


def write_extensions(folder: Path, argv: list[str], n: int) -> list[Path]:
    paths = []
    for number in range(n):
        path = folder / f"n{n}" / f"echo-{number:03}"
        path.mkdir(parents=True)
        manifest = {"name": path.name, "exec": argv[0], "args": argv[1:]}
        (path / "extension.json").write_text(json.dumps(manifest))
        paths.append(path)
    return paths


async def measure(folder: Path, argv: list[str], n: int, rounds: int) -> list[dict[str, object]]:
    """All rows of one N; host and floor take turns."""
    client = Echoes()
    config = HostConfig(extensions=write_extensions(folder, argv, n), data_dir=folder, user_roots=(), project_roots=())
    floor = Floor(argv, n)
    took: dict[tuple[str, str], list[float]] = {}

    def note(row: str, column: str, seconds: float) -> None:
        took.setdefault((row, column), []).append(seconds)

    try:
        async with open_host(config) as host, host.open_session("bench", client=client) as session:
            report = await session.load_all()
            assert len(report.ready) == n, report
            for index in range(rounds + rounds // 10):
                client.left, client.done = n, trio.Event()
                begun = time.perf_counter()
                session.emit("turn_start", {"step": 1, "ping": 1})
                emitted = time.perf_counter()
                await client.done.wait()
                ended = time.perf_counter()
                floor_round = floor.round()
                if index < rounds // 10:
                    continue  # warm-up
                note("event round", "host", ended - begun)
                note("emit call", "host", emitted - begun)
                note("event round", "floor", floor_round)
                if n == 1:
                    begun = time.perf_counter()
                    await session.intercept("tool_call", {"tool_name": "bash", "tool_args": {"command": "ls"}})
                    note("interception", "host", time.perf_counter() - begun)
                    note("interception", "floor", floor.ask())
    finally:
        floor.close()
    return [row_of(row, column, n, values) for (row, column), values in took.items()]


def row_of(row: str, column: str, n: int, seconds: list[float]) -> dict[str, object]:
    ordered = sorted(seconds)
    return {
        "row": row,
        "n": n,
        "pinned": len(os.sched_getaffinity(0)) == 1,
        "column": column,
        "p50_us": round(statistics.median(ordered) * 1e6, 1),
        "p99_us": round(ordered[int(len(ordered) * 0.99)] * 1e6, 1),
        "mean_us": round(statistics.fmean(ordered) * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        argv, language = build(folder)
        for n in SIZES:
            rows += trio.run(measure, folder, argv, n, 200 if options.quick else 1000)
    print(f"echo extension in {language}; microseconds, median (p99); ratio of the medians")
    by_place = {(row["row"], row["n"], row["column"]): row for row in rows}
    for row in rows:
        if row["column"] != "host":
            continue
        floor = by_place.get((row["row"], row["n"], "floor"))
        beside = (
            f"floor {floor['p50_us']:8} ({floor['p99_us']:8})   {row['p50_us'] / floor['p50_us']:.2f}x" if floor else ""
        )
        print(f"{row['row']:13} N={row['n']:<4} host {row['p50_us']:8} ({row['p99_us']:8})   {beside}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
