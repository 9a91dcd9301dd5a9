"""What is counted while a recording is played: by whom, what, where, why; bounded, masked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.replay_report import GROUPS, KINDS, OTHERS, PROBLEMS, Deed, Report
from trio_exthost.cli.transcripts import ProposedCall, Unreadable
from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict

ARGS = {"command": "curl -H 'token: abcdefgh' x"}
CALL = {"tool_id": "c1", "tool_name": "bash", "tool_args": ARGS}


def verdict(
    *steps: Step, event: str = "tool_call", outcome: Outcome = Outcome.ALLOW, payload: Any = CALL, **more: Any
) -> Verdict:
    return Verdict(event, outcome, payload, payload, steps=steps, **more)


def found(report: Report) -> list[tuple[Any, ...]]:
    return [
        (group.extension, group.deed, group.point, group.tool, group.reason, finding.count)
        for group, finding in report.ordered()
    ]


def deeds_of(one: Verdict) -> list[tuple[str, str]]:
    report = Report()
    report.add_verdict(one, "line 1", tool="bash", tool_id="c1")
    return [(group.extension, group.deed) for group, _ in report.ordered()]


LATE = {"reason": "gave no answer within 5 s", "policy": OnFailure.BLOCK}


@pytest.mark.parametrize(
    ("one", "deeds"),
    [
        (verdict(), []),
        (verdict(Step("a", StepKind.ALLOWED), Step("b", StepKind.OWN_CALL), Step("c", StepKind.FILTERED)), []),
        (verdict(Step("a", StepKind.BLOCKED), outcome=Outcome.BLOCK, by="a"), [("a", "refused")]),
        (verdict(Step("a", StepKind.BLOCKED), event="assistant_message", outcome=Outcome.BLOCK, by="a", payload={"text": "x"}), [("a", "hidden")]),
        (verdict(Step("a", StepKind.REWROTE, before=ARGS, after={})), [("a", "rewritten")]),
        (verdict(Step("a", StepKind.ASKS), outcome=Outcome.ASK, by="a"), [("a", "asked")]),
        (verdict(Step("a", StepKind.REWROTE, before=ARGS, after={}), outcome=Outcome.ASK, by="a", reason="why"), [("a", "rewritten"), ("a", "asked")]),
        (verdict(Step("a", StepKind.TIMED_OUT, **LATE), outcome=Outcome.BLOCK, by="a"), [("a", "refused")]),
        (verdict(Step("a", StepKind.TIMED_OUT, **LATE), event="assistant_message", outcome=Outcome.BLOCK, by="a", payload={"text": "x"}), [("a", "hidden")]),
        (verdict(Step("a", StepKind.FAILED, policy=OnFailure.ALLOW), Step("b", StepKind.NOT_RUNNING, **LATE), outcome=Outcome.BLOCK, by="b"), [("a", "no_answer"), ("b", "refused")]),
        (verdict(Step("a", StepKind.OVERLOADED, policy=OnFailure.BLOCK)), [("a", "no_answer")]),
    ],
)  # fmt: skip
def test_deeds(one: Verdict, deeds: list[tuple[str, str]]) -> None:
    assert deeds_of(one) == deeds


def test_groups_count_and_keep_the_first_example_masked() -> None:
    report = Report()
    for place in range(3):
        step = Step("guard", StepKind.BLOCKED, 0.001, "it says token=abcdefgh")
        report.add_verdict(
            verdict(step, outcome=Outcome.BLOCK, by="guard"), f"line {place}", tool="bash", tool_id=f"c{place}"
        )
    ((group, finding),) = report.ordered()
    assert (group.tool, group.reason) == ("bash", "it says ***")
    assert (finding.count, finding.at, finding.tool_id) == (3, "line 0", "c0")
    assert "abcdefgh" not in str(report.to_json())


@pytest.mark.parametrize(
    ("one", "example"),
    [
        (verdict(Step("a", StepKind.REWROTE, before={"a": 1, "b": 2}, after={"a": 1})), "b: removed 2"),
        (verdict(Step("a", StepKind.BLOCKED), event="turn_start", payload={"step": 1}), ""),
        (verdict(Step("a", StepKind.BLOCKED), event="assistant_message", payload={"text": "hi\x1b"}), r'"hi\u001b"'),
        (
            verdict(Step("a", StepKind.ASKS), event="before_compaction", payload={"algorithm": "x"}),
            '{"algorithm": "x"}',
        ),
        (verdict(Step("a", StepKind.ASKS), payload={"tool_args": {"list": list(range(30))}}), None),
    ],
)
def test_examples(one: Verdict, example: str | None) -> None:
    report = Report()
    report.add_verdict(one, "line 1")
    ((_, finding),) = report.ordered()
    if example is None:
        assert len(finding.example) < 300
    else:
        assert finding.example == example


def test_times_count_who_was_asked_and_could_be() -> None:
    report = Report()
    steps = [
        Step("a", StepKind.ALLOWED, 0.1),
        Step("a", StepKind.TIMED_OUT, 5.0),
        Step("a", StepKind.NOT_RUNNING),
        Step("b", StepKind.OWN_CALL),
    ]
    report.add_verdict(verdict(*steps), "line 1")
    assert report.asked["a"].points == Counter({"tool_call": 2})
    assert report.asked["a"].durations.maximum_s == 5.0
    assert report.asked["b"].durations.count == 0


def test_unusable_arguments_are_a_refusal_of_the_host() -> None:
    report = Report()
    report.add_unusable(
        ProposedCall("line 3", "", "bash", "{token: 'abcdefgh'"), "call-1", "the arguments are not JSON"
    )
    assert found(report) == [("", Deed.REFUSED, "tool_call", "bash", "the arguments are not JSON", 1)]
    (json,) = report.to_json()["findings"]
    assert (json["extension"], json["at"], json["tool_id"]) == (None, "line 3", "call-1")
    assert "abcdefgh" not in json["example"]


def test_order_is_by_extension_as_asked_then_deed_then_count() -> None:
    report = Report()
    report.add_unusable(ProposedCall("line 1", "", "bash", "x"), "c", "no")
    for name, kind, times, tool in [
        ("z", StepKind.REWROTE, 1, "t"),
        ("a", StepKind.BLOCKED, 1, "t"),
        ("z", StepKind.BLOCKED, 1, "t"),
        ("z", StepKind.BLOCKED, 2, "u"),
    ]:
        for _ in range(times):
            report.add_verdict(verdict(Step(name, kind, before=1, after=2)), "line 2", tool=tool)
    assert [(name, str(deed), tool) for name, deed, _, tool, _, _ in found(report)] == [
        ("z", "refused", "u"), ("z", "refused", "t"), ("z", "rewritten", "t"), ("a", "refused", "t"), ("", "refused", "bash"),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from([StepKind.BLOCKED, StepKind.ASKS]),
            st.sampled_from("tu"),
            st.sampled_from("rs"),
        )
    )
)
def test_counts_are_those_of_a_plain_counter(steps: list[tuple[str, StepKind, str, str]]) -> None:
    report = Report()
    for name, kind, tool, reason in steps:
        report.add_verdict(verdict(Step(name, kind, reason=reason)), "line 1", tool=tool)
    deeds = {StepKind.BLOCKED: Deed.REFUSED, StepKind.ASKS: Deed.ASKED}
    model = Counter((name, deeds[kind], "tool_call", tool, reason) for name, kind, tool, reason in steps)
    assert {each[:-1]: each[-1] for each in found(report)} == dict(model)


def test_what_grows_with_the_recording_is_bounded_and_still_counted() -> None:
    report = Report()
    many = GROUPS + 50
    for number in range(many):
        report.add_verdict(
            verdict(Step("a", StepKind.BLOCKED, reason=f"reason {number}")), "line 1", tool=f"tool {number}"
        )
        report.add_verdict(verdict(Step("a", StepKind.BLOCKED, reason=f"step {number}"), event="turn_start"), "line 1")
        report.add_skipped(f"kind {number}")
        report.add_problem(Unreadable(f"line {number}", "is no JSON"))
    assert len(report.findings) <= GROUPS + 2
    assert sum(finding.count for finding in report.findings.values()) == 2 * many
    assert {(group.tool, group.reason) for group in report.findings} >= {(OTHERS, OTHERS), ("", OTHERS)}
    assert (len(report.skipped), report.skipped[OTHERS], report.skipped.total()) == (KINDS + 1, many - KINDS, many)
    assert (len(report.problems), report.unreadable) == (PROBLEMS, many)


def test_outcomes_and_who_was_unaware() -> None:
    report = Report()
    report.add_verdict(verdict(Step("a", StepKind.ALLOWED), is_dry=True, unaware=("b", "a")), "line 1")
    report.add_verdict(verdict(Step("a", StepKind.BLOCKED), outcome=Outcome.BLOCK, by="a"), "line 1")
    json = report.to_json()
    assert json["verdicts"] == {"tool_call": {"allow": 1, "ask": 0, "block": 1}}
    assert json["unaware"] == ["a", "b"]
