"""The chain's rules, one small case each."""

import attrs
import pytest

from trio_exthost.hooks import INTERCEPT_POINTS
from trio_exthost.hooks.points import WHOLE
from trio_exthost.policy import Answer, Chain, Failure, OnFailure, StepKind
from trio_exthost.policy.chain import same_json


class Named:
    def __init__(self, name):
        self.name = name


A, B = Named("a"), Named("b")
TOOL = INTERCEPT_POINTS["tool_call"]


def rewrite(value):
    return Answer(replaces=True, replacement=value)


def test_value_rewritten_after_consent_is_shown_to_the_first_member_again_and_its_rewrite_is_ignored():
    chain = Chain(TOOL, {"tool_args": {"x": 1}}, [A, B])
    assert chain.next_member() is A
    chain.answer(Answer())
    assert chain.next_member() is B
    chain.answer(rewrite({"x": 2}))
    assert (chain.next_member(), chain.is_again, chain.payload["tool_args"]) == (A, True, {"x": 2})
    chain.answer(rewrite({"x": 3}))
    assert chain.next_member() is None
    verdict = chain.verdict()
    assert verdict.value["tool_args"] == {"x": 2}
    assert verdict.original["tool_args"] == {"x": 1}
    assert verdict.steps[-1].rewrite_ignored
    assert verdict.steps[-1].is_again


def test_value_rewritten_back_to_what_was_consented_to_is_not_asked_about_again():
    chain = Chain(TOOL, {"tool_args": {"x": 1}}, [A, B, Named("c")])
    for answer in (Answer(), rewrite({"x": 2}), rewrite({"x": 1})):
        chain.next_member()
        chain.answer(answer)
    assert (chain.next_member(), chain.is_again) == (B, True)


@pytest.mark.parametrize(("key", "before"), [("tool_args", {"x": 1}), (WHOLE, {"tool_args": {"x": 1}, "id": "7"})])
def test_step_that_rewrote_says_from_what_to_what_and_why(key, before):
    chain = Chain(attrs.evolve(TOOL, value_key=key), {"tool_args": {"x": 1}, "id": "7"}, [A, B])
    for answer in (attrs.evolve(rewrite({"x": 2}), reason="two is better"), rewrite({"x": 2})):
        chain.next_member()
        chain.answer(answer)
    assert [(step.kind, step.reason, step.before, step.after) for step in chain.verdict().steps] == [
        (StepKind.REWROTE, "two is better", before, {"x": 2}),
        (StepKind.ALLOWED, "", None, None),
    ]


def test_true_in_place_of_one_is_a_rewrite():
    chain = Chain(TOOL, {"tool_args": {"dry_run": 1}}, [A])
    chain.next_member()
    chain.answer(rewrite({"dry_run": True}))
    assert chain.verdict().value["tool_args"]["dry_run"] is True
    assert chain.verdict().steps[0].kind is StepKind.REWROTE


def test_caller_that_changes_its_object_meanwhile_changes_nothing_that_was_consented_to():
    mine = {"tool_args": {"paths": ["a"]}}
    chain = Chain(TOOL, mine, [A])
    chain.next_member()
    mine["tool_args"]["paths"].append("b")
    chain.answer(Answer())
    assert chain.verdict().value["tool_args"] == chain.verdict().original["tool_args"] == {"paths": ["a"]}


@pytest.mark.parametrize("event", INTERCEPT_POINTS)
def test_failure_with_policy_block_blocks_where_the_point_can_block(event):
    chain = Chain(INTERCEPT_POINTS[event], {}, [A])
    chain.next_member()
    chain.answer(Failure(StepKind.TIMED_OUT, "gave no answer", OnFailure.BLOCK))
    assert chain.verdict().blocked is (event != "before_agent_start")
    assert chain.verdict().steps[0].policy is OnFailure.BLOCK


def test_refusal_without_a_reason_gets_a_sentence():
    chain = Chain(TOOL, {}, [A])
    chain.next_member()
    chain.answer(Answer(block=True))
    assert chain.verdict().reason == "a refused without giving a reason"


def test_answer_that_nobody_was_asked_for_is_an_error_of_ours():
    with pytest.raises(AssertionError):
        Chain(TOOL, {}, [A]).answer(Answer())
    with pytest.raises(AssertionError):
        Chain(TOOL, {}, [A]).skip(StepKind.OWN_CALL)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ((1, 2), [1, 2], True),
        (1, True, False),
        (1, 1.0, False),
        ([0], [False], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 2], False),
        ({}, [], False),
        (None, "", False),
    ],
)
def test_values_are_compared_as_json(one, other, same):
    assert same_json(one, other) is same_json(other, one) is same
