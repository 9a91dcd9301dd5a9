"""Durable state in SQLite, beside bare loops of SQLite transactions with the same settings, measured in the same run in turn.

Three things should hold: one batch costs at most 1.5 times a bare transaction that inserts one row; 16 extensions that store at
the same time get at least 4 times the rate of the bare loop, as what waits goes into one transaction; and a session of 100,000
entries is read again at 200,000 entries a second.

    python benchmarks/state.py [--quick] [--directory DIR] [--json FILE]

The file is a list of objects: `row`, `column`, and `us` (microseconds for one) or `per_s`: the median over the rounds. The directory
decides much: a disk that answers late makes every transaction cost the same, one in memory makes a flush cost nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from trio_exthost.state import Commit, SessionState, read_actions
from trio_exthost.state.branches import Branches, Group
from trio_exthost.state.committed import Committed
from trio_exthost.state.limits import DEFAULT_LIMITS
from trio_exthost.state.sqlite import SqliteStores

HOST, BARE = "host", "bare loop"
EXTENSIONS = 16
KEYS = 200
"""Different keys that are written, over and over."""
ENTRIES_IN_BATCH = 8
"""Of a batch that is replayed."""
SETTINGS = ("synchronous=FULL", "fullfsync=1", "checkpoint_fullfsync=1", "temp_store=MEMORY", "cell_size_check=ON")

Bench = Callable[[], float]
"""Does its work once and returns the seconds that one unit of it took."""


def actions_of(number: int, count: int = 1) -> list[dict]:
    return [
        {
            "kind": "set_state",
            "key": f"key {(number * count + each) % KEYS}",
            "value": {"count": number, "text": "x" * 40},
        }
        for each in range(count)
    ]


def commit(extension: str, number: int, count: int = 1) -> Commit:
    actions = read_actions(actions_of(number, count), extension=extension)
    return Commit(extension=extension, schema=1, actions=actions, sequence=number)


def bare_connection(path: Path, journal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal}")
    for each in SETTINGS:
        connection.execute(f"PRAGMA {each}")
    return connection


class Writes:
    """One session, one shared space, and what they are compared with; all in one directory."""

    def __init__(self, directory: Path, units: int, stack: contextlib.ExitStack) -> None:
        self.units = units
        self.number = 0
        stores = SqliteStores(directory / "host")
        self.state = SessionState(stores.open_session("session"))
        stack.callback(self.state.close)
        self.shared = stores.open_extension("counter")
        self.bare = stack.enter_context(contextlib.closing(bare_connection(directory / "bare.db", "WAL")))
        self.bare.execute("CREATE TABLE batches (row INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self.counter = directory / "counter.db"
        with contextlib.closing(bare_connection(self.counter, "TRUNCATE")) as connection:
            connection.execute("CREATE TABLE state (key TEXT PRIMARY KEY, text BLOB NOT NULL)")
            connection.execute("INSERT INTO state VALUES ('n', '0')")

    def one_batch(self) -> float:
        start = time.perf_counter()
        for _ in range(self.units):
            self.number += 1
            self._store([commit("extension", self.number)])
        return (time.perf_counter() - start) / self.units

    def concurrent(self) -> float:
        """Each extension stores anew as soon as its last batch is stored: so that many always wait."""
        start = time.perf_counter()
        for _ in range(self.units):
            self.number += 1
            self._store([commit(f"extension {each}", self.number) for each in range(EXTENSIONS)])
        return (time.perf_counter() - start) / self.units / EXTENSIONS

    def _store(self, commits: list[Commit]) -> None:
        written = self.state.write(commits)
        self.state.publish(written)
        assert all(isinstance(each, Committed) and each.changed for each in written.outcomes)

    def bare_transactions(self) -> float:
        start = time.perf_counter()
        for _ in range(self.units):
            self.number += 1
            body = msgspec.json.encode(actions_of(self.number))
            self.bare.execute("BEGIN IMMEDIATE")
            self.bare.execute("INSERT INTO batches VALUES (NULL, ?)", (body,))
            self.bare.execute("COMMIT")
        return (time.perf_counter() - start) / self.units

    def shared_increments(self) -> float:
        (add,) = read_actions([{"kind": "add_state", "key": "n", "by": 1}], extension="counter")
        start = time.perf_counter()
        for _ in range(self.units):
            self.shared.commit([add], schema=1)
        return (time.perf_counter() - start) / self.units

    def bare_increments(self) -> float:
        """As safe among processes: opened, counted in one transaction, closed."""
        start = time.perf_counter()
        for _ in range(self.units):
            with contextlib.closing(bare_connection(self.counter, "TRUNCATE")) as connection:
                connection.execute("BEGIN IMMEDIATE")
                (text,) = connection.execute("SELECT text FROM state WHERE key = 'n'").fetchone()
                connection.execute("UPDATE state SET text = ? WHERE key = 'n'", (str(int(text) + 1),))
                connection.execute("COMMIT")
        return (time.perf_counter() - start) / self.units


class Reads:
    """A session of many entries, half of them spread over 50 positions, and the same bodies in a bare table."""

    def __init__(self, directory: Path, entries: int, stack: contextlib.ExitStack) -> None:
        self.entries = entries
        self.store = SqliteStores(directory / "replayed").open_session("session")
        stack.callback(self.store.close)
        group = Group(Branches(), DEFAULT_LIMITS)
        batches = entries // ENTRIES_IN_BATCH
        for number in range(batches):
            if number >= batches // 2 and number % max(1, batches // 100) == 0:
                group.advance(f"entry {number}")
            group.commit(commit("extension", number, ENTRIES_IN_BATCH))
        self.store.append_group(group.records, selected=group.after.tree.selected.row)
        self.expected = group.after.projection("extension")
        self.bare = stack.enter_context(contextlib.closing(bare_connection(directory / "bodies.db", "WAL")))
        self.bare.execute("CREATE TABLE batches (row INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self.bare.executemany("INSERT INTO batches VALUES (NULL, ?)", ((each.body,) for each in self.store.load_all()))

    def replay(self) -> float:
        start = time.perf_counter()
        state = SessionState(self.store)
        seconds = time.perf_counter() - start
        assert state.projection("extension") == self.expected
        return seconds / self.entries

    def bare_reading(self) -> float:
        """Reads and decodes the same bodies, and puts each value into one dict."""
        found = {}
        start = time.perf_counter()
        for (body,) in self.bare.execute("SELECT body FROM batches ORDER BY row"):
            for entry in msgspec.json.decode(body)["entries"]:
                found[entry["key"]] = entry["value"]
        seconds = time.perf_counter() - start
        assert found == self.expected.state()
        return seconds / self.entries


def benches(directory: Path, quick: bool, stack: contextlib.ExitStack) -> Iterator[tuple[str, str, Bench]]:
    writes = Writes(directory, 30 if quick else 200, stack)
    yield "one batch", HOST, writes.one_batch
    yield "one batch", BARE, writes.bare_transactions
    yield f"a batch of {EXTENSIONS} extensions at a time", HOST, writes.concurrent
    yield f"a batch of {EXTENSIONS} extensions at a time", BARE, writes.bare_transactions
    yield "one increment that all hosts share", HOST, writes.shared_increments
    yield "one increment that all hosts share", BARE, writes.bare_increments
    reads = Reads(directory, 20_000 if quick else 100_000, stack)
    yield f"replay, of {reads.entries:,} entries", HOST, reads.replay
    yield f"replay, of {reads.entries:,} entries", BARE, reads.bare_reading


def measure(directory: Path, rounds: int, quick: bool) -> dict[tuple[str, str], list[float]]:
    """Seconds for one unit, a figure for each round; within a round all take turns, and the first round warms up."""
    with contextlib.ExitStack() as stack:
        todo = list(benches(directory, quick, stack))
        found: dict[tuple[str, str], list[float]] = {(row, column): [] for row, column, _ in todo}
        for _ in range(rounds + 1):
            for row, column, bench in todo:
                gc.collect()
                found[row, column].append(bench())
    return {name: figures[1:] for name, figures in found.items()}


def report(found: dict[tuple[str, str], list[float]]) -> None:
    print(f"{'':44}{HOST:>12}{BARE:>12}{'host / bare':>14}")
    for row in dict.fromkeys(row for row, _ in found):
        host, bare = (statistics.median(found[row, column]) * 1e6 for column in (HOST, BARE))
        ratio = statistics.median(a / b for a, b in zip(found[row, HOST], found[row, BARE], strict=True))
        print(f"{row:44}{host:9.1f} us{bare:9.1f} us{ratio:13.2f}x")
        print(f"{'':44}{1e6 / host:10,.0f}/s{1e6 / bare:10,.0f}/s{1 / ratio:12.2f}x the rate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, and fewer of everything")
    parser.add_argument(
        "--directory", type=Path, help="where to make the files (default: the system's for temporary ones)"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exthost-state-", dir=options.directory) as directory:
        found = measure(Path(directory).resolve(), 3 if options.quick else 11, options.quick)
    report(found)
    if options.json:
        rows = []
        for (row, column), figures in found.items():
            us = statistics.median(figures) * 1e6
            rows.append({"row": row, "column": column, "us": round(us, 3)})
            rows.append({"row": row, "column": column, "per_s": round(1e6 / us, 1)})
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
