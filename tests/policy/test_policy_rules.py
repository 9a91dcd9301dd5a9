"""Which rule decides about a failure: the table against the sentences it stands for, and a case for each row."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import names, policies, tools

from trio_exthost.errors import PolicyError
from trio_exthost.policy import (
    POINTS,
    PRECEDENCE,
    ExtensionPolicy,
    MemberKind,
    OnFailure,
    PointPolicy,
    Policy,
    Rule,
    Ruling,
)
from trio_exthost.policy.rules import FailureCase, decide_failure

ALLOW, BLOCK = OnFailure.ALLOW, OnFailure.BLOCK
GUARD = ExtensionPolicy(required=True, guards=["tool:bash"])


def naive(case):
    """The rules once more, as prose would have them."""
    if not case.can_block:
        return "cannot_block", ALLOW
    if case.extension_point:
        return "extension_point", case.extension_point
    if case.guards:
        return "required_guard", BLOCK
    if case.manifest_blocks:
        return "manifest", BLOCK
    if case.point:
        return "point_default", case.point
    return f"{case.kind.value}_default", BLOCK if case.kind is MemberKind.GATE else ALLOW


def test_every_case_is_decided_as_the_naive_model_says():
    flags, said = (False, True), (None, ALLOW, BLOCK)
    seen = set()
    for can_block, kind, extension_point, guards, manifest_blocks, point in itertools.product(
        flags, MemberKind, said, flags, flags, said
    ):
        case = FailureCase(
            can_block=can_block, kind=kind, extension_point=extension_point,
            guards=guards, manifest_blocks=manifest_blocks, point=point,
        )  # fmt: skip
        rule, value = decide_failure(case)
        assert (rule.value, value) == naive(case)
        seen.add(rule)
    assert {rule for rule, _ in PRECEDENCE} < seen


@given(policies, names, st.sampled_from(list(POINTS)), st.sampled_from(MemberKind), st.none() | tools, st.booleans())
def test_any_policy_decides_as_the_naive_model_says(policy, extension, point, kind, tool, manifest_blocks):
    said = policy.extensions.get(extension, ExtensionPolicy())
    subjects = {"tool_call", "tool:*", f"tool:{tool}"} if point == "tool_call" else {point}
    rule, value = naive(
        FailureCase(
            can_block=POINTS[point],
            kind=kind,
            extension_point=said.points.get(point, PointPolicy()).on_failure,
            guards=bool(said.guards & subjects),
            manifest_blocks=manifest_blocks,
            point=policy.defaults.get(point, PointPolicy()).on_failure,
        )
    )
    ruling = policy.on_failure(extension, point, kind, tool=tool, manifest_blocks=manifest_blocks)
    assert (ruling.rule.value, ruling.value) == (rule, value)
    assert bool(ruling.where) == (ruling.rule in {Rule.EXTENSION_POINT, Rule.REQUIRED_GUARD, Rule.POINT_DEFAULT})


@given(policies, names, st.sampled_from(list(POINTS)), st.sampled_from(MemberKind), tools)
def test_no_general_word_loosens_a_guard_or_a_manifest(policy, extension, point, kind, tool):
    """Only `[extensions.<it>.<point>] on_failure = "allow"` lets a required guard's or a tightened one's failure pass."""
    guards = extension in policy.guards(f"tool:{tool}" if point == "tool_call" else point)
    for manifest_blocks in (False, True):
        ruling = policy.on_failure(extension, point, kind, tool=tool, manifest_blocks=manifest_blocks)
        if POINTS[point] and (guards or manifest_blocks) and ruling.value is ALLOW:
            assert ruling.rule is Rule.EXTENSION_POINT


@pytest.mark.parametrize(
    ("policy", "arguments", "options", "ruling"),
    [
        (Policy(), ("x", "tool_call"), {}, Ruling(ALLOW, Rule.INTERCEPTOR_DEFAULT)),
        (Policy(), ("x", "tool_call", MemberKind.GATE), {}, Ruling(BLOCK, Rule.GATE_DEFAULT)),
        (Policy(), ("x", "assistant_message", MemberKind.TRANSFORM), {}, Ruling(ALLOW, Rule.TRANSFORM_DEFAULT)),
        (Policy(), ("x", "tool_result", MemberKind.TRANSFORM), {"manifest_blocks": True}, Ruling(ALLOW, Rule.CANNOT_BLOCK)),
        (Policy(), ("x", "tool_call"), {"manifest_blocks": True}, Ruling(BLOCK, Rule.MANIFEST)),
        (
            Policy(defaults={"tool_call": PointPolicy(on_failure="allow")}),
            ("x", "tool_call"),
            {"manifest_blocks": True},
            Ruling(BLOCK, Rule.MANIFEST),
        ),
        (
            Policy(defaults={"tool_call": PointPolicy(on_failure="allow")}),
            ("x", "tool_call", MemberKind.GATE),
            {},
            Ruling(ALLOW, Rule.POINT_DEFAULT, "defaults.tool_call.on_failure"),
        ),
        (
            Policy(extensions={"x": GUARD}, defaults={"tool_call": PointPolicy(on_failure="allow")}),
            ("x", "tool_call"),
            {"tool": "bash"},
            Ruling(BLOCK, Rule.REQUIRED_GUARD, "extensions.x.guards"),
        ),
        (Policy(extensions={"x": GUARD}), ("x", "tool_call"), {"tool": "ls"}, Ruling(ALLOW, Rule.INTERCEPTOR_DEFAULT)),
        (Policy(extensions={"x": GUARD}), ("x", "tool_call"), {}, Ruling(ALLOW, Rule.INTERCEPTOR_DEFAULT)),
        (
            Policy(extensions={"a b": ExtensionPolicy(points={"tool_call": PointPolicy(on_failure="allow")})}),
            ("a b", "tool_call", MemberKind.GATE),
            {"manifest_blocks": True},
            Ruling(ALLOW, Rule.EXTENSION_POINT, 'extensions."a b".tool_call.on_failure'),
        ),
    ],
)  # fmt: skip
def test_failure_is_decided_by_the_strongest_rule(policy, arguments, options, ruling):
    assert policy.on_failure(*arguments, **options) == ruling


def test_ruling_explains_itself_in_a_line():
    policy = Policy(extensions={"x": GUARD})
    failure = policy.on_failure("x", "tool_call", tool="bash")
    assert failure.explain() == "block [required_guard: extensions.x.guards]"
    assert policy.deadline_s("x", "tool_call").explain() == "5.0 [host_config]"
    assert policy.ask_without_client("x").explain() == "block [built_in]"
    assert policy.restart("x").explain() == "never [built_in]"
    on_crash = "on_crash, at most 5 times in 60 s, after 1 to 30 s [manifest]"
    assert policy.restart("x", "on_crash").explain() == on_crash


def test_point_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(PolicyError, match=r'"toolcall" is no point \(did you mean tool_call\?\)'):
        Policy().on_failure("x", "toolcall")
    with pytest.raises(PolicyError, match='"qqq" is no point'):
        Policy().deadline_s("x", "qqq")
