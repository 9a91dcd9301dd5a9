"""Decisions: what the verdict says, small enough to keep, and the same again when read back."""

import json
import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_objects, json_values, text

from trio_exthost import HostError
from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
from trio_exthost.policy.decision import (
    ID_CHARACTERS,
    LINE_BYTES,
    STEPS,
    Decision,
    DecisionError,
    DecisionStep,
    kept_id,
)
from trio_exthost.policy.diff import CHANGES, Diff, diff

seconds = st.floats(0, 1e6)
steps = st.builds(
    Step,
    extension=text,
    kind=st.sampled_from(StepKind),
    seconds=seconds,
    reason=text,
    before=json_values,
    after=json_values,
    policy=st.none() | st.sampled_from(OnFailure),
    is_again=st.booleans(),
    rewrite_ignored=st.booleans(),
    rule=text,
    where=text,
)
verdicts = st.builds(
    Verdict,
    event=text,
    outcome=st.sampled_from(Outcome),
    value=json_objects,
    original=json_objects | st.fixed_dictionaries({"tool_id": text, "tool_name": text}),
    reason=text,
    by=st.none() | text,
    steps=st.lists(steps, max_size=3).map(tuple),
    code=text,
    hint=text,
    run_id=text,
)
masks = st.sampled_from([None, (), ("[0-9a-f]+",)])


def decided(verdict, mask=None):
    return Decision.of(verdict, time=1.5, session_id="s1", seconds=0.25, mask=mask)


@given(verdicts, masks, seconds, text)
def test_decision_read_back_is_the_same(verdict, mask, number, name):
    decision = Decision.of(verdict, time=number, session_id=name, seconds=number, mask=mask)
    assert Decision.from_line(decision.to_line()) == decision
    assert Decision.from_json(decision.to_json()) == decision
    assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision


@given(verdicts, masks)
def test_decision_explains_itself_as_its_verdict_does(verdict, mask):
    assert decided(verdict, mask).explain() == verdict.explain(mask)


@given(verdicts)
def test_line_is_one_line_of_ascii(verdict):
    line = decided(verdict).to_line()
    assert line.isascii()
    assert line.decode().removesuffix("\n").isprintable()


def test_ids_are_those_of_the_tool_call():
    verdict = Verdict(
        "tool_call", Outcome.BLOCK, {}, {"tool_id": "c1", "tool_name": "bash"}, "no", "guard", run_id="r1"
    )
    assert decided(verdict).to_json() == {
        "time": 1.5, "session_id": "s1", "run_id": "r1", "event": "tool_call", "tool_id": "c1", "tool_name": "bash",
        "outcome": "block", "reason": "no", "by": "guard", "seconds": 0.25,
    }  # fmt: skip
    assert kept_id("x" * 1000) == "x" * ID_CHARACTERS
    assert kept_id(7) == ""


def test_size_of_a_line_is_bounded_however_large_the_values():
    huge = {f"k{each}": {"t": ["y" * 10_000] * 1000} for each in range(1000)}
    step = Step("e", StepKind.REWROTE, 0, "r" * 1_000_000, {}, huge)
    decision = decided(Verdict("tool_call", Outcome.BLOCK, {}, {}, "r" * 1_000_000, "e", (step,), hint="h" * 1_000_000))
    assert len(decision.steps[0].diff.changes) == CHANGES
    assert len(decision.to_line()) < LINE_BYTES // 8


def rewritten(count, **values):
    values = {key: {f"k{each}": letter * 900 for each in range(CHANGES)} for key, letter in values.items()}
    return tuple(Step(f"e{each}", StepKind.REWROTE, 0, "\x00" * 200, **values) for each in range(count))


@pytest.mark.parametrize(("count", "kept"), [(50, 50), (2000, STEPS)])
def test_line_of_very_many_steps_is_short_enough_to_be_read(count, kept):
    decision = decided(Verdict("e", Outcome.ALLOW, {}, {}, steps=rewritten(count, before="a", after="\x00")), mask=())
    read = Decision.from_line(decision.to_line())
    assert [each.extension for each in read.steps] == [f"e{each}" for each in range(kept)]
    assert read.steps_left_out == count - kept
    assert all((each.diff.changes, each.diff.left_out) == ((), CHANGES) for each in read.steps)
    assert f"rewrote {CHANGES} changes, not kept" in read.explain()
    assert (f"\n  and {count - kept} more" in read.explain()) is (count > kept)


def test_line_as_long_as_one_may_be_is_written_whole():
    def sized(spare):
        step = DecisionStep(extension="e" * (LINE_BYTES - spare), kind=StepKind.REWROTE, diff=diff(1, 2))
        return attrs.evolve(GOOD, steps=(step,))

    spare = len(sized(0).to_line()) - LINE_BYTES  # of all but the name, without its diff
    spare += len(b'"changes":[{"path":[],"kind":"changed","before":1,"after":2}]') - len(b'"left_out":1')
    assert len(sized(spare).to_line()) == LINE_BYTES
    assert Decision.from_line(sized(spare).to_line()) == sized(spare)
    assert Decision.from_line(sized(spare - 1).to_line()).steps[0].diff == Diff(left_out=1)


