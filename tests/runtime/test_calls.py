"""Calls, answers and deadlines; what waits, what is withdrawn, what is dropped."""

from __future__ import annotations

import fcntl
import json
import math
from types import MappingProxyType

import pytest
import trio
from runtime.fakes import Client, Guest, assert_nothing_left, codes, serve, world

from trio_exthost import (
    CallAborted,
    CallTimedOut,
    EffectKind,
    ExtensionExited,
    Limits,
    MalformedReply,
    Overloaded,
    PayloadError,
    StepKind,
    UnknownCommand,
    UnknownTool,
    WrongThread,
)


def commander(*answers, capabilities=()):
    """A program with a command `x` and a tool `t`; the n-th request is given to the n-th answer, a function of guest and frame."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=list(capabilities))
        guest.send(type="register_command", name="x")
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="subscribe", events=["tick"], intercept=["tool_call"])
        guest.send(type="ready")
        for answer in answers:
            await answer(guest, await guest.frames("command_invoked", "tool_call", "event_intercept"))
        await guest.until_shutdown()

    return program


def displays(text: str, after: float = 0):
    async def answer(guest: Guest, frame) -> None:
        await trio.sleep(after)
        guest.send(type="command_response", id=frame["id"], action="display", display=text)

    return answer


async def ignores(guest: Guest, frame) -> None:
    await trio.lowlevel.checkpoint()


async def test_a_command_times_out_after_30_s_and_its_late_answer_is_dropped(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(displays("late", 31), displays("second")))
        async with host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(CallTimedOut, match="no answer within 30 s") as caught:
                await session.run_command("x")
            assert caught.value.may_have_run
            assert trio.current_time() == 30
            assert (await session.run_command("X")).text == "second"
            assert "reply_late" in codes(host)


def test_an_answer_in_the_pipe_beats_the_deadline(tmp_path) -> None:
    clock = trio.testing.MockClock()

    async def at_the_last_moment(guest: Guest, frame) -> None:
        await trio.sleep(29)
        guest.send(type="command_response", id=frame["id"], action="display", display="in time")
        clock.jump(5)  # the loop has slept through the deadline, with the answer in the pipe

    async def main() -> None:
        async with world(tmp_path) as (around, host):
            around.add("a", commander(at_the_last_moment))
            async with host.open_session("s") as session:
                await session.load_all()
                async with trio.open_nursery() as nursery:

                    async def run() -> None:
                        assert (await session.run_command("x")).text == "in time"

                    nursery.start_soon(run)
                    await trio.testing.wait_all_tasks_blocked()
                    clock.jump(29)
                clock.autojump_threshold = 0

    trio.run(main, clock=clock)


async def test_wrong_answers_are_told_and_leave_the_call_open(tmp_path, autojump_clock) -> None:
    async def answers_wrongly(guest: Guest, frame) -> None:
        guest.send(type="tool_result", id=frame["id"])
        guest.send(type="command_response", id="999")
        guest.send(type="command_response", id=int(frame["id"]))
        guest.send(type="command_response", id=frame["id"], action="display", display="right")
        guest.send(type="command_response", id=frame["id"], action="display", display="again")
        await trio.lowlevel.checkpoint()

    async with world(tmp_path) as (around, host):
        around.add("a", commander(answers_wrongly))
        async with host.open_session("s") as session:
            await session.load_all()
            assert (await session.run_command("x")).text == "right"
            await trio.testing.wait_all_tasks_blocked()
            wrong = [code for code in codes(host) if code.startswith(("reply", "frame"))]
            assert wrong == ["reply_wrong_type", "reply_unknown", "frame_invalid", "reply_unknown"]


async def test_an_id_of_another_extension_is_refused(tmp_path, autojump_clock) -> None:
    asked: list[str] = []

    async def hands_over(guest: Guest, frame) -> None:
        asked.append(frame["id"])
        await trio.sleep(1)
        guest.send(type="command_response", id=frame["id"], action="display", display="mine")

    async def steals(guest: Guest) -> None:
        guest.greet()
        while not asked:
            await trio.sleep(0.1)
        guest.send(type="command_response", id=asked[0], action="display", display="stolen")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", commander(hands_over))
        around.add("thief", steals)
        async with host.open_session("s") as session:
            await session.load_all()
            assert (await session.run_command("x")).text == "mine"
            assert [each.extension for each in host.diagnostics if each.code == "reply_unknown"] == ["thief"]


@pytest.mark.parametrize("glued", [False, True])
async def test_a_malformed_answer_ends_the_call_at_once(tmp_path, autojump_clock, glued: bool) -> None:
    async def malformed(guest: Guest, frame) -> None:
        body = {"type": "command_response", "id": frame["id"], "action": "noop" if glued else 7}
        guest.write((b"Loading..." if glued else b"") + json.dumps(body).encode() + b"\n")
        await trio.lowlevel.checkpoint()

    async with world(tmp_path) as (around, host):
        around.add("a", commander(malformed, displays("fine")))
        async with host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(MalformedReply, match="Loading" if glued else "action"):
                await session.run_command("x")
            assert trio.current_time() == 0
            assert (await session.run_command("x")).text == "fine"


async def test_death_in_a_call_tells_the_exit_and_the_end_of_stderr(tmp_path, autojump_clock) -> None:
    async def dies(guest: Guest, frame) -> None:
        guest.complain("Traceback: boom\n")
        guest.exit(1)
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("a", commander(dies))
        async with host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(ExtensionExited) as caught:
                await session.run_command("x")
            assert (caught.value.exit_status, caught.value.stderr_tail) == ("exit 1", "Traceback: boom")
            with pytest.raises(UnknownCommand):
                await session.run_command("x")
            with pytest.raises(UnknownTool):
                await session.call_tool("t", {})
            assert_nothing_left(session)


def fill(guest: Guest) -> int:
    """The size of its stdin pipe."""
    return fcntl.fcntl(guest.stdin_fd, fcntl.F_GETPIPE_SZ)


def deaf(*, wakes_at: float = math.inf):
    """Registers as `commander`, then reads nothing until it wakes."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=["tool_cancel"])
        guest.send(type="register_command", name="x")
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="subscribe", events=["tick", "session_end"], intercept=["tool_call"])
        guest.send(type="ready")
        await guest.frames("hello_ack")
        await trio.sleep_until(wakes_at)
        await guest.until_shutdown()

    return program


