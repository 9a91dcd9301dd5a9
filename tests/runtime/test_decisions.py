"""Decisions that are kept: in memory and in a log that rotates and survives what disks and crashes do to it."""

import os

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.policy import Outcome, Step, StepKind, Verdict
from trio_exthost.policy.decision import LINE_BYTES, Decision
from trio_exthost.runtime.decisions import PROBLEMS, DecisionLog, DecisionRecorder, Decisions, read_decisions


def decision(number, tool_id="c", session_id="s"):
    return Decision(
        time=float(number), session_id=session_id, event="tool_call", outcome=Outcome.ALLOW, tool_id=tool_id
    )


def log_at(path, told=None, *, max_bytes=10_000, files=3):
    return DecisionLog(path, max_bytes=max_bytes, files=files, on_failure=[].append if told is None else told.append)


def times(path):
    return [each.time for each in read_decisions(path).decisions]


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("st")), max_size=12))
def test_newest_are_kept_and_found_by_tool_newest_first(keep, plan):
    kept, model = Decisions(keep), []
    for number, (tool_id, session_id) in enumerate(plan):
        kept.add(decision(number, tool_id, session_id))
        model = [*model, decision(number, tool_id, session_id)][-keep:]
    assert (list(kept), len(kept)) == (model, len(model))
    for tool_id in "abc":
        found = [each for each in reversed(model) if each.tool_id == tool_id]
        assert list(kept.of_tool(tool_id)) == found
        assert list(kept.of_tool(tool_id, session_id="s")) == [each for each in found if each.session_id == "s"]


def test_long_id_is_found_by_all_of_it():
    kept = Decisions(3)
    recorder = DecisionRecorder(kept)
    verdict = Verdict("tool_call", Outcome.ALLOW, {}, {"tool_id": "x" * 1000})
    recorder.chain_ended("s", verdict, 0.5)
    assert [each.seconds for each in kept.of_tool("x" * 1000)] == [0.5]


def test_recorder_masks_and_gives_the_same_to_memory_and_log(tmp_path):
    kept, log = Decisions(10), log_at(tmp_path / "logs" / "d.jsonl")
    recorder = DecisionRecorder(kept, log=log, mask=(r"\d{4}",), clock=lambda: 7.0)
    step = Step("e", StepKind.REWROTE, 0, "1234", {"x": "1234"}, {"x": "no"})
    recorder.chain_ended("s", Verdict("tool_call", Outcome.ALLOW, {}, {}, steps=(step,)), 0.1)
    log.close()
    assert list(read_decisions(log.path).decisions) == list(kept)
    (only,) = kept
    assert (only.time, only.steps[0].reason, only.steps[0].diff.changes[0].before) == (7.0, "***", "***")
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_log_rotates_between_lines_and_is_read_in_order(tmp_path):
    path = tmp_path / "d.jsonl"
    size = len(decision(10).to_line())
    log = log_at(path, max_bytes=3 * size + 1)
    for number in range(10, 30):
        log.append(decision(number))
    log.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d.jsonl", "d.jsonl.1", "d.jsonl.2"]
    assert all(each.stat().st_size <= 3 * size for each in tmp_path.iterdir())
    assert times(path) == list(range(22, 30))


def test_log_of_one_file_begins_anew(tmp_path):
    log = log_at(tmp_path / "d.jsonl", max_bytes=1, files=1)
    for number in range(3):
        log.append(decision(number))
    assert times(log.path) == [2]
    assert len(list(tmp_path.iterdir())) == 1


def test_two_hosts_share_a_log_and_lose_nothing(tmp_path):
    path = tmp_path / "d.jsonl"
    told = []
    logs = [log_at(path, told, max_bytes=400, files=50) for _ in range(2)]
    for number in range(40):
        logs[number % 3 % 2].append(decision(number))
    assert times(path) == list(range(40))
    assert told == []


def test_log_that_somebody_removed_is_made_again(tmp_path):
    log = log_at(tmp_path / "d.jsonl")
    log.append(decision(1))
    log.path.unlink()
    log.append(decision(2))
    log.close()
    log.close()
    log.append(decision(3))
    assert times(log.path) == [2, 3]


