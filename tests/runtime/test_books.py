"""The books of a host: what is told of outcomes ends up in memory, in the log and in the statistics."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing
from runtime.fakes import Guest, world

from trio_exthost import HostConfig, HostInstrument, Limits, Outcome, Step, StepKind, Verdict
from trio_exthost.runtime.books import Books
from trio_exthost.runtime.decisions import read_decisions

STEP = Step("guard", StepKind.REWROTE, 0.25, "", {"command": "TOKEN=abc123 ls"}, {"command": "ls"})


def verdict(tool_id: str) -> Verdict:
    return Verdict("tool_call", Outcome.ALLOW, {}, {"tool_id": tool_id, "tool_name": "bash"}, steps=(STEP,))


def books(config: HostConfig, sessions=None, *, instrument=None, log=None, told=None) -> Books:
    told = [] if told is None else told
    return Books(config, {} if sessions is None else sessions, instrument=instrument, log=log, on_failure=told.append)


def test_outcomes_are_kept_written_and_counted(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = HostConfig(data_dir=tmp_path, limits=Limits(decisions=2, log_bytes=1000, log_files=5))
    found = books(config, log=Path("d.jsonl"))
    for number in range(4):
        found.outcomes.chain_ended("s", verdict(f"c{number}"), 0.25)
    found.outcomes.call_ended("s", "guard", "tool", "grep", "ok", 0.5)
    found.outcomes.dropped("s", "guard", 3, 1, 3)
    found.close()
    written = read_decisions(tmp_path / "d.jsonl").decisions
    assert [each.tool_id for each in written] == ["c0", "c1", "c2", "c3"]
    assert tuple(found.decisions) == written[2:]
    assert (tmp_path / "d.jsonl.1").is_file()
    assert b"abc123" not in b"".join(each.read_bytes() for each in tmp_path.glob("d.jsonl*"))
    shown = found.stats()
    assert [(each.kind, each.name, each.count) for each in shown.points] == [
        ("interception", "tool_call", 4),
        ("tool", "grep", 1),
    ]
    assert [(each.extension, each.dropped, each.waiting) for each in shown.extensions] == [("guard", 3, 0)]


def test_mask_is_the_configurations(tmp_path) -> None:
    found = books(HostConfig(data_dir=tmp_path, mask=("l[s]",)))
    found.outcomes.chain_ended("s", verdict("c"), 0.25)
    found.close()
    (change,) = next(iter(found.decisions)).steps[0].diff.changes
    assert (change.before, change.after) == ("TOKEN=abc123 ***", "***")


def test_embedders_instrument_hears_the_same_after_it_is_on_record(tmp_path) -> None:
    heard: list[tuple[str, int]] = []

    class Mine(HostInstrument):
        def chain_ended(self, session_id, verdict, seconds) -> None:
            heard.append((session_id, len(found.decisions)))

    found = books(HostConfig(data_dir=tmp_path), instrument=Mine())
    found.outcomes.chain_ended("s", verdict("c"), 0.25)
    assert heard == [("s", 1)]


def test_log_that_cannot_be_written_is_told(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    found = books(HostConfig(data_dir=tmp_path), log=tmp_path / "file" / "d.jsonl", told=told)
    for number in range(2):
        found.outcomes.chain_ended("s", verdict(f"c{number}"), 0.25)
    assert told == [f"{tmp_path / 'file' / 'd.jsonl'} cannot be written: File exists"]
    assert len(found.decisions) == 2


async def test_frames_that_wait_are_counted_over_all_sessions(tmp_path, autojump_clock) -> None:
    async def deaf(guest: Guest) -> None:
        guest.greet(events=["turn_start"])
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("deaf", deaf)
        found = books(host.config, host.sessions)
        async with host.open_session("one") as one, host.open_session("other") as other:
            for session, count in ((one, 2), (other, 3)):
                await session.load_all()
                for _ in range(count):
                    session.emit("turn_start", {"step": 1})
            (row,) = found.stats().extensions
            assert (row.extension, row.waiting) == ("deaf", 3)
            await trio.testing.wait_all_tasks_blocked()
            assert found.stats().extensions == ()