def test_line_as_long_as_one_may_be_without_its_diffs_keeps_all_steps():
    def sized(spare):
        named = DecisionStep(extension="e" * (LINE_BYTES - spare), kind=StepKind.REWROTE, diff=diff(1, 2))
        return attrs.evolve(GOOD, steps=(named, *GOOD.steps * STEPS))

    spare = len(sized(LINE_BYTES - 1).to_line()) - 1
    spare -= len(b'"changes":[{"path":[],"kind":"changed","before":1,"after":2}]') - len(b'"left_out":1')
    assert len(sized(spare).to_line()) == LINE_BYTES
    assert len(Decision.from_line(sized(spare).to_line()).steps) == STEPS + 1
    assert len(Decision.from_line(sized(spare - 1).to_line()).steps) == STEPS


def test_what_is_no_number_of_json_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        attrs.evolve(GOOD, seconds=math.nan).to_line()


def test_secrets_are_not_in_it():
    step = Step("e", StepKind.REWROTE, 0, "API_KEY=abc123", {"x": "--token abc123"}, {"token": "abc123"})
    verdict = Verdict("tool_call", Outcome.BLOCK, {}, {}, "password=abc123", "e", (step,), hint="secret: abc123")
    assert b"abc123" not in decided(verdict).to_line()


GOOD = Decision(
    time=1,
    session_id="s",
    event="e",
    outcome=Outcome.ALLOW,
    steps=(DecisionStep(extension="x", kind=StepKind.ALLOWED),),
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": "now"}, "Expected `float`, got `str` - at `$.time`"),
        ({"outcome": "perhaps"}, "Invalid enum value 'perhaps' - at `$.outcome`"),
        ({"steps": [{"extension": "x"}]}, "missing required field `kind` - at `$.steps[0]`"),
        ({"steps": [{"extension": "x", "kind": "allowed", "diff": {"changes": [{"path": [None]}]}}]}, "$.steps[0].diff.changes[0].path"),
        ({"by": 1}, "$.by"),
        ({"time": float("inf")}, "$.time"),
        ({"seconds": float("nan")}, "$.seconds"),
        ({"seconds": -1.0}, "Expected `float` >= 0.0 - at `$.seconds`"),
        ({"steps_left_out": -1}, "$.steps_left_out"),
        ({"steps": [{"extension": "x", "kind": "allowed", "seconds": 1e13}]}, "$.steps[0].seconds"),
    ],
)  # fmt: skip
def test_wrong_field_is_named_with_file_and_line(change, words):
    with pytest.raises(DecisionError) as caught:
        Decision.from_json(GOOD.to_json() | change, path="d.jsonl", line=3)
    assert str(caught.value).startswith("d.jsonl, line 3: is no decision: ")
    assert words in str(caught.value)
    assert (caught.value.path, caught.value.line, caught.value.code) == ("d.jsonl", 3, "decision_invalid")
    assert isinstance(caught.value, HostError)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no JSON"),
        (b'{"time":1', "is no JSON"),
        (b'{"time":NaN}', "NaN is no number"),
        (b'{"time":1e999}', "1e999 is no number"),
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "is no"),
        (b'"' + b"x" * LINE_BYTES, f"more than {LINE_BYTES} bytes"),
        (b"7", "is no decision: Expected `object`, got `int`"),
    ],
    ids=range(8),
)
def test_line_that_is_no_decision_is_refused(data, words):
    with pytest.raises(DecisionError, match=f"^line 7: .*{words}"):
        Decision.from_line(data, line=7)
    with pytest.raises(DecisionError, match=f"^(?!line)[^,]*{words}"):
        Decision.from_line(data)
    with pytest.raises(DecisionError, match=f"^d: [^,]*{words}"):
        Decision.from_line(data, path="d")


def test_what_a_newer_program_added_is_ignored():
    assert Decision.from_json(GOOD.to_json() | {"mood": "good"}) == GOOD


def test_whole_seconds_are_read_as_seconds():
    assert Decision.from_json({**GOOD.to_json(), "seconds": 2}).seconds == 2
    assert math.isclose(Decision.from_line(attrs.evolve(GOOD, seconds=0.1).to_line()).seconds, 0.1)


def test_step_that_changed_nothing_has_no_diff():
    assert GOOD.steps[0].diff == Diff()
    assert GOOD.to_json()["steps"] == [{"extension": "x", "kind": "allowed"}]


def test_decision_that_is_nested_too_deeply_to_be_shown_is_refused():
    deep = {"extension": "x", "kind": "allowed", "diff": {"changes": [{"path": [], "kind": "added", "after": None}]}}
    line = (
        Decision.from_json(GOOD.to_json() | {"steps": [deep]}).to_line().replace(b'"path":[]', b'"path":[],"after":%s')
    )
    assert Decision.from_line(line % (b"[" * 20 + b"]" * 20)).steps[0].diff.changes[0].after
    with pytest.raises(DecisionError, match=r"^line 2: is no decision: it has more than 32 levels"):
        Decision.from_line(line % (b"[" * 40 + b"]" * 40), line=2)