def test_cut_last_line_is_tolerated_and_the_next_line_stands_alone(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(decision(1).to_line() + decision(2).to_line()[:20])
    reading = read_decisions(path)
    assert ([each.time for each in reading.decisions], reading.problems, reading.is_cut) == ([1], (), True)
    log_at(path).append(decision(3))
    reading = read_decisions(path)
    assert [each.time for each in reading.decisions] == [1, 3]
    assert ([each.line for each in reading.problems], reading.is_cut) == ([2], False)
    assert str(reading.problems[0]).startswith(f"{path}, line 2: is no JSON")


@given(st.integers(0, 400))
def test_log_cut_anywhere_gives_every_whole_line(tmp_path_factory, at):
    path = tmp_path_factory.mktemp("log") / "d.jsonl"
    lines = [decision(number).to_line() for number in range(4)]
    whole = b"".join(lines)[:at]
    path.write_bytes(whole)
    reading = read_decisions(path)
    complete = sum(len(b"".join(lines[: number + 1])) - 1 <= len(whole) for number in range(4))
    assert [each.time for each in reading.decisions] == list(range(complete))
    assert reading.problems == ()


def test_last_line_of_a_rotated_file_that_is_cut_is_a_problem(tmp_path):
    (tmp_path / "d.jsonl.1").write_bytes(decision(1).to_line() + b"{")
    (tmp_path / "d.jsonl").write_bytes(decision(2).to_line())
    reading = read_decisions(tmp_path / "d.jsonl")
    assert [each.time for each in reading.decisions] == [1, 2]
    assert [(each.path, each.line) for each in reading.problems] == [(str(tmp_path / "d.jsonl.1"), 2)]


def test_line_that_is_too_long_is_one_problem(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"x" * (3 * LINE_BYTES) + b"\n" + decision(2).to_line() + b"y" * (2 * LINE_BYTES))
    reading = read_decisions(path)
    assert [each.time for each in reading.decisions] == [2]
    assert [each.line for each in reading.problems] == [1, 3]
    assert not reading.is_cut


def test_file_that_is_no_log_costs_no_memory(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"x\n" * (PROBLEMS + 7) + decision(2).to_line())
    reading = read_decisions(path)
    assert (len(reading.problems), reading.unreadable, len(reading.decisions)) == (PROBLEMS, PROBLEMS + 7, 1)
    assert reading.problems[-1].line == PROBLEMS


def test_only_a_line_feed_ends_a_line(tmp_path):
    odd = attrs.evolve(decision(1), reason="a\u2028b\x85c\rd")
    log = log_at(tmp_path / "d.jsonl")
    log.append(odd)
    assert read_decisions(log.path).decisions == (odd,)


def test_log_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_decisions(tmp_path / "none")


def test_failure_to_write_is_told_once_and_never_raised(tmp_path):
    (tmp_path / "d.jsonl").mkdir()
    told = []
    log = log_at(tmp_path / "d.jsonl", told)
    for number in range(3):
        log.append(decision(number))
    assert log.lost == 3
    assert told == [f"{log.path} cannot be written: Is a directory"]


def test_torn_write_is_told_and_does_not_spoil_the_next_line(tmp_path, monkeypatch):
    told = []
    log, write = log_at(tmp_path / "d.jsonl", told), os.write
    log.append(decision(1))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    log.append(decision(2))
    monkeypatch.undo()
    log.append(decision(3))
    assert times(log.path) == [1, 3]
    assert (log.lost, len(told)) == (1, 1)
    assert "only 10 of" in told[0]


def test_failure_to_close_is_told(tmp_path, monkeypatch):
    told = []
    log = log_at(tmp_path / "d.jsonl", told)
    log.append(decision(1))
    close, closed = os.close, []

    def failing(fd):
        closed.append(fd)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "close", failing)
    log.close()
    monkeypatch.undo()
    close(closed[0])
    assert told == [f"{log.path} cannot be closed: Input/output error"]
