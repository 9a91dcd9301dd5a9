"""Gates and transforms of the hook contract, over in-process pipes: order, folding, failure, filters, dry runs."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from runtime.fakes import assert_nothing_left, codes, serve, world
from runtime.hookers import action, gate, hooker, invoked, observed

from trio_exthost import ExtensionPolicy, HostClient, ModelRef, Outcome, PayloadError, Policy, SimpleTool, ToolStatus
from trio_exthost.policy.policy_file import parse_policy


@asynccontextmanager
async def hooked(tmp_path, programs, *, sections=None, policy=None, deadlines=None, **options):
    """A session with these programs, loaded; yields it with the fakes by name."""
    async with world(tmp_path, policy=policy, deadlines=deadlines) as (around, host):
        for name, program in programs.items():
            around.add(name, program, **(sections or {}).get(name, {}))
        async with host.open_session("s", **options) as session:
            await session.load_all()
            yield session, around.guests
        assert_nothing_left(session)


def steps(verdict):
    return [(step.extension, step.kind.value) for step in verdict.steps]


async def test_gates_and_interceptors_form_one_chain_in_one_order(tmp_path, autojump_clock) -> None:
    asked = []

    def remember(name, reply):
        def answer(event, payload):
            asked.append(name)
            return reply

        return answer

    async def zot(guest):
        guest.greet(intercept=["tool_call"])
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                asked.append("zot")
                guest.send(type="event_intercept_response", id=frame["id"], modified_args={"n": 2})

    programs = {
        "first": hooker({"event": "tool_call", "class": "gate"}, reply=remember("first", gate("allow"))),
        "zot": zot,
        "last": hooker(
            {"event": "tool_call", "class": "gate", "priority": 1},
            {"event": "tool_call", "class": "gate", "priority": 2},
            reply=remember("last", gate("abstain")),
        ),
        "urgent": hooker({"event": "tool_call"}, reply=remember("urgent", gate("allow"))),
    }
    async with hooked(tmp_path, programs, sections={"urgent": {"priority": 5}}) as (session, guests):
        with session.open_run() as run:
            async with run.tool_call(
                "t1", "nothing", {"n": 1}, assistant_message={"role": "assistant", "content": "x"}
            ) as call:
                assert call.verdict.allowed
                assert call.arguments == {"n": 2}
        # Who had consented to the old arguments is asked once more about the new ones.
        assert asked == ["urgent", "first", "zot", "last", "last", "urgent", "first"]
        numbers = [frame["registration_id"] for frame in guests["last"].received if frame["type"] == "invoke"]
        assert numbers == [2, 1]  # by their own priority
        shown = invoked(guests["first"])[0]
        assert shown["payload"] == {
            "tool_call": {"id": "t1", "name": "nothing"},
            "args": {"n": 1},
            "assistant_message": {"role": "assistant", "content": "x"},
        }
        assert shown["context"]["scope"] == {"run_id": run.id, "tool_call_id": "t1"}
        assert shown["context"]["dry_run"] is False


@pytest.mark.parametrize("kind", ["deny", "cancel"])
async def test_the_first_refusal_ends_the_chain(tmp_path, autojump_clock, kind) -> None:
    programs = {
        "a": hooker({"event": "tool_call"}, reply=lambda *_: gate(kind, "not today", "closed")),
        "b": hooker({"event": "tool_call"}),
    }
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            async with run.tool_call("t1", "x", {}) as call:
                assert (call.verdict.outcome, call.verdict.by, call.verdict.reason, call.verdict.code) == (
                    Outcome.BLOCK,
                    "a",
                    "not today",
                    "closed",
                )
                result = await call.execute()
                assert (result.status, result.text) == (ToolStatus.BLOCKED, "not today")
        assert not invoked(guests["b"])


async def test_a_gate_replaces_arguments_and_asks(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {**gate("ask", "sure?"), **action("replace_arguments", arguments={"safe": True})}

    async with hooked(tmp_path, {"a": hooker({"event": "tool_call"}, reply=reply)}) as (session, _):
        with session.open_run() as run:
            async with run.tool_call("t1", "x", {"safe": False}) as call:
                assert (call.verdict.outcome, call.arguments) == (Outcome.ASK, {"safe": True})
                assert (await call.execute()).status is ToolStatus.BLOCKED  # nobody is there to be asked


async def test_a_gate_that_fails_refuses_and_a_transform_that_fails_keeps_the_value(tmp_path, autojump_clock) -> None:
    programs = {
        "silent": hooker({"event": "before_compaction"}, {"event": "context"}, reply=lambda *_: None),
        "wrong": hooker({"event": "context"}, reply=lambda *_: action("replace_input", message={})),
        "right": hooker({"event": "context"}, reply=lambda *_: action("replace_context", messages=[])),
    }
    async with hooked(tmp_path, programs) as (session, _):
        with session.open_run() as run:
            began = trio.current_time()
            verdict = await run.before_compaction("summary")
            assert (verdict.blocked, verdict.by, verdict.code) == (True, "silent", "extension_gate_failed")
            assert trio.current_time() - began == pytest.approx(5, abs=0.1)
            began = trio.current_time()
            assert await run.context([{"role": "user", "content": "hi"}]) == []
            assert trio.current_time() - began == pytest.approx(2, abs=0.1)
        (last,) = [each for each in session.host.decisions if each.event == "context"]
        assert steps(last) == [("silent", "timed_out"), ("wrong", "failed"), ("right", "rewrote")]


async def test_the_operator_may_let_a_failing_gate_pass(tmp_path, autojump_clock) -> None:
    policy = parse_policy('[extensions.a.before_compaction]\non_failure = "allow"\n')
    programs = {
        "a": hooker({"event": "before_compaction"}, reply=lambda *_: {"error": {"code": "x", "message": "broken"}})
    }
    async with hooked(tmp_path, programs, policy=policy) as (session, _):
        with session.open_run() as run:
            assert (await run.before_compaction("summary")).allowed


async def test_a_payload_schema_is_a_filter(tmp_path, autojump_clock) -> None:
    schema = {"type": "object", "properties": {"tool_call": {"properties": {"name": {"const": "bash"}}}}}
    programs = {"a": hooker({"event": "tool_call", "payload_schema": schema}, reply=lambda *_: gate("deny"))}
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            async with run.tool_call("t1", "read", {}) as call:
                assert call.verdict.allowed
                assert steps(call.verdict) == [("a", "filtered")]
            async with run.tool_call("t2", "bash", {}) as call:
                assert call.verdict.blocked
        assert len(invoked(guests["a"])) == 1


async def test_an_answer_that_holds_a_wrong_action_is_not_applied_at_all(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {
            "dispose": [2],
            "actions": [
                {"kind": "emit_diagnostic", "code": "c", "severity": "info", "message": "m"},
                {"kind": "replace_context", "messages": "none"},
            ],
        }

    async with hooked(tmp_path, {"a": hooker({"event": "context"}, {"event": "input"}, reply=reply)}) as (session, _):
        with session.open_run() as run:
            assert await run.context([]) == []
        assert session.registrations.active_count == 2
        assert "extension_says" not in codes(session.host)


async def test_a_disposal_in_an_answer_counts_from_then_on(tmp_path, autojump_clock) -> None:
    programs = {"a": hooker({"event": "context"}, reply=lambda *_: {"dispose": [1]})}
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            await run.context([])
            await run.context([])
        assert len(invoked(guests["a"])) == 1


async def test_an_extension_is_not_asked_about_its_own_call(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker({"event": "tool_call"}, reply=lambda *_: gate("deny"))}) as (session, _):
        verdict = await session.intercept("tool_call", {"tool_id": "t", "tool_name": "x", "tool_args": {}}, origin="a")
        assert (verdict.allowed, steps(verdict)) == (True, [("a", "own_call")])


async def test_a_required_guard_may_be_a_gate(tmp_path, autojump_clock) -> None:
    policy = Policy(extensions={"a": ExtensionPolicy(required=True, guards=("tool:*", "before_compaction"))})
    programs = {"a": hooker({"event": "tool_call"}, reply=lambda *_: gate("allow")), "b": serve}
    async with hooked(tmp_path, programs, policy=policy) as (session, _):
        with session.open_run() as run:
            async with run.tool_call("t1", "x", {}) as call:
                assert call.verdict.allowed
            verdict = await run.before_compaction("summary")
            assert (verdict.blocked, verdict.code) == (True, "guard_absent")
            await session.unload("a")
            async with run.tool_call("t2", "x", {}) as call:
                assert (call.verdict.blocked, call.verdict.code) == (True, "guard_absent")


async def test_a_gate_that_asks_is_answered_by_a_person_or_by_the_policy(tmp_path, autojump_clock) -> None:
    programs = {"a": hooker({"event": "before_model_selection"}, reply=lambda *_: gate("ask", "expensive"))}

    class Person(HostClient):
        says = True

        def ask_user(self, session, question) -> None:
            assert "expensive" in question.message
            question.answer(self.says)

    person = Person()
    async with hooked(tmp_path, programs, client=person) as (session, _):
        assert (await session.select_model(ModelRef("p", "big"))).allowed
        assert session.model == ModelRef("p", "big")
        person.says = False
        assert (await session.select_model(ModelRef("p", "bigger"))).blocked
        assert session.model == ModelRef("p", "big")
    async with hooked(tmp_path, programs) as (session, _):
        assert (await session.select_model(ModelRef("p", "big"))).blocked


async def test_a_dry_run_commits_nothing_and_says_who_could_not_know(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {
            **gate("deny", "never"),
            "dispose": [1],
            "actions": [{"kind": "emit_diagnostic", "code": "c", "severity": "info", "message": "m"}],
        }

    async def zot(guest):
        guest.greet(intercept=["tool_call"])
        frame = await guest.frames("event_intercept")
        guest.send(type="event_intercept_response", id=frame["id"])
        await guest.until_shutdown()

    async with hooked(tmp_path, {"zot": zot, "a": hooker({"event": "tool_call"}, reply=reply)}) as (session, guests):
        before = len(list(session.host.decisions))
        with session.open_run() as run:
            verdict = await run.what_if("tool_call", {"tool_id": "t", "tool_name": "x", "tool_args": {}})
        assert (verdict.blocked, verdict.is_dry, verdict.unaware) == (True, True, ("zot",))
        assert "asked as if it were real: zot" in verdict.explain()
        assert invoked(guests["a"])[0]["context"]["dry_run"] is True
        assert session.registrations.active_count == 2  # the hook, and the interception
        assert len(list(session.host.decisions)) == before
        assert "extension_says" not in codes(session.host)


async def test_only_points_that_the_agent_dispatches_can_be_hooked(tmp_path, autojump_clock) -> None:
    programs = {"a": hooker({"event": "context"}, {"event": "input"}, {"event": "before_provider_request_raw"})}
    async with hooked(tmp_path, programs, points=["context"]) as (_, guests):
        await trio.testing.wait_all_tasks_blocked()
        received = guests["a"].received
        (ack,) = [frame for frame in received if frame["type"] == "hello_ack"]
        assert ack["dialect"]["events"] == ["context"]
        assert [(f["registration_id"], f["code"]) for f in received if f["type"] == "rejected"] == [
            (2, "event_not_dispatched"),
            (3, "event_not_dispatched"),
        ]


async def test_a_bound_hook_is_asked_in_its_run_only(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"], events=["go"])
        go = await guest.frames("event")
        guest.send(
            type="register",
            registration_id=1,
            kind="hook",
            descriptor={"event": "context"},
            binding={"scope": "run", "id": go["run"]},
        )
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] == "invoke":
                guest.send(type="invoke_result", id=frame["id"], **action("replace_context", messages=[]))

    async with hooked(tmp_path, {"a": program}, sections={"a": {"scope": "run"}}) as (session, guests):
        with session.open_run() as one, session.open_run() as other:
            session.emit("go", {"run": one.id})
            await trio.testing.wait_all_tasks_blocked()
            assert [frame["type"] for frame in guests["a"].received][-1] == "registered"
            message = {"role": "user", "content": "x"}
            assert await other.context([message]) == [message]
            assert await one.context([message]) == []
        with session.open_run() as third:
            assert await third.context([message]) == [message]


async def test_a_point_may_be_observed_as_well_as_asked_about(tmp_path, autojump_clock) -> None:
    programs = {
        "a": hooker({"event": "tool_call", "class": "observe"}),
        "b": hooker({"event": "tool_call"}, reply=lambda *_: action("replace_arguments", arguments={"n": 2})),
    }
    tool = SimpleTool("x", "", {}, lambda arguments, _context: str(arguments))
    async with hooked(tmp_path, programs, tools=[tool]) as (session, guests):
        with session.open_run() as run:
            async with run.tool_call("t1", "x", {"n": 1}) as call:
                await call.execute()
        await trio.testing.wait_all_tasks_blocked()
        (frame,) = observed(guests["a"], "tool_call")
        assert frame["payload"]["args"] == {"n": 2}
        assert frame["context"]["scope"]["run_id"] == run.id


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("message_end", {}),
        ("message_end", {"message": 5}),
        ("tool_call", {"tool_args": []}),
        ("context", {"messages": 1}),
    ],
)
async def test_a_payload_that_is_not_as_the_schema_says_is_the_agents_fault_and_nobodys_failure(
    tmp_path, autojump_clock, event, payload
) -> None:
    programs = {"a": hooker({"event": event}), "b": hooker({"event": event, "class": "observe"})}
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            with pytest.raises(PayloadError, match=event):
                await run.what_if(event, payload)
        assert not invoked(guests["a"])
        assert "policy_decided" not in codes(session.host)
