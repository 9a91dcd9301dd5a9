"""The ledger of effects with few and with many live records, beside a plain dict, measured in the same run in turn.

Two things must hold: an operation costs at most twice as much with 100,000 live records as with 100, and accepting and disposing of
one record costs at most 30 times an insertion into and a deletion from a dict. A third is shown at the end: a million records that
came and went leave the memory where it was.

    python benchmarks/ledger.py [--quick] [--json FILE]

The file is a list of objects: `operation`, `live` (records, or entries of the dict) and `us` (microseconds for one record: the
median over the rounds). Garbage collection is on, as it is in use.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from trio_exthost.effects import EffectKind, EffectLedger, EffectOwner, Registration, ScopeBinding

SIZES = (100, 10_000, 100_000)
BATCH = 2_000
OWNED = 50
"""Records of an owner that is disposed of."""
SESSION = ScopeBinding.session()
OWNERS = [EffectOwner(f"extension{number}", "session", 1) for number in range(20)]
COMER = EffectOwner("comer", "session", 1)
GOERS = [EffectOwner(f"goer{number}", "session", 1) for number in range(BATCH // OWNED)]

Bench = Callable[[], float]
"""Runs a batch and returns the seconds that count."""


def tools(prefix: str, count: int) -> list[Registration]:
    return [Registration(EffectKind.TOOL, f"{prefix}{number}", None, number) for number in range(count)]


def benches(live: int) -> Iterator[tuple[str, Bench]]:
    """The operations on one ledger and one dict of this size; each leaves them as they were."""
    ledger = EffectLedger()
    resident = tools("resident", live)
    for number, registration in enumerate(resident):
        ledger.accept(OWNERS[number % len(OWNERS)], SESSION, registration)
    table = {each.key: each.key for each in resident}
    comers = tools("comer", BATCH)
    keys = [each.key for each in comers]
    wanted = [each.key for each in random.Random(1).choices(resident, k=BATCH)]
    handles: list[int] = []

    def accept() -> float:
        start = time.perf_counter()
        accepted = [ledger.accept(COMER, SESSION, registration) for registration in comers]
        seconds = time.perf_counter() - start
        handles[:] = [each.handle for each in accepted]
        return seconds

    def dispose() -> float:
        start = time.perf_counter()
        for handle in handles:
            ledger.dispose(handle)
        return time.perf_counter() - start

    def look_up() -> float:
        start = time.perf_counter()
        for key in wanted:
            ledger.active(EffectKind.TOOL, key, run_id="run", request_id="request")
        return time.perf_counter() - start

    def dispose_owner() -> float:
        for number, registration in enumerate(comers):
            ledger.accept(GOERS[number // OWNED], SESSION, registration)
        start = time.perf_counter()
        for owner in GOERS:
            ledger.dispose_owner(owner)
        return time.perf_counter() - start

    def accept_and_dispose() -> float:
        start = time.perf_counter()
        for registration in comers:
            ledger.dispose(ledger.accept(COMER, SESSION, registration).handle)
        return time.perf_counter() - start

    def the_same_with_changes() -> float:
        start = time.perf_counter()
        for registration in comers:
            accepted = ledger.accept(COMER, SESSION, registration)
            changes = accepted.changes
            changes = ledger.dispose(accepted.handle).changes
        seconds = time.perf_counter() - start
        assert len(changes) == 1
        return seconds

    def dict_insert_and_delete() -> float:
        start = time.perf_counter()
        for key in keys:
            table[key] = key
            del table[key]
        return time.perf_counter() - start

    pairs = (accept_and_dispose, the_same_with_changes, dict_insert_and_delete)
    for bench in (accept, dispose, look_up, dispose_owner, *pairs):
        yield bench.__name__, bench


def measure(rounds: int) -> dict[tuple[str, int], list[float]]:
    """Microseconds for one record, a figure for each round; within a round the sizes and operations take turns."""
    todo = [(operation, live, bench) for live in SIZES for operation, bench in benches(live)]
    found: dict[tuple[str, int], list[float]] = {(operation, live): [] for operation, live, _ in todo}
    for _ in range(rounds + 1):
        gc.collect()
        for operation, live, bench in todo:
            found[operation, live].append(bench() / BATCH * 1e6)
    return {name: figures[1:] for name, figures in found.items()}  # the first round warms up


def memory_after(records: int) -> int:
    """Bytes that are traced more after so many records have come and gone, half one by one and half at once."""
    ledger = EffectLedger()
    for registration in tools("resident", 100):
        ledger.accept(OWNERS[0], SESSION, registration)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(records // 2):
        registration = Registration(EffectKind.TOOL, f"tool{number}", None, number)
        ledger.dispose(ledger.accept(COMER, SESSION, registration).handle)
    for number in range(records // 2):
        ledger.accept(COMER, SESSION, Registration(EffectKind.TOOL, f"tool{number}", None, number))
    ledger.dispose_owner(COMER)
    del registration
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def report(found: dict[tuple[str, int], list[float]]) -> None:
    middle = {name: statistics.median(figures) for name, figures in found.items()}
    print(f"{'us for one record':24}" + "".join(f"{live:>12,}" for live in SIZES) + f"{'growth':>10}")
    for operation in dict.fromkeys(operation for operation, _ in found):
        row = [middle[operation, live] for live in SIZES]
        growth = statistics.median(
            large / small for small, large in zip(found[operation, SIZES[0]], found[operation, SIZES[-1]], strict=True)
        )
        print(f"{operation:24}" + "".join(f"{us:12.3f}" for us in row) + f"{growth:9.2f}x")
    times = [
        statistics.median(
            pair / plain
            for pair, plain in zip(
                found["accept_and_dispose", live], found["dict_insert_and_delete", live], strict=True
            )
        )
        for live in SIZES
    ]
    print(f"{'ledger / dict':24}" + "".join(f"{each:11.1f}x" for each in times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, and no look at the memory")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    found = measure(5 if options.quick else 31)
    report(found)
    if not options.quick:
        records = 1_000_000
        print(f"memory after {records:,} records have come and gone: {memory_after(records):+,} bytes")
    if options.json:
        rows = [
            {"operation": operation, "live": live, "us": round(statistics.median(figures), 4)}
            for (operation, live), figures in found.items()
        ]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
