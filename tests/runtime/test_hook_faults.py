"""What hooks and agents do wrong, or at the wrong moment: the smallest input of each fault that was found."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from runtime.fakes import codes
from runtime.hookers import action, gate, hooker, observed
from runtime.test_durable_faults import write_all
from runtime.test_hook_chain import hooked

from trio_exthost import AgentRef, Progress, SimpleTool

BIG = "x" * 5_000_000


async def test_what_is_told_of_a_failed_run_can_always_be_sent_and_its_own_error_leaves_it(
    tmp_path, autojump_clock
) -> None:
    program = hooker({"event": "run_settled"}, {"event": "compaction_failed"}, events=["subagent_stop"])
    async with hooked(tmp_path, {"a": program}) as (session, guests):
        for text in ("bad \udc80", BIG):
            with (
                pytest.raises(ArithmeticError),
                session.open_run(agent=AgentRef("x")) as run,
                run.compaction(message_count=1, token_estimate=1),
            ):
                raise ArithmeticError(text)
        await trio.testing.wait_all_tasks_blocked()
        outcomes = [frame["payload"]["outcome"]["error"] for frame in observed(guests["a"], "run_settled")]
        assert outcomes[0].startswith("ArithmeticError: bad ")
        assert len(outcomes[1]) == 16 * 1024


@pytest.mark.parametrize("event", ["tool_execution_end", "tool_execution_update", "tool_result"])
async def test_a_result_larger_than_a_frame_is_the_agents_all_the_same(tmp_path, autojump_clock, event) -> None:
    async def tool(_arguments, context):
        context.send_progress(Progress(BIG, 0.5, BIG))
        return BIG

    async with hooked(tmp_path, {"a": hooker({"event": event})}, tools=[SimpleTool("x", "", {}, tool)]) as (session, _):
        with session.open_run() as run:
            async with run.tool_call("t", "x", {}) as call:
                assert (await call.execute()).text == BIG


async def test_progress_after_the_end_of_a_call_opens_no_stream(tmp_path, autojump_clock) -> None:
    contexts = []

    async def tool(_arguments, context):
        contexts.append(context)
        return "done"

    program = hooker({"event": "tool_execution_update"})
    async with hooked(tmp_path, {"a": program}, tools=[SimpleTool("x", "", {}, tool)]) as (session, _):
        with session.open_run() as run:
            async with run.tool_call("t", "x", {}) as call:
                await call.execute()
        contexts[0].send_progress(Progress("late", 0.5, ""))
        assert len(session.observing.streams) == 0


async def test_messages_of_one_id_in_two_runs_are_two_streams(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker({"event": "message_update"})}) as (session, guests):
        with session.open_run() as one, session.open_run() as other:
            async with one.assistant_text("m") as first, other.assistant_text("m") as second:
                await first.feed("of the first")
                await second.feed("of the second")
                await trio.testing.wait_all_tasks_blocked()
        told = [frame["payload"]["message"]["content"] for frame in observed(guests["a"])]
        assert sorted(told) == ["of the first", "of the second"]


async def test_an_update_that_cannot_be_sent_ends_nobody(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker({"event": "message_update"})}) as (session, _):
        with session.open_run() as run:
            async with run.assistant_text("m\udc80") as text:
                assert await text.feed("hi") == "hi"
                await trio.testing.wait_all_tasks_blocked()
        assert "events_dropped" in codes(session.host)


@pytest.mark.parametrize("dispose", [[], [99]])
async def test_an_outcome_in_an_answer_that_is_refused_does_not_count(tmp_path, autojump_clock, dispose) -> None:
    def reply(event, payload):
        return {"dispose": dispose, **action("emit_command_outcome", outcome={"status": "success"})}

    async with hooked(tmp_path, {"a": hooker({"event": "input"}, reply=reply)}) as (session, _):
        with session.open_run() as run:
            assert ((await run.input("hi")).outcome is None) == bool(dispose)


async def change_during_the_chain(tmp_path, *frames):
    """A gate that consents and then sends these; another one changes the arguments, so it would be asked once more."""

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="hook", descriptor={"event": "tool_call"})
        guest.send(type="ready")
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] == "invoke":
                guest.send(type="invoke_result", id=frame["id"], **gate("allow"))
                for each in frames:
                    guest.send(**each)

    rewriter = hooker({"event": "tool_call"}, reply=lambda *_: action("replace_arguments", arguments={"n": 2}))
    async with hooked(tmp_path, {"a": program, "b": rewriter}) as (session, guests):
        await session.intercept("tool_call", {"tool_id": "t", "tool_name": "x", "tool_args": {}})
        return [frame["registration_id"] for frame in guests["a"].received if frame["type"] == "invoke"]


async def test_a_hook_that_has_gone_is_asked_no_more_also_in_the_same_chain(tmp_path, autojump_clock) -> None:
    dispose = {"type": "dispose", "registration_id": 1}
    assert await change_during_the_chain(tmp_path, dispose) == [1]
    again = {"type": "register", "registration_id": 2, "kind": "hook", "descriptor": {"event": "tool_call"}}
    assert await change_during_the_chain(tmp_path, dispose, again) == [1, 2]


async def test_what_a_hook_wants_to_be_asked_about_is_looked_at_when_its_turn_comes(tmp_path, autojump_clock) -> None:
    descriptor = {"event": "tool_call", "payload_schema": {"required": ["never"]}}
    assert await change_during_the_chain(
        tmp_path, {"type": "update", "registration_id": 1, "descriptor": descriptor}
    ) == [1]


async def test_a_value_that_grows_beyond_a_frame_is_the_fault_of_who_makes_it_grow(tmp_path, autojump_clock) -> None:
    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False)
        for number in (1, 2, 3):
            guest.send(type="register", registration_id=number, kind="hook", descriptor={"event": "before_run"})
        guest.send(type="ready")
        message = {"role": "user", "content": "x" * 3_000_000}
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] == "invoke":
                answer = action("patch_run_context", messages=[message])
                await write_all(guest, type="invoke_result", id=frame["id"], **answer)

    async with hooked(tmp_path, {"a": program, "b": hooker({"event": "before_run"})}) as (session, _):
        with session.open_run() as run:
            begun = await run.begin()
        assert len(begun.messages) == 1
        assert [each.kind.value for each in begun.verdict.steps] == ["rewrote", "failed", "failed", "allowed"]


def holding(count):
    return hooker(
        {"event": "message_delta"},
        reply=lambda _, payload: action(
            "replace_text", text=payload["text"], hold=0 if payload["final"] else min(count, len(payload["text"]))
        ),
    )


@pytest.mark.parametrize("gone", [["a", "b"], ["b", "a"], ["b"], ["a"]])
async def test_what_hooks_held_that_have_gone_stays_in_its_order(tmp_path, autojump_clock, gone) -> None:
    async with hooked(tmp_path, {"a": holding(3), "b": holding(2)}) as (session, _):
        with session.open_run() as run:
            async with run.assistant_text("m") as text:
                shown = await text.feed("a" * 256 + "bcdefghij")
                for name in gone:
                    await session.unload(name)
                shown += await text.feed("klmno")
                assert shown + await text.finish() == "a" * 256 + "bcdefghijklmno"


async def test_text_whose_taking_was_cancelled_comes_with_the_end(tmp_path, autojump_clock) -> None:
    silent = hooker({"event": "message_delta"}, reply=lambda _, payload: {} if payload["final"] else None)
    async with hooked(tmp_path, {"a": holding(3), "b": silent}) as (session, _):
        with session.open_run() as run:
            async with run.assistant_text("m") as text:
                with trio.move_on_after(1) as scope:
                    await text.feed("x" * 256)
                assert scope.cancelled_caught
                assert await text.finish() == "x" * 256
