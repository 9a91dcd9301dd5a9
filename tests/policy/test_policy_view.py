"""A policy as it works out: rows that say what is in force, and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import names, policies

from trio_exthost import Deadlines
from trio_exthost.policy import (
    POINTS,
    Declared,
    ExtensionPolicy,
    MemberKind,
    PointPolicy,
    Policy,
    PolicyRow,
    RestartMode,
    Rule,
    effective_view,
)

declared = st.dictionaries(
    names,
    st.builds(
        Declared,
        blocks=st.booleans(),
        restart=st.sampled_from(RestartMode),
        points=st.dictionaries(st.sampled_from(list(POINTS)), st.sampled_from(MemberKind), max_size=3),
    ),
    max_size=3,
)


def short(rows):
    return [(row.extension, row.point, row.setting, row.value, row.rule.value, row.where) for row in rows]


def test_policy_that_says_nothing_shows_what_is_built_in():
    assert short(effective_view(Policy())) == [
        ("", "", "headless_ask", "block", "built_in", ""),
        ("", "assistant_message", "stream", "hold", "host_config", ""),
    ]


def test_extension_that_the_policy_does_not_name_is_shown_with_what_it_declares():
    rows = effective_view(
        Policy(),
        {"x": Declared(blocks=True, restart="on_crash", points={"tool_result": MemberKind.TRANSFORM, "turn_start": MemberKind.GATE})},
        deadlines=Deadlines(intercept_s=4, transform_s=3),
        text_stream="show",
    )  # fmt: skip
    assert short(rows)[1:] == [
        ("", "assistant_message", "stream", "show", "host_config", ""),
        ("x", "", "restart", "on_crash", "manifest", ""),
        ("x", "", "restart_budget", 5, "built_in", ""),
        ("x", "", "restart_window_s", 60.0, "built_in", ""),
        ("x", "", "restart_delay_s", 1.0, "built_in", ""),
        ("x", "", "restart_delay_max_s", 30.0, "built_in", ""),
        ("x", "", "headless_ask", "block", "built_in", ""),
        ("x", "turn_start", "on_failure", "block", "manifest", ""),
        ("x", "turn_start", "deadline_s", 4, "host_config", ""),
        ("x", "tool_result", "on_failure", "allow", "cannot_block", ""),
        ("x", "tool_result", "deadline_s", 3, "host_config", ""),
    ]


def test_everything_the_operator_says_is_shown_with_its_key():
    policy = Policy(
        defaults={
            "turn_start": PointPolicy(on_failure="block"),
            "tool_call": PointPolicy(deadline_s=60),
            "assistant_message": PointPolicy(stream="show"),
        },
        headless_ask="allow",
        extensions={
            "sandbox": ExtensionPolicy(
                required=True,
                guards=["tool:bash", "tool:*"],
                grant=["tools.override:bash", "session.write"],
                restart="on_crash",
                restart_budget=2,
            ),
            "audit": ExtensionPolicy(grant=["tools.override:x"], on_absent="restore", restart="never"),
        },
        prefer={"tool:search": "web"},
    )
    assert short(effective_view(policy)) == [
        ("", "", "headless_ask", "allow", "default", "defaults.headless_ask"),
        ("", "assistant_message", "stream", "show", "point_default", "defaults.assistant_message.stream"),
        ("", "tool_call", "deadline_s", 10.0, "chain_limit", "defaults.tool_call.deadline_s"),
        ("", "turn_start", "on_failure", "block", "point_default", "defaults.turn_start.on_failure"),
        ("audit", "", "grant", ("tools.override:x",), "extension", "extensions.audit.grant"),
        ("audit", "", "on_absent", "restore", "extension", "extensions.audit.on_absent"),
        ("audit", "", "restart", "never", "extension", "extensions.audit.restart"),
        ("audit", "", "headless_ask", "allow", "default", "defaults.headless_ask"),
        ("sandbox", "", "required", True, "extension", "extensions.sandbox.required"),
        ("sandbox", "", "guards", ("tool:*", "tool:bash"), "extension", "extensions.sandbox.guards"),
        ("sandbox", "", "grant", ("session.write", "tools.override:bash"), "extension", "extensions.sandbox.grant"),
        ("sandbox", "", "on_absent", "refuse", "built_in", ""),
        ("sandbox", "", "restart", "on_crash", "extension", "extensions.sandbox.restart"),
        ("sandbox", "", "restart_budget", 2, "extension", "extensions.sandbox.restart_budget"),
        ("sandbox", "", "restart_window_s", 60.0, "built_in", ""),
        ("sandbox", "", "restart_delay_s", 1.0, "built_in", ""),
        ("sandbox", "", "restart_delay_max_s", 30.0, "built_in", ""),
        ("sandbox", "", "headless_ask", "allow", "default", "defaults.headless_ask"),
        ("sandbox", "tool_call", "on_failure", "block", "required_guard", "extensions.sandbox.guards"),
        ("sandbox", "tool:bash", "on_failure", "block", "required_guard", "extensions.sandbox.guards"),
        ("sandbox", "tool_call", "deadline_s", 10.0, "chain_limit", "defaults.tool_call.deadline_s"),
        ("web", "tool:search", "prefer", "web", "conflicts", 'conflicts.prefer."tool:search"'),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["x", "all", "default", "None", "XXXX"])
def test_what_holds_for_all_is_not_what_one_extension_has_for_itself(name):
    default = PointPolicy(on_failure="block", deadline_s=4)
    own = ExtensionPolicy(headless_ask="allow", points={"tool_call": PointPolicy(on_failure="allow", deadline_s=1)})
    rows = effective_view(Policy(defaults={"tool_call": default}, headless_ask="block", extensions={name: own}))
    assert [row[1:4] for row in short(rows) if not row[0]] == [
        ("", "headless_ask", "block"),
        ("assistant_message", "stream", "hold"),
        ("tool_call", "on_failure", "block"),
        ("tool_call", "deadline_s", 4),
    ]


def test_how_it_takes_part_counts_for_the_tools_it_guards_too():
    policy = Policy(extensions={"x": ExtensionPolicy(required=True, guards=["tool:bash"])})
    rows = effective_view(policy, {"x": Declared(points={"tool_call": MemberKind.GATE})})
    assert [(row.point, row.value, row.rule) for row in rows if row.setting == "on_failure"] == [
        ("tool_call", "block", Rule.GATE_DEFAULT),
        ("tool:bash", "block", Rule.REQUIRED_GUARD),
    ]


@given(policies, declared)
def test_any_view_says_what_the_questions_say(policy, declared):
    rows = effective_view(policy, declared)
    assert len({(row.extension, row.point, row.setting) for row in rows}) == len(rows)
    for row in (row for row in rows if row.extension and row.setting == "on_failure"):
        said = declared.get(row.extension, Declared())
        point, tool = ("tool_call", row.point[5:]) if row.point.startswith("tool:") else (row.point, None)
        kind = said.points.get(point, MemberKind.INTERCEPTOR)
        ruling = policy.on_failure(row.extension, point, kind, tool=tool, manifest_blocks=said.blocks)
        assert (row.value, row.rule, row.where) == (ruling.value.value, ruling.rule, ruling.where)
    shown = {(row.extension, row.point) for row in rows}
    for name, said in declared.items():
        assert {(name, point) for point in said.points} <= shown
    for name, said in policy.extensions.items():
        assert {(name, "tool_call" if each == "tool:*" else each) for each in said.guards} <= shown
    named = [row.extension for row in rows if row.extension and row.setting != "prefer"]
    assert list(dict.fromkeys(named)) == sorted({*policy.extensions, *declared})


def test_row_is_a_value():
    assert PolicyRow("x", "", "required", True, Rule.EXTENSION) == PolicyRow("x", "", "required", True, Rule.EXTENSION)
