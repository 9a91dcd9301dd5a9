"""What importing the package costs, beside importing trio.

Each figure is the median over fresh interpreters, run in turn so that a slow moment of the machine hits all of them alike,
less the median of an interpreter that imports nothing. Three imports, because the package loads a name's module when the
name is asked for: the package alone, the face of an embedder (`open_host` and all that the runtime needs), every public name.
Byte code is read from a fresh cache that a first, uncounted round fills: installed packages have theirs, a checkout may not.

    python benchmarks/import_cost.py [--runs 21] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = {
    "nothing": "pass",
    "trio": "import trio",
    "package": "import trio_exthost",
    "open_host": "from trio_exthost import open_host",
    "every name": "from trio_exthost import *",
}


def seconds(program, environment):
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return time.perf_counter() - begun


def measure(runs):
    taken = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = cache
        for number in range(runs + 1):
            for name, program in PROGRAMS.items():
                took = seconds(program, environment)
                if number > 0:  # the first round fills the caches
                    taken[name].append(took)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    nothing = medians.pop("nothing")
    return {name: median - nothing for name, median in medians.items()}


def main():
    parser = argparse.ArgumentParser(description="What importing the package costs, beside importing trio.")
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    taken = measure(options.runs)
    ratios = {name: taken[name] / taken["trio"] for name in taken}
    for name, each in taken.items():
        print(f"{name:<10}  {each * 1000:7.1f} ms  {ratios[name]:5.2f} x trio")
    if options.json:
        figures = {"runs": options.runs, "python": sys.version.split()[0], "seconds": taken, "ratio": ratios}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
