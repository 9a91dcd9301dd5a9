"""Every point that a run or a session has is dispatched, in order, with a payload that its schema describes."""

from __future__ import annotations

import jsonschema_rs
import pytest
import trio
import trio.testing
from runtime.fakes import codes
from runtime.hookers import action, gate, hooker, invoked, observed
from runtime.test_hook_chain import hooked

from trio_exthost import BranchTarget, ModelRef, Progress, Rejected, SessionTarget, SimpleTool
from trio_exthost.hooks import DISPATCHED, LIFE_POINTS, HookClass

REQUEST = {
    "provider": "p",
    "model": "m",
    "system_instructions": "Be kind.",
    "messages": [],
    "visible_tools": [{"name": "x", "description": "", "parameters": {"type": "object"}}],
    "executable_tool_names": ["x"],
    "generation_options": {"max_tokens": 10},
}
AWAITED = [event for event, point in LIFE_POINTS.items() if point.awaited]


async def work(session) -> None:
    """One of everything an agent does."""

    async def tool(arguments, context):
        context.send_progress(Progress("half", 0.5, "some"))
        await trio.testing.wait_all_tasks_blocked()
        return "done"

    session.host_tools["x"] = SimpleTool("x", "", {}, tool)
    await session.select_model(ModelRef("p", "m"))
    with session.open_run() as run:
        await run.input("hello")
        await run.begin(system_prompt="base", messages=[])
        await run.system_prompt("base")
        await run.turn_start(1)
        await run.context([{"role": "user", "content": "hello"}])
        with run.open_request():
            await run.model_request(REQUEST, max_tokens=100)
            run.model_failed({"message": "again"})
            run.model_response({"stop": "tool_use"})
            async with run.assistant_text("m1") as text:
                await text.feed("some text")
                await trio.sleep(0.2)
                await text.feed(" and more")
                await trio.testing.wait_all_tasks_blocked()
            run.turn_end()
            async with run.tool_call("t1", "x", {"n": 1}) as call:
                await call.execute()
        run.turn_completed(text.message, [{"tool_call_id": "t1", "content": "done"}])
        await run.before_compaction("summary")
        with run.compaction(message_count=3, token_estimate=100):
            pass
        with run.compaction(message_count=3, token_estimate=100) as compaction:
            compaction.status = "failed"
    with pytest.raises(OSError, match="gone"), session.open_run():
        raise OSError("gone")
    await session.before_switch(BranchTarget("e1", "e2"))
    session.switched(SessionTarget("s2"))
    await session.before_fork("e1")
    session.forked("e1", "s3")
    await trio.testing.wait_all_tasks_blocked()


async def test_every_point_is_dispatched_to_who_observes_it_with_a_payload_as_its_schema_says(
    tmp_path, autojump_clock
) -> None:
    descriptors = [{"event": event, "class": "observe"} for event in DISPATCHED]
    async with hooked(tmp_path, {"a": hooker(*descriptors)}) as (session, guests):
        await work(session)
    seen: dict[str, list[object]] = {}
    for frame in observed(guests["a"]):
        assert frame["session_id"] == "s"
        assert frame["context"]["sequence"] == frame["sequence"]
        seen.setdefault(frame["event"], []).append(frame["payload"])
    for envelope in invoked(guests["a"]):
        assert envelope["event"] in AWAITED
        seen.setdefault(envelope["event"], []).append(envelope["payload"])
    # message_delta is a transform of a stream: who wants to read along observes message_update.
    assert set(seen) == set(DISPATCHED) - {"message_delta"}
    for event, payloads in seen.items():
        for payload in payloads:
            jsonschema_rs.validate(LIFE_POINTS[event].payload_schema, payload)
    assert seen["message_end"] == [{"message": {"role": "assistant", "content": "some text and more", "id": "m1"}}]
    assert [each["metadata"]["status"] for each in seen["compaction_failed"]] == ["failed"]
    assert seen["run_error"] == [{"category": "failed", "message": "OSError: gone"}]
    assert len(seen["run_settled"]) == 2


async def test_every_gate_and_transform_is_asked_with_a_payload_as_its_schema_says(tmp_path, autojump_clock) -> None:
    asked = [event for event in DISPATCHED if LIFE_POINTS[event].default_class in (HookClass.GATE, HookClass.TRANSFORM)]
    async with hooked(tmp_path, {"a": hooker(*({"event": event} for event in asked))}) as (session, guests):
        await work(session)
    seen = {envelope["event"] for envelope in invoked(guests["a"])}
    assert seen == set(asked)
    for envelope in invoked(guests["a"]):
        jsonschema_rs.validate(LIFE_POINTS[envelope["event"]].payload_schema, envelope["payload"])
    numbers = [envelope["context"]["sequence"] for envelope in invoked(guests["a"])]
    assert numbers == sorted(set(numbers))


