"""The chain against a plain model of its rules: any members, answers, failures, policies, own calls, points."""

import copy
import itertools

import attrs
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.hooks import INTERCEPT_POINTS
from trio_exthost.policy import Answer, Chain, Failure, OnFailure, Outcome, StepKind

FAILURES = [StepKind.TIMED_OUT, StepKind.FAILED, StepKind.NOT_RUNNING, StepKind.OVERLOADED]
OWN_CALL = "own call"


@attrs.frozen
class Member:
    name: str
    answers: tuple  # the first, and the one when asked again


# Few values, so that a rewrite often comes back to an earlier one; true and 1 are equal for Python, not for JSON.
values = st.sampled_from(["a", "b", "", 1, True, {"x": 1}, {"x": True}, [1], [1, 2]])
answers = st.one_of(
    st.just(Answer()),
    st.builds(
        Answer,
        block=st.booleans(),
        ask=st.booleans(),
        reason=st.sampled_from(["", "no"]),
        replaces=st.booleans(),
        replacement=values,
    ),
    st.builds(Answer, reason=st.just("better"), replaces=st.just(True), replacement=values),
    st.builds(Failure, st.sampled_from(FAILURES), st.just("gave up"), st.sampled_from(OnFailure)),
)
plans = st.lists(st.tuples(answers | st.just(OWN_CALL), answers), max_size=6).map(
    lambda pairs: [Member(f"m{number}", pair) for number, pair in enumerate(pairs)]
)
points = st.sampled_from(list(INTERCEPT_POINTS.values()))


def run(point, value, members):
    """Play it: the chain at its end, and who was asked about what, in order."""
    payload = {"other": 1} | ({point.value_key: value} if point.value_key else {})
    chain, asked = Chain(point, payload, members), []
    while (member := chain.next_member()) is not None:
        answer = member.answers[chain.is_again]
        asked.append((member.name, chain.is_again, chain.payload.get(point.value_key)))
        if answer == OWN_CALL:
            chain.skip(StepKind.OWN_CALL)
        else:
            chain.answer(answer, 0.5)
    return chain, asked


def refuses(point, answer):
    if not point.can_block or answer == OWN_CALL:
        return False
    return answer.policy is OnFailure.BLOCK if isinstance(answer, Failure) else answer.block


def expected(point, value, members):
    """The rules once more, as plainly as can be: (asked, outcome and by whom, final value, steps' kinds)."""
    asked, kinds, consents, askers = [], [], [], []

    def asks(answer):
        return isinstance(answer, Answer) and answer.ask and point.can_block

    for member in members:
        answer = member.answers[0]
        asked.append((member.name, False, value))
        if answer == OWN_CALL:
            kinds.append(StepKind.OWN_CALL)
        elif isinstance(answer, Failure):
            kinds.append(answer.kind)
        elif refuses(point, answer):
            kinds.append(StepKind.BLOCKED)
        elif answer.replaces and point.value_key and repr(answer.replacement) != repr(value):
            kinds.append(StepKind.REWROTE)
            value = answer.replacement
        else:
            kinds.append(StepKind.ASKS if asks(answer) else StepKind.ALLOWED)
        if refuses(point, answer):
            return asked, (Outcome.BLOCK, member.name), value, kinds
        if asks(answer):
            askers.append(member.name)
        if kinds[-1] in {StepKind.REWROTE, StepKind.ALLOWED, StepKind.ASKS} and point.can_block:
            consents.append((member, value))
    for member, seen in consents:
        if repr(seen) != repr(value):
            answer = member.answers[1]
            asked.append((member.name, True, value))
            if isinstance(answer, Failure):
                kinds.append(answer.kind)
            elif refuses(point, answer):
                kinds.append(StepKind.BLOCKED)
            else:
                kinds.append(StepKind.ASKS if asks(answer) else StepKind.ALLOWED)
            if refuses(point, answer):
                return asked, (Outcome.BLOCK, member.name), value, kinds
            if asks(answer):
                askers.append(member.name)
    outcome = (Outcome.ASK, askers[0]) if askers else (Outcome.ALLOW, None)
    return asked, outcome, value, kinds


@given(points, values, plans)
def test_any_plan_is_folded_as_the_rules_say(point, value, members):
    chain, asked = run(point, copy.deepcopy(value), members)
    verdict = chain.verdict()
    want_asked, (outcome, by), final, kinds = expected(point, value, members)
    assert repr(asked) == repr(
        want_asked if point.value_key else [(name, again, None) for name, again, _ in want_asked]
    )
    assert [step.kind for step in verdict.steps] == kinds
    assert (verdict.by, verdict.outcome) == (by, outcome)
    assert (verdict.blocked, verdict.allowed) == (outcome is Outcome.BLOCK, outcome is Outcome.ALLOW)
    if point.value_key:
        assert repr(verdict.value[point.value_key]) == repr(final)
        assert repr(verdict.original[point.value_key]) == repr(value)
    assert verdict.value["other"] == verdict.original["other"] == 1


@given(points, values, plans)
def test_any_plan_keeps_the_laws_of_the_chain(point, value, members):
    chain, asked = run(point, value, members)
    verdict = chain.verdict()
    names = [member.name for member in members]
    first, again = ([name for name, is_again, _ in asked if is_again is which] for which in (False, True))
    assert first == names[: len(first)]  # the caller's order, each once
    assert again == [name for name in names if name in again]  # the same order, each once more at most
    assert first == names or verdict.blocked
    assert (point.event != "before_agent_start") or not (verdict.blocked or again)
    assert (point.event != "turn_start") or (verdict.value == verdict.original and not again)
    # Whoever refused ended it: nobody is asked after that, and the verdict says so.
    refusals = [
        name
        for name, is_again, _ in asked
        if refuses(point, next(m for m in members if m.name == name).answers[is_again])
    ]
    assert refusals == ([verdict.by] if verdict.blocked else [])
    assert not verdict.blocked or (asked[-1][0] == verdict.by and verdict.reason)
    assert not any(step.is_again and step.kind is StepKind.REWROTE for step in verdict.steps)
    assert chain.next_member() is None


@given(points, values, plans)
def test_the_same_plan_gives_the_same_verdict_and_changes_nothing_of_the_caller(point, value, members):
    before = repr((value, members))
    (one, asked_one), (other, asked_other) = run(point, value, members), run(point, value, members)
    assert repr((one.verdict(), asked_one)) == repr((other.verdict(), asked_other))
    assert repr((value, members)) == before


@given(points, values, plans)
def test_any_explanation_has_a_line_per_step(point, value, members):
    verdict = run(point, value, members)[0].verdict()
    lines = verdict.explain().split("\n")
    assert lines[0].startswith(f"{point.event}: {verdict.outcome.value}")
    for line, step in itertools.zip_longest(lines[1:], verdict.steps):
        assert line == "  " + step.explain()
