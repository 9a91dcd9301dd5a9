"""The report of `exthost replay` as text: what is rare in it."""

from __future__ import annotations

from typing import Any

import pytest

from trio_exthost.cli.replay_report import Report
from trio_exthost.cli.replay_view import show

ROW = {
    "name": "slow", "version": "", "state": "tripped", "reason": "it failed 3 times in a row", "asked": 1, "points": {"tool_call": 1},
    "p50_s": 0.0012, "p99_s": 0.5, "max_s": 5.0, "missed": 1,
}  # fmt: skip


def shown(capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    found = {
        "transcript": "x.jsonl",
        "format": "claude",
        "seconds": 1.25,
        "error": None,
        "extensions": [],
        "diagnostics": {},
    }
    show({**found, **Report().to_json(), **changes})
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_everything_that_is_rare(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        conversations=2,
        prompts=3,
        results=1,
        unpaired_results=1,
        skipped={f"kind{number}": 1 for number in range(10)},
        extensions=[ROW],
        diagnostics={"tripped": 1, "policy_decided": 3},
        unaware=["guard", "slow"],
    )
    assert lines == [
        "x.jsonl (claude): 2 conversations, 3 prompts, 1 result; 1.2 s",
        "  skipped: kind0 1, kind1 1, kind2 1, kind3 1, kind4 1, kind5 1, kind6 1, kind7",
        "           1, 2 more kinds",
        "  left out: 1 result of calls that nobody made",
        "slow: asked 1 time, p50 1.20 ms, p99 500 ms, longest 5.00 s",
        "  tripped in the end: it failed 3 times in a row",
        "  missed: 1 event it did not get, as it reads too slowly",
        "  nothing refused, hidden, rewritten or asked",
        "the host noticed: tripped 1, policy_decided 3",
        "asked as if it were real, and may have acted on it: guard, slow",
    ]


def test_reasons_that_are_missing_leave_no_gap(capsys: pytest.CaptureFixture[str]) -> None:
    finding = {
        "extension": "slow",
        "deed": "refused",
        "point": "turn_start",
        "tool": "",
        "reason": "",
        "count": 2,
        "at": "line 3",
        "tool_id": "",
        "example": "",
    }
    row = {**ROW, "state": "stopped", "reason": "", "missed": 0, "asked": 0}
    assert shown(capsys, conversations=1, turns=2, extensions=[row], findings=[finding]) == [
        "x.jsonl (claude): 2 turns; 1.2 s",
        "slow: asked 0 times",
        "  stopped in the end",
        "  refuses 2x turn_start",
        "    first: line 3",
    ]