async def test_the_points_of_a_turn_come_in_their_order(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": hooker(*({"event": event, "class": "observe"} for event in DISPATCHED))}) as (
        session,
        guests,
    ):
        await work(session)
    frames = [frame for frame in observed(guests["a"]) if frame["event"] != "session_start"]
    order = [frame["event"] for frame in frames]
    want = [
        "before_model_selection", "model_selected", "input", "before_run", "run_started", "turn_started", "context",
        "before_model_request", "provider_request_failed", "provider_response", "message_start", "message_update",
        "message_end", "tool_call", "tool_execution_start", "tool_execution_update", "tool_execution_end", "tool_result",
        "turn_completed", "before_compaction", "compaction_succeeded", "compaction_failed", "run_ended", "run_settled",
        "run_error", "run_settled", "before_session_switch", "session_switched", "before_session_fork", "session_forked",
    ]  # fmt: skip
    assert [event for place, event in enumerate(order) if place == 0 or event != order[place - 1]] == want


async def test_input_is_changed_or_handled(tmp_path, autojump_clock) -> None:
    def change(event, payload):
        return action("replace_input", message={**payload["message"], "content": payload["message"]["content"].upper()})

    def handle(event, payload):
        if payload["message"]["content"] != "HANDLE":
            return {}
        return action("emit_command_outcome", outcome={"status": "rejected", "code": "no", "message": "not here"})

    programs = {
        "a": hooker({"event": "input"}, reply=change),
        "b": hooker({"event": "input"}, reply=handle),
        "c": hooker({"event": "input"}, events=["user_prompt_submit"]),
    }
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            given = await run.input("hi")
            assert (given.message["content"], given.outcome) == ("HI", None)
            handled = await run.input("handle")
            assert handled.outcome == Rejected("no", "not here")
        await trio.testing.wait_all_tasks_blocked()
        assert [frame["text"] for frame in observed(guests["c"], "user_prompt_submit")] == ["HI"]
        assert len(invoked(guests["c"])) == 1  # nobody is asked about what was handled


async def test_an_outcome_that_is_none_keeps_the_input(tmp_path, autojump_clock) -> None:
    bad = hooker({"event": "input"}, reply=lambda *_: action("emit_command_outcome", outcome={"status": "perhaps"}))
    async with hooked(tmp_path, {"a": bad}) as (session, _):
        with session.open_run() as run:
            assert (await run.input("hi")).outcome is None
        assert "policy_decided" in codes(session.host)


async def test_a_run_begins_with_what_hooks_add(tmp_path, autojump_clock) -> None:
    extra = {"role": "user", "content": "remember"}
    programs = {
        "a": hooker({"event": "before_run"}, reply=lambda *_: action("patch_run_context", messages=[extra])),
        "b": hooker({"event": "before_run"}, reply=lambda *_: action("patch_run_context", system_prompt=None)),
    }
    async with hooked(tmp_path, programs) as (session, guests):
        with session.open_run() as run:
            begun = await run.begin(system_prompt="base", messages=[{"role": "user", "content": "hi"}])
        assert (begun.system_prompt, list(begun.messages)) == (None, [{"role": "user", "content": "hi"}, extra])
        assert invoked(guests["b"])[0]["payload"]["messages"][-1] == extra


async def test_a_request_goes_through_sections_then_policies_then_hooks(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        request = payload["request"]
        return action(
            "replace_model_request",
            request={**request, "messages": [*request["messages"], {"role": "user", "content": event}]},
        )

    async def policy(guest):
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="request_policy", descriptor={"policy_id": "p"})
        guest.send(
            type="register",
            registration_id=2,
            kind="prompt_section",
            descriptor={"section_id": "s", "text": "Be brief."},
        )
        guest.send(type="ready")
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] == "invoke":
                envelope = frame["envelope"]
                guest.send(type="invoke_result", id=frame["id"], **reply(envelope["event"], envelope["payload"]))

    programs = {"hook": hooker({"event": "before_model_request"}, reply=reply), "policy": policy}
    async with hooked(tmp_path, programs, sections={"hook": {"priority": 9}}) as (session, _):
        with session.open_run() as run:
            request = await run.model_request(REQUEST)
            assert request["system_instructions"] == "Be kind.\n\nBe brief."
            assert [each["content"] for each in request["messages"]] == ["policy", "before_model_request"]
            # What `system_prompt` has put in is not put in again.
            prompt = await run.system_prompt("Be kind.")
            request = await run.model_request({**REQUEST, "system_instructions": prompt})
            assert request["system_instructions"] == "Be kind.\n\nBe brief."


