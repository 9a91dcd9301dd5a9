"""The chain in the runtime: any members, in any state, under any policy, keep its laws."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from runtime.fakes import Guest, serve, world

from trio_exthost import Deadlines, ExtensionPolicy, OnFailure, Outcome, PointPolicy, Policy, StepKind, Verdict

ANSWERS = {
    "allows": {},
    "blocks": {"block": True, "reason": "no"},
    "rewrites": {"modified_args": {"by": "somebody"}},
    "answers nonsense": {"modified_args": []},
    "hangs": None,
}
STATES = st.sampled_from([*ANSWERS, "is not installed", "never subscribes", "dies at once"])
MEMBERS = st.lists(
    st.fixed_dictionaries(
        {
            "state": STATES,
            "required": st.booleans(),
            "tightens": st.booleans(),
            "operator": st.sampled_from([None, None, "allow", "block"]),
            "priority": st.integers(0, 1),
        }
    ),
    max_size=4,
)
UNUSABLE = ("answers nonsense", "hangs", "is not installed", "never subscribes", "dies at once")


def program(state: str):
    if state == "never subscribes":
        return serve

    async def member(guest: Guest) -> None:
        if state == "dies at once":
            await trio.lowlevel.checkpoint()
            return
        guest.greet(intercept=["tool_call"])
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            answer = ANSWERS[state]
            if frame["type"] == "event_intercept" and answer is not None:
                guest.send(type="event_intercept_response", id=frame["id"], **answer)

    return member


def policy_for(members: list[dict[str, Any]]) -> Policy:
    def said(member: dict[str, Any]) -> ExtensionPolicy:
        points = {"tool_call": PointPolicy(on_failure=member["operator"])} if member["operator"] else {}
        guards = ["tool:bash"] if member["required"] else []
        return ExtensionPolicy(required=member["required"], guards=guards, points=points)

    return Policy(extensions={f"m{number}": said(member) for number, member in enumerate(members)})


async def verdict_of(members: list[dict[str, Any]], folder: Path) -> Verdict:
    deadlines = Deadlines(intercept_s=1, chain_s=2.5)
    async with world(folder, policy=policy_for(members), deadlines=deadlines) as (around, host):
        for number, member in enumerate(members):
            if member["state"] != "is not installed":
                on_failure = "block" if member["tightens"] else None
                around.add(f"m{number}", program(member["state"]), priority=member["priority"], on_failure=on_failure)
        async with host.open_session("s") as session:
            await session.load_all()
            begun = trio.current_time()
            verdict = await session.intercept(
                "tool_call", {"tool_id": "1", "tool_name": "bash", "tool_args": {"command": "x"}}
            )
            assert trio.current_time() - begun <= 2.5
            assert not verdict.steps or host.decisions.of_tool("1")[0].outcome is verdict.outcome
            return verdict


def play(members: list[dict[str, Any]]) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(verdict_of, members, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))


@given(MEMBERS)
def test_any_members_under_any_policy_keep_the_laws(members) -> None:
    verdict = play(members)
    by_name = {f"m{number}": member for number, member in enumerate(members)}
    steps = {(step.extension, step.is_again): step for step in verdict.steps}
    assert len(steps) == len(verdict.steps)  # each at most twice: once, and once again about the final value
    # The order: installed ones by priority, then catalogue; those nobody has heard of count as priority 0, and come last.
    first = [step.extension for step in verdict.steps if not step.is_again]
    ranks = [
        (
            -by_name[name]["priority"] if by_name[name]["state"] != "is not installed" else 0,
            by_name[name]["state"] == "is not installed",
            name,
        )
        for name in first
    ]
    assert ranks == sorted(ranks)
    for name, member in by_name.items():
        step = steps.get((name, False))
        if member["state"] not in UNUSABLE:
            # A block is never lost.
            if step is not None and step.kind is StepKind.BLOCKED:
                assert verdict.blocked
            continue
        must_block = member["operator"] == "block" or (
            member["operator"] is None and (member["required"] or member["tightens"])
        )
        if step is not None:
            assert step.policy is (OnFailure.BLOCK if must_block else OnFailure.ALLOW)
            assert step.rule
            assert not must_block or verdict.blocked
        elif member["required"]:
            # It has its turn, or somebody before it has refused: never allowed in silence.
            assert verdict.blocked
    assert verdict.outcome in (Outcome.ALLOW, Outcome.BLOCK)
    if verdict.blocked:
        assert verdict.by == verdict.steps[-1].extension
        assert verdict.reason


@given(MEMBERS)
def test_the_same_members_and_policy_decide_the_same(members) -> None:
    def told(verdict: Verdict) -> list[tuple[Any, ...]]:
        return [(step.extension, step.kind, step.policy, step.rule, step.is_again) for step in verdict.steps]

    one, other = play(members), play(members)
    assert (one.outcome, one.by, told(one), one.value) == (other.outcome, other.by, told(other), other.value)
