"""What a host counts, and how it shows it."""

import json
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import text

from trio_exthost.policy import Outcome, Step, StepKind, Verdict
from trio_exthost.policy.decision import Decision
from trio_exthost.policy.quantiles import ERROR
from trio_exthost.runtime.stats import OTHERS, POINTS, HostStats, Stats
from trio_exthost.runtime.stats_table import WIDTH, count_text, fitted, seconds_text


def verdict(*steps, event="tool_call"):
    return Verdict(event, Outcome.ALLOW, {}, {}, steps=steps)


steps = st.builds(Step, st.sampled_from(["a", "b"]), st.sampled_from(StepKind), st.floats(1e-6, 100))
calls = st.tuples(
    st.sampled_from("ab"), st.sampled_from(["command", "tool"]), st.sampled_from("xy"),
    st.sampled_from(["ok", "cancelled", "timed_out", "remote_error", "overloaded", "invalid_arguments"]), st.floats(1e-6, 100),
)  # fmt: skip


@given(st.lists(steps | calls, max_size=30))
def test_counts_are_those_of_a_plain_list(plan):
    stats, counts, late, failed, most = Stats(), Counter(), Counter(), Counter(), {}
    for each in plan:
        if isinstance(each, Step):
            stats.chain_ended("s", verdict(each), 0.0)
            key, outcome, seconds = (each.extension, "interception", "tool_call"), each.kind.value, each.seconds
            if each.kind is StepKind.OWN_CALL:
                continue
        else:
            stats.call_ended("s", *each)
            key, outcome, seconds = each[:3], each[3], each[4]
        counts[key] += 1
        late[key] += outcome == "timed_out"
        failed[key] += outcome in {"failed", "not_running", "overloaded", "remote_error"}
        if outcome not in {"not_running", "overloaded", "invalid_arguments"}:
            most[key] = max(most.get(key, 0), seconds)
    found = stats.snapshot()
    assert [(p.extension, p.kind, p.name) for p in found.points] == sorted(counts)
    for point in found.points:
        key = (point.extension, point.kind, point.name)
        assert (point.count, point.timeouts, point.failures) == (counts[key], late[key], failed[key])
        assert point.max_s == most.get(key, 0)
        assert point.p50_s <= point.p95_s <= point.max_s


def test_decisions_of_a_log_count_as_their_verdicts_do():
    one, other = Stats(), Stats()
    made = verdict(Step("a", StepKind.TIMED_OUT, 5.0), Step("b", StepKind.ALLOWED, 0.1), event="turn_start")
    one.chain_ended("s", made, 5.1)
    other.add_decision(Decision.of(made, time=0, session_id="s", seconds=5.1))
    assert one.snapshot() == other.snapshot()
    assert one.snapshot().points[1].p50_s == pytest.approx(0.1, rel=ERROR)


def test_snapshot_does_not_change():
    stats = Stats()
    stats.call_ended("s", "a", "tool", "x", "ok", 0.5)
    before = stats.snapshot()
    stats.call_ended("s", "a", "tool", "x", "ok", 0.5)
    assert (before.points[0].count, stats.snapshot().points[0].count) == (1, 2)


def test_drops_are_counted_and_what_waits_is_asked_for_when_it_is_shown():
    waiting = {"a": 3, "idle": 0}
    stats = Stats(lambda: waiting)
    stats.dropped("s", "slow", 5, 1, 5)
    stats.dropped("t", "slow", 2, 1, 2)
    rows = [(each.extension, each.dropped, each.waiting) for each in stats.snapshot().extensions]
    assert rows == [("a", 0, 3), ("slow", 7, 0)]
    waiting["a"] = 0
    assert [each.extension for each in stats.snapshot().extensions] == ["slow"]


def test_memory_is_bounded_however_many_names_there_are():
    stats = Stats()
    for number in range(POINTS + 100):
        stats.call_ended("s", "a", "tool", str(number), "ok", 0.1)
        stats.dropped("s", str(number), 1, 1, 1)
    found = stats.snapshot()
    assert len(found.points) == len(found.extensions) == POINTS + 1
    assert [(p.extension, p.count) for p in found.points if p.name == OTHERS] == [(OTHERS, 100)]
    assert [each.dropped for each in found.extensions if each.extension == OTHERS] == [100]