async def test_a_call_given_up_before_its_first_byte_is_never_executed(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", deaf(wakes_at=4))
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()  # hello_ack is read: the pipe is empty
            pad = "x" * fill(around.guests["a"])
            session.emit("tick", {"pad": pad})
            with trio.move_on_after(1) as scope:
                await session.call_tool("t", {"n": 1})
            assert scope.cancelled_caught
            with trio.move_on_after(1):
                await session.run_command("x")
            await trio.sleep_until(5)
        types = [frame["type"] for frame in around.guests["a"].received]
        assert types == ["hello_ack", "event", "event", "shutdown"]  # the cut event was finished; no call was begun


async def test_a_call_given_up_after_it_was_written_is_cancelled(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(ignores, capabilities=["tool_cancel"]))
        async with host.open_session("s") as session:
            await session.load_all()
            with trio.move_on_after(1):
                await session.call_tool("t", {})
        received = around.guests["a"].received
        assert [frame["type"] for frame in received[1:]] == ["tool_call", "tool_cancel", "shutdown"]
        assert received[1]["id"] == received[2]["id"]


async def test_who_did_not_opt_in_gets_no_tool_cancel(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(ignores))
        async with host.open_session("s") as session:
            await session.load_all()
            with trio.move_on_after(1):
                await session.call_tool("t", {})
        assert [frame["type"] for frame in around.guests["a"].received[1:]] == ["tool_call", "shutdown"]


async def test_at_the_bound_the_oldest_events_go_and_are_counted(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, limits=Limits(outbox_frames=8)) as (around, host):
        around.add("a", deaf(wakes_at=1))
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()  # hello_ack is read: the pipe is empty
            session.emit("tick", {"n": -1, "pad": "x" * fill(around.guests["a"])})
            numbers = [session.emit("tick", {"n": n}) for n in range(20)]
            (dropped, *_) = [each for each in host.diagnostics if each.code == "events_dropped"]
            assert f"sequence {numbers[0]} to {numbers[0]}" in dropped.message
            await trio.sleep_until(2)
            told = [frame["n"] for frame in around.guests["a"].received if frame["type"] == "event"]
            assert told == [-1, *range(13, 20)]
            assert host.diagnostics.counts["events_dropped"] == 13
        assert [frame.get("event") for frame in around.guests["a"].received][-2:] == ["session_end", None]


async def test_session_end_is_kept_in_a_full_outbox(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, limits=Limits(outbox_frames=4)) as (around, host):
        around.add("a", deaf(wakes_at=1))
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()  # hello_ack is read: the pipe is empty
            for n in range(9):
                session.emit("tick", {"n": n, "pad": "x" * fill(around.guests["a"])})
        events = [frame["event"] for frame in around.guests["a"].received if frame["type"] == "event"]
        assert events[-1] == "session_end"


async def test_a_call_that_finds_a_full_outbox_fails_at_once(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, limits=Limits(outbox_frames=4)) as (around, host):
        around.add("a", deaf())
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()  # hello_ack is read: the pipe is empty
            for n in range(9):
                session.emit("tick", {"n": n, "pad": "x" * fill(around.guests["a"])})
            with pytest.raises(Overloaded, match="already wait"):
                await session.run_command("x")
            verdict = await session.intercept("tool_call", {"tool_name": "bash", "tool_args": {}})
            assert verdict.allowed
            assert [step.kind for step in verdict.steps] == [StepKind.OVERLOADED]
            assert trio.current_time() == 0


async def test_an_extension_that_reads_nothing_is_stopped_after_5_s(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", deaf())
        around.add("b", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()  # hello_ack is read: the pipe is empty
            session.emit("tick", {"pad": "x" * fill(around.guests["a"])})
            version = session.version
            while session.extensions()[0].state != "failed":
                version = await session.wait_changed(version)
            assert (
                session.extensions()[0].reason == "it has read nothing for 5 s (after 5.00 s; read stdin all the time)"
            )
            assert session.extensions()[1].state == "ready"


async def test_an_interceptor_that_does_not_answer_costs_its_deadline_and_allows(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(ignores))
        around.add("strict", commander(ignores), on_failure="block")
        async with host.open_session("s") as session:
            await session.load_all()
            verdict = await session.intercept("tool_call", {"tool_name": "bash", "tool_args": {}})
            assert trio.current_time() == 10
            assert [(step.extension, step.kind, step.policy.value) for step in verdict.steps] == [
                ("a", StepKind.TIMED_OUT, "allow"),
                ("strict", StepKind.TIMED_OUT, "block"),
            ]
            assert verdict.blocked
            assert verdict.by == "strict"
            assert codes(host).count("policy_decided") == 2


async def test_emit_from_another_thread_raises_and_changes_nothing(tmp_path) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander())
        async with host.open_session("s") as session:
            await session.load_all()
            before = session.emit("tick")
            with pytest.raises(WrongThread, match="from_thread"):
                await trio.to_thread.run_sync(session.emit, "tick")
            assert session.emit("tick") == before + 1


@pytest.mark.parametrize("payload", [{"v": math.nan}, {"v": math.inf}, {"v": "\ud800"}, {"v": object()}, {1: 2}])
async def test_a_payload_that_is_not_json_is_refused_and_nothing_is_written(tmp_path, autojump_clock, payload) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(displays("ok")))
        async with host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(PayloadError):
                session.emit("tick", payload)
            with pytest.raises(PayloadError):
                await session.intercept("tool_call", {"tool_args": {}, **payload})
            assert (await session.run_command("x")).text == "ok"
        assert not [frame for frame in around.guests["a"].received if frame["type"].startswith("event")]


async def test_events_and_calls_keep_their_order_and_the_sequence_grows(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander(displays("1"), displays("2")))
        async with host.open_session("s") as session:
            await session.load_all()
            first = session.emit("tick", {"n": 1})
            await session.run_command("x")
            second = session.emit("tick", {"n": 2})
            await session.run_command("x")
            assert second > first
        received = around.guests["a"].received
        assert [frame["type"] for frame in received[1:5]] == ["event", "command_invoked", "event", "command_invoked"]
        assert [frame["sequence"] for frame in received if frame["type"] == "event"] == [first, second]
        assert {frame["session_id"] for frame in received if frame["type"] == "event"} == {"s"}


async def test_a_panel_is_open_before_the_frame_that_renders_it(tmp_path, autojump_clock) -> None:
    async def opens(guest: Guest, frame) -> None:
        panel = {"id": "p", "title": "t"}
        guest.send(type="command_response", id=frame["id"], action="open_panel", open_panel=panel)
        guest.send(type="panel_render", panel_id="p", lines=["one"])
        assert (await guest.frames("panel_key"))["key"] == "down"
        guest.send(type="panel_close", panel_id="p")

    client = Client()
    async with world(tmp_path) as (around, host):
        around.add("a", commander(opens))
        async with host.open_session("s", client=client) as session:
            await session.load_all()
            outcome = await session.run_command("x")
            assert outcome.action == "open_panel"
            await trio.testing.wait_all_tasks_blocked()
            assert session.panel("p").spec.lines == ("one",)
            session.panel("p").key("down")
            await trio.testing.wait_all_tasks_blocked()
            assert len(session.panels) == 0
    assert [told[0] for told in client.told if "panel" in told[0]] == ["open_panel", "update_panel", "close_panel"]


async def test_two_tools_changed_within_a_tick_are_told_once(tmp_path, autojump_clock) -> None:
    client = Client()
    async with world(tmp_path) as (around, host):
        around.add("a", commander())
        around.add("b", commander())
        async with host.open_session("s", client=client) as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()
            assert [told[0] for told in client.told] == ["tools_changed"]


async def test_calls_of_an_extension_that_is_stopping_are_aborted(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", commander())
        async with host.open_session("s") as session:
            await session.load_all()
            instance = session.ledger.active(EffectKind.COMMAND, "x").registration.value.instance
            instance.stop()
            with pytest.raises(CallAborted) as caught:
                await session.run_command("x")
            assert not caught.value.may_have_run


async def test_arguments_may_be_any_mapping_of_json_values(tmp_path, autojump_clock) -> None:
    class Word(str):
        __slots__ = ()

    arguments, sent = MappingProxyType({"path": Word("a"), "lines": (1, 2)}), {"path": "a", "lines": [1, 2]}

    async def echo(guest: Guest, frame) -> None:
        guest.send(type="command_response", id=frame["id"], action="display", display=frame["args"])

    async def allow(guest: Guest, frame) -> None:
        assert frame["tool_args"] == sent
        guest.send(type="event_intercept_response", id=frame["id"])

    async with world(tmp_path) as (around, host):
        around.add("a", commander(echo, allow))
        async with host.open_session("s") as session:
            await session.load_all()
            assert json.loads((await session.run_command("x", arguments)).text) == sent
            with session.open_run() as run:
                async with run.tool_call("1", "t", arguments) as call:
                    assert call.arguments == sent
