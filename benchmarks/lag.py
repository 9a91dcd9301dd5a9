"""How late the agent's own tasks wake up while extensions flood the host, beside the same host when they are quiet.

One host and one session. Each flooder writes notes as fast as it is read, from when it is asked to until it is told to stop. The
agent's task sleeps for a millisecond at a time and notes by how much longer that took. Quiet and flooded periods alternate, so
that a slow moment of the machine hits both. The default configuration holds: what floods for too long is not read until the next
second, which is why periods last more than one.

    python benchmarks/lag.py [--flooders 100] [--periods 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

from trio_exthost import HostClient, HostConfig, Session, open_host

SLEEP_S = 0.001
PERIOD_S = 1.5

FLOODER_C = r"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static void put(const char *text) { for (size_t n = strlen(text); n; ) { ssize_t w = write(1, text, n); if (w < 1) _exit(0); text += w; n -= (size_t)w; } }
int main(void) {
    char got[65536], notes[65536] = "";
    for (int i = 0; i < 500; i++) strcat(notes, "{\"type\":\"notify\",\"message\":\"a note of a flooder\"}\n");
    put("{\"type\":\"hello\",\"name\":\"f\"}\n{\"type\":\"subscribe\",\"events\":[\"begin\",\"stop\"]}\n{\"type\":\"ready\"}\n");
    for (int is_on = 0;;) {
        fcntl(0, F_SETFL, is_on ? O_NONBLOCK : 0);
        ssize_t size = read(0, got, sizeof got - 1);
        if (size == 0) return 0;
        if (size > 0) {
            got[size] = 0;
            if (strstr(got, "\"shutdown\"")) return 0;
            if (strstr(got, "\"begin\"")) is_on = 1;
            if (strstr(got, "\"stop\"")) is_on = 0;
        }
        if (is_on) put(notes);
    }
}
"""
FLOODER_PY = r"""
import os
def put(data):
    while data:
        data = data[os.write(1, data):]
notes = b'{"type":"notify","message":"a note of a flooder"}\n' * 500
put(b'{"type":"hello","name":"f"}\n{"type":"subscribe","events":["begin","stop"]}\n{"type":"ready"}\n')
is_on = False
while True:
    os.set_blocking(0, not is_on)
    try:
        got = os.read(0, 65536)
        if not got or b'"shutdown"' in got:
            break
        is_on = (is_on or b'"begin"' in got) and b'"stop"' not in got
    except BlockingIOError:
        pass
    if is_on:
        put(notes)
"""


class Notes(HostClient):
    """Counts the notes."""

    def __init__(self) -> None:
        self.count = 0

    def notify(self, session: Session, extension: str, level: str, message: str) -> None:
        self.count += 1


def flooder(folder: Path) -> list[str]:
    """Compiled where there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        (folder / "flooder.py").write_text(FLOODER_PY)
        return [sys.executable, str(folder / "flooder.py")]
    (folder / "flooder.c").write_text(FLOODER_C)
    subprocess.run([compiler, "-O2", "-o", folder / "flooder", folder / "flooder.c"], check=True)
    return [str(folder / "flooder")]


async def lags(seconds: float) -> list[float]:
    """By how much each sleep was longer than it should be."""
    found = []
    until = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        await trio.sleep(SLEEP_S)
        found.append(time.perf_counter() - begun - SLEEP_S)
    return found


async def measure(folder: Path, flooders: int, periods: int) -> dict[str, dict[str, float]]:
    """Figures by what the flooders did: `quiet`, `flooded`."""
    program = flooder(folder)
    paths = []
    for number in range(flooders):
        path = folder / f"flooder-{number:03}"
        path.mkdir()
        manifest = {"name": path.name, "exec": program[0], "args": program[1:]}
        (path / "extension.json").write_text(json.dumps(manifest))
        paths.append(path)
    config = HostConfig(extensions=paths, data_dir=folder / "data", user_roots=(), project_roots=())
    client = Notes()
    taken: dict[str, list[float]] = {"quiet": [], "flooded": []}
    notes = dict.fromkeys(taken, 0)
    async with open_host(config) as host, host.open_session("lag", client=client, cwd=folder) as session:
        report = await session.load_all()
        if len(report.ready) != flooders:
            raise RuntimeError(f"{flooders} flooders should be ready: {report}")
        for _ in range(periods):
            for what, event in (("quiet", "stop"), ("flooded", "begin")):
                session.emit(event)
                await trio.sleep(PERIOD_S)  # what is left of the period before is read meanwhile
                before = client.count
                taken[what] += await lags(PERIOD_S)
                notes[what] += client.count - before
    return {
        what: {
            "p50_ms": statistics.median(each) * 1e3,
            "p99_ms": sorted(each)[int(len(each) * 0.99)] * 1e3,
            "max_ms": max(each) * 1e3,
            "notes_per_s": notes[what] / (periods * PERIOD_S),
        }
        for what, each in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description="How late the agent's own tasks wake up while extensions flood the host."
    )
    parser.add_argument("--flooders", type=int, default=100)
    parser.add_argument("--periods", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = trio.run(measure, Path(folder), options.flooders, options.periods)
    for what, each in found.items():
        print(
            f"{what:<8} lag p50 {each['p50_ms']:7.3f} ms  p99 {each['p99_ms']:7.3f} ms  max {each['max_ms']:7.3f} ms  "
            f"{each['notes_per_s']:9.0f} notes a second"
        )
    if options.json:
        options.json.write_text(json.dumps({"flooders": options.flooders, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