def test_table_reads_well():
    stats = Stats(lambda: {"audit": 12})
    for _ in range(10):
        stats.chain_ended("s", verdict(Step("guard", StepKind.ALLOWED, 0.001)), 0.0)
    stats.chain_ended("s", verdict(Step("guard", StepKind.TIMED_OUT, 5.0)), 0.0)
    stats.chain_ended("s", verdict(Step("gone", StepKind.NOT_RUNNING)), 0.0)
    stats.call_ended("s", "todo", "command", "add", "ok", 0.25)
    stats.call_ended("s", "weather", "tool", "weather_of_the_whole_week", "remote_error", 1.5)
    stats.dropped("s", "audit", 3, 1, 3)
    text = stats.snapshot().explain()
    assert text.split("\n") == [
        "extension        asked for              count     p50     p95     max  late fail",
        "gone             tool_call                  1       -       -       -     0    1",
        "guard            tool_call                 11 1.01 ms  5.00 s  5.00 s     1    0",
        "todo             /add                       1  250 ms  250 ms  250 ms     0    0",
        "weather          tool weather_of_the..      1  1.50 s  1.50 s  1.50 s     0    1",
        "audit: 3 events dropped, 12 frames wait",
    ]


@given(st.lists(st.tuples(text, text, text, st.floats(0, 1e9)), max_size=4), st.integers(0, 10**20))
def test_table_never_steers_a_terminal_or_exceeds_its_width(plan, many):
    stats = Stats(lambda: {name: many for name, *_ in plan})
    for extension, kind, name, seconds in plan:
        stats.call_ended("s", extension, kind, name, "ok", seconds)
        stats.dropped("s", extension, many, 0, 0)
    for line in stats.snapshot().explain().split("\n"):
        assert line.isprintable()
        assert (
            sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in line) <= WIDTH
        )


def test_json_holds_all_of_it():
    stats = Stats(lambda: {"a": 1})
    stats.call_ended("s", "a", "tool", "x", "timed_out", 2.0)
    found = json.loads(json.dumps(stats.snapshot().to_json()))
    assert found["extensions"] == [{"extension": "a", "dropped": 0, "waiting": 1}]
    assert {**found["points"][0], "p50_s": 0, "p95_s": 0} == {
        "extension": "a", "kind": "tool", "name": "x", "count": 1, "p50_s": 0, "p95_s": 0, "max_s": 2.0, "timeouts": 1, "failures": 0,
    }  # fmt: skip


def test_nothing_is_said_so():
    assert HostStats().explain() == "nothing was asked of any extension"
    assert Stats().snapshot() == HostStats()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"), (12e-6, "12 µs"), (999e-6, "999 µs"), (999.6e-6, "1.00 ms"), (9.994e-3, "9.99 ms"), (9.996e-3, "10.0 ms"),
        (0.0999, "99.9 ms"), (0.09996, "100 ms"), (0.9994, "999 ms"), (0.9996, "1.00 s"), (5, "5.00 s"), (600, "600 s"),
        (86_400, "86k s"),
    ],
)  # fmt: skip
def test_durations_are_short(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (9999, "9999"), (10_000, "10k"), (999_999, "999k"), (10**6, "1M"), (10**9, "1G"), (10**12, "1T"), (10**16, "999T")],
)  # fmt: skip
def test_counts_are_short(count, text):
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("name", "shown"),
    [("abc", "abc   "), ("abcdef", "abcdef"), ("abcdefg", "abcd.."), ("日本語", "日本語"), ("日本語語", "日本.."), ("a日本語", "a日.. "), ("\x1b", "\\x1b  ")],
)  # fmt: skip
def test_names_fill_their_columns(name, shown):
    assert fitted(name, 6) == shown


def test_one_that_was_asked_nothing_but_misses_events_is_shown():
    stats = Stats(lambda: {"slow\x1b": 3})
    stats.dropped("s", "slow\x1b", 20_000, 1, 20_000)
    assert stats.snapshot().explain() == r"slow\x1b: 20k events dropped, 3 frames wait"
