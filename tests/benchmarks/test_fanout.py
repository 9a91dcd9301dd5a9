"""The fan-out benchmark runs, writes what it says it writes, and judges as its goals say."""

import importlib
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PLACE = {"row", "n", "pinned", "column"}
FIGURES = {"p50_us", "p99_us", "mean_us", "per_s", "cpu_us", "bytes"}


def run(*arguments):
    command = [sys.executable, BENCHMARKS / "fanout.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def rows_of(column, row, n, **figures):
    return [{"row": row, "n": n, "pinned": pinned, "column": column, **figures} for pinned in (False, True)]


@pytest.fixture
def comparing(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"comparing.{name}")


def test_a_quick_run_writes_every_row_and_draws_it(tmp_path):
    data, picture = tmp_path / "rows.json", tmp_path / "rows.svg"
    columns = "trio_exthost,floor,practical floor,asyncio"
    done = run("--quick", "--sizes", "1,2", "--columns", columns, "--json", data, "--svg", picture)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(data.read_text())
    assert all(PLACE < row.keys() <= PLACE | FIGURES for row in rows)
    places = {(row["row"], row["n"], row["pinned"], row["column"]) for row in rows}
    assert len(places) == len(rows)
    hosts = {(row, n) for row, n, pinned, column in places if column == "trio_exthost" and pinned}
    alone = {("interception", 1), ("command", 1), ("tool", 1), ("emit", 0)}
    assert hosts == alone | {(row, n) for row in ("start", "stop", "memory", "event", "emit", "burst") for n in (1, 2)}
    assert {column for *_, column in places} == set(columns.split(","))
    assert {(row, n, not pinned, column) for row, n, pinned, column in places} == places
    assert all(row["p50_us"] > 0 and row["cpu_us"] > 0 for row in rows if row["row"] == "event")
    assert all(row["per_s"] > 0 for row in rows if row["row"] == "burst")
    assert "Extensions and floor are in" in done.stdout or "No C compiler" in done.stdout
    assert "interception N=1 free, p50_us" in done.stdout
    root = ET.fromstring(picture.read_text())
    assert {"trio_exthost", "floor", "pinned to one core"} <= {text.text for text in root.findall(".//{*}text")}


def test_without_a_compiler_python_stands_in_and_the_table_says_so(tmp_path):
    data = tmp_path / "rows.json"
    done = run("--quick", "--sizes", "1", "--no-compiler", "--columns", "floor", "--json", data)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No C compiler: extensions and floor are in Python")
    assert {row["row"] for row in json.loads(data.read_text())} >= {"event", "interception", "burst"}


def test_a_column_that_does_not_exist_is_named_with_those_that_do():
    done = run("--quick", "--columns", "flor")
    assert done.returncode == 1
    assert "no column 'flor'; there are: trio_exthost, floor" in done.stderr


def test_a_goal_is_met_up_to_its_bound_and_missed_above(comparing):
    goals = comparing("goals")
    goal = goals.Goal("event", 8, "p50_us", 1.5, "floor")
    for figure, is_met in ((150.0, True), (150.1, False)):
        rows = rows_of("trio_exthost", "event", 8, p50_us=figure) + rows_of("floor", "event", 8, p50_us=100.0)
        assert [result.is_met for result in goals.judge(goals.Table(rows), [goal])] == [is_met, is_met]


def test_a_rate_is_to_be_at_least_its_bound(comparing):
    goals = comparing("goals")
    goal = goals.Goal("burst", 8, "per_s", 3, "floor", pinned=True, is_least=True)
    for figure, is_met in ((300, True), (299, False)):
        rows = rows_of("trio_exthost", "burst", 8, per_s=figure) + rows_of("floor", "burst", 8, per_s=100)
        assert [result.is_met for result in goals.judge(goals.Table(rows), [goal])] == [is_met]


def test_a_goal_without_figures_is_not_judged(comparing):
    goals = comparing("goals")
    assert list(goals.judge(goals.Table(rows_of("trio_exthost", "event", 8, p50_us=1.0)))) == []


def test_the_plain_loop_is_the_floor_where_there_is_no_compiler(comparing):
    goals = comparing("goals")
    rows = rows_of("trio_exthost", "start", 100, p50_us=3.0) + rows_of("floor", "start", 100, p50_us=2.0)
    assert [(result.value, result.is_met) for result in goals.judge(goals.Table(rows))] == [(1.5, True)] * 2


def test_a_peer_is_judged_row_by_row_and_a_higher_rate_is_better(comparing):
    goals = comparing("goals")
    rows = [
        *rows_of("trio_exthost", "event", 8, p50_us=20.0),
        *rows_of("asyncio", "event", 8, p50_us=10.0),
        *rows_of("trio_exthost", "burst", 8, per_s=200),
        *rows_of("asyncio", "burst", 8, per_s=100),
    ]
    (peer,) = goals.judge_peers(goals.Table(rows))
    assert (peer.column, peer.ahead) == ("asyncio", 2)
    assert peer.behind == ("event N=8 free 2.00", "event N=8 pinned 2.00")


def test_what_cannot_be_drawn_is_refused_with_the_way_out(comparing):
    with pytest.raises(ValueError, match="written by --json"):
        comparing("picture").draw(rows_of("trio_exthost", "burst", 8, per_s=1))