@pytest.mark.parametrize("change", [{"model": "other"}, {"executable_tool_names": ["y"]}, {"visible_tools": []}])
async def test_a_request_that_may_not_stand_is_not_taken(tmp_path, autojump_clock, change) -> None:
    program = hooker(
        {"event": "before_model_request"},
        reply=lambda _, payload: action("replace_model_request", request={**payload["request"], **change}),
    )
    async with hooked(tmp_path, {"a": program}) as (session, _):
        with session.open_run() as run:
            assert await run.model_request(REQUEST) == REQUEST


async def test_a_tools_result_is_replaced_and_a_wrong_replacement_is_not(tmp_path, autojump_clock) -> None:
    content = [{"type": "text", "text": "better"}]
    programs = {
        "a": hooker(
            {"event": "tool_result"},
            reply=lambda *_: action("replace_tool_result", result={"content": content}, is_error=True),
        ),
        "b": hooker({"event": "tool_result"}, reply=lambda *_: action("replace_tool_result", result={"content": 1})),
        "c": hooker(events=["tool_result"]),
    }
    async with hooked(tmp_path, programs, tools=[SimpleTool("x", "", {}, lambda *_: "plain")]) as (session, guests):
        with session.open_run() as run:
            async with run.tool_call("t1", "x", {}) as call:
                result = await call.execute()
        assert (result.text, result.is_error) == ("better", True)
        await trio.testing.wait_all_tasks_blocked()
        (told,) = observed(guests["c"], "tool_result")
        assert (told["status"], told["result"]["content"]) == ("failed", content)


async def test_follow_ups_wait_for_the_end_of_their_run_and_do_not_go_on_for_ever(tmp_path, autojump_clock) -> None:
    count = iter(range(1000))

    def reply(event, payload):
        return action("enqueue_follow_up", follow_up_id=f"f{next(count)}", message={"role": "user", "content": "again"})

    async with hooked(
        tmp_path, {"a": hooker({"event": "before_compaction"}, reply=lambda *a: {**gate("allow"), **reply(*a)})}
    ) as (session, _):
        with session.open_run() as run:
            await run.before_compaction("x")
            assert session.next_follow_up() is None
        depths = []
        while (follow_up := session.next_follow_up()) is not None:
            depths.append(follow_up.depth)
            assert (follow_up.extension, follow_up.message["content"]) == ("a", "again")
            with session.open_run(follow_up=follow_up) as run:
                await run.before_compaction("x")
        assert depths == list(range(1, 17))
        assert "submit_refused" in codes(session.host)
        with session.open_run() as run:
            for _ in range(40):
                await run.before_compaction("x")
            assert len(session.follow_ups) == 32


async def test_the_same_follow_up_is_queued_once(tmp_path, autojump_clock) -> None:
    message = {"role": "user", "content": "again"}
    program = hooker(
        {"event": "context"}, reply=lambda *_: action("enqueue_follow_up", follow_up_id=" f ", message=message)
    )
    async with hooked(tmp_path, {"a": program}) as (session, _):
        for _ in range(2):
            with session.open_run() as run:
                await run.context([])
        assert session.next_follow_up().id == "f"
        assert session.next_follow_up() is None


async def test_what_stores_is_refused_whole_while_nothing_can(tmp_path, autojump_clock) -> None:
    def reply(event, payload):
        return {"actions": [{"kind": "set_state", "key": "k", "value": 1}, {"kind": "replace_context", "messages": []}]}

    async with hooked(
        tmp_path, {"a": hooker({"event": "context"}, reply=reply)}, sections={"a": {"permissions": ("session.write",)}}
    ) as (session, _):
        with session.open_run() as run:
            message = {"role": "user", "content": "x"}
            assert await run.context([message]) == [message]


async def test_a_diagnostic_of_an_extension_is_told_without_its_secrets(tmp_path, autojump_clock) -> None:
    program = hooker(
        {"event": "context"},
        reply=lambda *_: action(
            "emit_diagnostic",
            code="quota",
            severity="warning",
            message="nearly full",
            details={"used": 9, "key": "s3cret"},
            redacted_fields=["key"],
        ),
    )
    async with hooked(tmp_path, {"a": program}) as (session, _):
        with session.open_run() as run:
            await run.context([])
        (told,) = [each for each in session.host.diagnostics if each.code == "extension_says"]
        assert (told.extension, told.severity.value) == ("a", "warning")
        assert "quota: nearly full" in told.message
        assert "s3cret" not in told.message
