"""The questions of a policy, one by one, and what it refuses to be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import names, policies, tools

from trio_exthost import Deadlines, EffectKind
from trio_exthost.errors import PolicyError
from trio_exthost.policy import (
    POINTS,
    ExtensionPolicy,
    HeadlessAsk,
    MemberKind,
    PointPolicy,
    Policy,
    RestartMode,
    RestartPolicy,
    Rule,
    Ruling,
    Stream,
)


def guard(*guards, **more):
    return ExtensionPolicy(required=True, guards=guards, **more)


# --- deadlines ---


@given(policies, names, st.sampled_from(list(POINTS)), st.sampled_from(MemberKind))
def test_deadline_is_the_most_specific_that_was_said_and_never_above_the_chain(policy, extension, point, kind):
    own = policy.extensions.get(extension, ExtensionPolicy()).points.get(point, PointPolicy()).deadline_s
    general = policy.defaults.get(point, PointPolicy()).deadline_s
    deadlines = Deadlines(intercept_s=5, transform_s=2, chain_s=10)
    wanted = own or general or (2 if kind is MemberKind.TRANSFORM else 5)
    ruling = policy.deadline_s(extension, point, kind, deadlines=deadlines)
    assert ruling.value == min(wanted, 10)
    assert (ruling.rule is Rule.CHAIN_LIMIT) == (wanted > 10)
    assert bool(ruling.where) == (own is not None or general is not None)


def test_deadline_names_the_key_that_the_chain_cut():
    policy = Policy(
        defaults={"tool_call": PointPolicy(deadline_s=4)},
        extensions={"slow": ExtensionPolicy(points={"tool_call": PointPolicy(deadline_s=60)})},
    )
    key = "extensions.slow.tool_call.deadline_s"
    assert policy.deadline_s("slow", "tool_call") == Ruling(10.0, Rule.CHAIN_LIMIT, key)
    assert policy.deadline_s("slow", "tool_call", deadlines=Deadlines(chain_s=90)) == Ruling(
        60.0, Rule.EXTENSION_POINT, key
    )
    assert policy.deadline_s("x", "tool_call") == Ruling(4.0, Rule.POINT_DEFAULT, "defaults.tool_call.deadline_s")
    assert policy.deadline_s("x", "turn_start") == Ruling(5.0, Rule.HOST_CONFIG)


# --- guards ---


@given(policies, st.builds("tool:{}".format, tools) | st.sampled_from(["tool:*", *POINTS]))
def test_guards_are_those_that_say_so_in_the_order_of_the_policy(policy, subject):
    also = {"tool:*", "tool_call"} if subject.startswith("tool:") or subject == "tool_call" else set()
    assert policy.guards(subject) == tuple(
        name for name, said in policy.extensions.items() if said.guards & {subject, *also}
    )
    assert all(policy.is_required(name) for name in policy.guards(subject))


def test_guard_of_every_tool_guards_named_ones_too():
    policy = Policy(extensions={"one": guard("tool:bash"), "all": guard("tool:*"), "point": guard("tool_call")})
    assert policy.guards("tool:bash") == ("one", "all", "point")
    assert policy.guards("tool:read") == policy.guards("tool:*") == policy.guards("tool_call") == ("all", "point")
    assert policy.guards("turn_start") == ()
    assert Policy().guards("tool:bash") == ()


def test_guards_of_nothing_that_exists_are_refused():
    with pytest.raises(PolicyError, match=r'"turn_strat" is no point \(did you mean turn_start\?\)'):
        Policy().guards("turn_strat")


# --- names ---


def test_override_needs_a_grant_of_that_name_or_of_all():
    policy = Policy(
        extensions={
            "one": ExtensionPolicy(grant=["tools.override:bash", "session.write"]),
            "all": ExtensionPolicy(grant=["tools.override"]),
        }
    )
    assert [policy.may_override(name, "bash") for name in ("one", "all", "other")] == [True, True, False]
    assert [policy.may_override(name, "read") for name in ("one", "all", "other")] == [False, True, False]
    assert policy.grants("one") == {"tools.override:bash", "session.write"}
    assert policy.grants("other") == frozenset()


@given(policies)
def test_name_is_reserved_while_somebody_who_may_override_it_by_name_refuses(policy):
    reserved = policy.reserved_tools()
    for name in ["bash", "read", "a.b", "x_1"]:
        refusing = [
            said for said in policy.extensions.values()
            if f"tools.override:{name}" in said.grant and said.on_absent != "restore"
        ]  # fmt: skip
        assert (name in reserved) == bool(refusing)
        if refusing:
            assert reserved[name] == tuple(each for each in policy.extensions if policy.may_override(each, name))
    assert list(reserved) == sorted(reserved)


def test_winner_of_a_kind_comes_before_the_winner_of_a_name():
    policy = Policy(prefer={"search": "web", "tool:search": "local", "command:Deploy": "ops", "Bash": "x"})
    assert policy.winner(EffectKind.TOOL, "search") == Ruling("local", Rule.CONFLICTS, 'conflicts.prefer."tool:search"')
    assert policy.winner(EffectKind.COMMAND, "search") == Ruling("web", Rule.CONFLICTS, "conflicts.prefer.search")
    assert policy.winner(EffectKind.COMMAND, "deploy").value == "ops"
    assert policy.winner(EffectKind.COMMAND, "bash").value == "x"
    assert policy.winner(EffectKind.TOOL, "Bash").value == "x"
    assert policy.winner(EffectKind.TOOL, "bash") is None
    assert policy.winner(EffectKind.TOOL, "deploy") is None
    with pytest.raises(PolicyError, match="nobody can be preferred for a hook"):
        policy.winner(EffectKind.HOOK, "search")


def test_names_that_no_extension_has_are_told():
    policy = Policy(extensions={"sandbx": guard("tool:bash"), "audit": ExtensionPolicy()}, prefer={"a": "web"})
    assert policy.unknown_extensions(["sandbox", "audit"]) == ("sandbx", "web")
    assert policy.unknown_extensions({"sandbx", "audit", "web"}) == ()


# --- the rest ---


def test_restart_is_the_operators_then_the_manifests():
    policy = Policy(
        extensions={
            "on": ExtensionPolicy(restart="on_crash", restart_budget=3, restart_window_s=10),
            "off": ExtensionPolicy(restart="never"),
            "slow": ExtensionPolicy(restart_delay_s=5, restart_delay_max_s=90),
        }
    )
    on = RestartPolicy(mode=RestartMode.ON_CRASH, budget=3, window_s=10)
    assert policy.restart("on") == Ruling(on, Rule.EXTENSION, "extensions.on.restart")
    assert policy.restart("off", "on_crash") == Ruling(RestartPolicy(), Rule.EXTENSION, "extensions.off.restart")
    slow = RestartPolicy(mode=RestartMode.ON_CRASH, delay_s=5, delay_max_s=90)
    assert policy.restart("slow", "on_crash") == Ruling(slow, Rule.MANIFEST)
    assert policy.restart("other") == Ruling(RestartPolicy(), Rule.BUILT_IN)


def test_ask_without_client_is_the_extensions_then_the_default_then_a_block():
    extensions = {"x": ExtensionPolicy(headless_ask="allow")}
    policy = Policy(extensions=extensions, headless_ask="block")
    assert policy.ask_without_client("x") == Ruling(HeadlessAsk.ALLOW, Rule.EXTENSION, "extensions.x.headless_ask")
    assert policy.ask_without_client("y") == Ruling(HeadlessAsk.BLOCK, Rule.DEFAULT, "defaults.headless_ask")
    assert Policy().ask_without_client("y") == Ruling(HeadlessAsk.BLOCK, Rule.BUILT_IN)


def test_stream_is_the_policys_then_the_hosts():
    policy = Policy(defaults={"assistant_message": PointPolicy(stream="show")})
    assert policy.stream() == Ruling(Stream.SHOW, Rule.POINT_DEFAULT, "defaults.assistant_message.stream")
    assert Policy().stream() == Ruling(Stream.HOLD, Rule.HOST_CONFIG)
    assert Policy().stream("show") == Ruling(Stream.SHOW, Rule.HOST_CONFIG)


# --- values ---


def test_what_says_nothing_equals_what_is_absent():
    silent = Policy(defaults={"tool_call": PointPolicy()})
    assert silent == Policy()
    assert ExtensionPolicy(points={"tool_call": PointPolicy()}) == ExtensionPolicy()
    assert hash(PointPolicy()) == hash(PointPolicy())
    assert hash(silent) == hash(Policy())


def test_policy_does_not_change_with_what_it_was_made_of():
    extensions, prefer = {"x": ExtensionPolicy()}, {"a": "x"}
    policy = Policy(extensions=extensions, prefer=prefer)
    extensions.clear()
    prefer.clear()
    assert list(policy.extensions) == ["x"]
    assert dict(policy.prefer) == {"a": "x"}


def test_words_may_be_given_as_members():
    assert PointPolicy(on_failure="block") == PointPolicy(on_failure=PointPolicy(on_failure="block").on_failure)
    assert ExtensionPolicy(guards=(), grant=frozenset()) == ExtensionPolicy()
