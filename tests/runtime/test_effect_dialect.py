"""The effect dialect over in-process pipes: deadlines, progress, cancellation, and answers applied wholly or not at all."""

from __future__ import annotations

import json
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from runtime.fakes import assert_nothing_left, codes, serve, world
from runtime.puppets import (
    ALL,
    answer,
    command,
    do,
    provider,
    puppet,
    register,
    result,
    section,
    text_value,
    told,
    tool,
)

from trio_exthost import (
    CallAborted,
    CallTimedOut,
    Deadlines,
    DisposedHandle,
    EffectKind,
    ExtensionPolicy,
    InMemoryModelCatalogue,
    Limits,
    MalformedReply,
    Outcome,
    Policy,
    Progress,
    RemoteError,
    SimpleTool,
    Success,
    ToolContext,
    ToolStatus,
)


@asynccontextmanager
async def one_puppet(tmp_path, *, section=None, **options):
    """A session with one puppet, loaded; the host is `session.host`."""
    models = options.pop("models", None)
    async with world(tmp_path, **options) as (around, host):
        around.add("p", puppet, permissions=ALL, **(section or {}))
        async with host.open_session("s", models=models) as session:
            await session.load_all()
            yield session
        assert_nothing_left(session)


async def test_the_terms_stand_in_hello_ack_for_those_who_opted_in_only(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("p", puppet, permissions=("tools.register",), optional_permissions=("session.write",))
        around.add("zot", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            (ack,) = [frame for frame in await do(session) if frame["type"] == "hello_ack"]
            dialect = ack["dialect"]
            assert (dialect["revision"], dialect["session_id"]) == (1, "s")
            assert dialect["granted"] == ["session.write", "tools.register"]
            assert dialect["limits"]["effects"] == 128
            assert "dialect" not in around.guests["zot"].received[0]


async def test_progress_restarts_the_idle_limit_of_a_tool_but_not_its_total(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path, deadlines=Deadlines(tool_s=60, tool_maximum_s=150)) as session:
        beats = [each for n in range(5) for each in ({"type": "sleep", "s": 50}, {"type": "progress", "text": str(n)})]
        await do(session, register(1, "tool", tool("t")), answer(1, *beats[:4], result(text_value("done"))))
        assert (await session.call_tool("t", {})).text == "done"
        assert trio.current_time() == 100
        await do(session, answer(1, *beats))
        with pytest.raises(CallTimedOut, match="within 150 s"):
            await session.call_tool("t", {})
        assert trio.current_time() == 100 + 150 + 1  # and the grace


async def test_a_silent_tool_is_cancelled_at_its_deadline_and_its_late_answer_is_a_partial_result(
    tmp_path, autojump_clock
) -> None:
    async with one_puppet(tmp_path) as session:
        await do(
            session,
            register(1, "tool", tool("t")),
            answer(1, {"type": "sleep", "s": 60.5}, result(text_value("half of it"))),
        )
        got = await session.call_tool("t", {})
        assert (got.text, got.status, got.is_error) == ("half of it", ToolStatus.TIMED_OUT, True)
        (cancel,) = [frame for frame in await do(session) if frame["type"] == "cancel"]
        assert (cancel["reason"], cancel["grace_ms"]) == ("deadline", 1000)
        assert codes(session.host) == ["call_timed_out"]


async def test_a_caller_that_gives_up_is_told_to_the_extension(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        await do(session, register(1, "command", command("c")), answer(1, {"type": "sleep", "s": 9}, result({})))
        with trio.move_on_after(2):
            await session.run_command("c")
        (cancel,) = [frame for frame in await do(session) if frame["type"] == "cancel"]
        assert (cancel["reason"], cancel["grace_ms"]) == ("caller", 0)
        await trio.sleep(10)
        await do(session)
        assert codes(session.host) == ["reply_late"]


async def test_a_command_has_30_s_whatever_progress_it_makes(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        beats = [each for _ in range(4) for each in ({"type": "sleep", "s": 10}, {"type": "progress", "text": "on it"})]
        await do(session, register(1, "command", command("c")), answer(1, *beats))
        with pytest.raises(CallTimedOut):
            await session.run_command("c")
        assert trio.current_time() == 30


async def test_what_it_works_on_at_a_stop_is_cancelled_and_may_still_be_answered(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        await do(
            session, register(1, "tool", tool("t")), answer(1, {"type": "sleep", "s": 1}, result(text_value("saved")))
        )

        async def stopper() -> None:
            await trio.sleep(0.5)
            await session.unload("p")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stopper)
            with pytest.raises(CallAborted):  # the puppet ends at shutdown, so nothing of it comes
                await session.call_tool("t", {})


async def test_progress_reaches_the_tool_call_in_order_and_output_is_bounded(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path, limits=Limits(nested_result_bytes=200)) as session:
        await do(
            session,
            register(1, "tool", tool("t")),
            answer(
                1,
                {"type": "progress", "output": "a" * 100, "fraction": -3},
                {"type": "progress", "text": "working", "fraction": 0.5},
                {"type": "progress", "output": "b" * 100},
                {"type": "progress", "output": "c"},
                result(text_value("done")),
            ),
        )
        seen: list[Progress] = []

        async def watch(call) -> None:
            seen.extend([each async for each in call.progress])

        with session.open_run() as run:
            async with trio.open_nursery() as nursery, run.tool_call("id", "t", {}) as call:
                nursery.start_soon(watch, call)
                await call.execute()
                await trio.testing.wait_all_tasks_blocked()
        assert seen == [
            Progress(fraction=0.0, output="a" * 100),
            Progress("working", 0.5),
            Progress(output="b" * 36),  # each piece counts 64 bytes more than its text
            Progress(),
        ]


NOTHING_APPLIED = {
    "an unknown status": ({"status": "done"}, {}, MalformedReply, "status"),
    "no value": (None, {}, MalformedReply, "object"),
    "a registration it never made": ({"status": "success"}, {"dispose": [2, 99]}, MalformedReply, "99"),
    "a decision": ({"status": "success"}, {"decision": {"kind": "allow"}}, MalformedReply, "gate"),
    "an action that has no place": ({"status": "success"}, {"actions": [{"kind": "dance"}]}, MalformedReply, "dance"),
    "something to store": (
        {"status": "success"},
        {"actions": [{"kind": "set_state", "key": "k", "value": 1}]},
        MalformedReply,
        "no state_schema",
    ),
    "too many actions": ({"status": "success"}, {"actions": [{"kind": "set_state"}] * 65}, MalformedReply, "65"),
    "an error": (
        {"status": "success"},
        {"error": {"code": "oops", "message": "broken"}},
        RemoteError,
        r"broken \[oops\]",
    ),
}


@pytest.mark.parametrize("case", NOTHING_APPLIED)
async def test_an_answer_with_one_bad_part_changes_nothing(tmp_path, autojump_clock, case) -> None:
    value, more, error, match = NOTHING_APPLIED[case]
    async with one_puppet(tmp_path) as session:
        await do(
            session,
            register(1, "command", command("c")),
            register(2, "tool", tool("t")),
            answer(1, result(value, **{"dispose": [2], **more})),
        )
        with pytest.raises(error, match=match):
            await session.run_command("c")
        assert [info.name for info in session.tools()] == ["t"]
        assert not [frame for frame in await do(session) if frame["type"] == "disposed"]
        await do(session, answer(1, result({"status": "success"}, dispose=[2, 2])))
        assert await session.run_command("c") == Success()
        assert session.tools() == ()


async def test_the_permission_class_of_a_tool_decides_with_the_chain(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        await do(
            session,
            register(1, "tool", tool("asks", permission="prompt")),
            register(2, "tool", tool("never", permission="block")),
            answer(1, result(text_value("ran"))),
        )
        with session.open_run() as run:
            async with run.tool_call("1", "asks", {}) as call:
                assert call.verdict.outcome is Outcome.ASK
                assert (await call.execute()).status is ToolStatus.BLOCKED
            async with run.tool_call("2", "asks", {}) as call:
                call.decide(approved=True)
                assert (await call.execute()).text == "ran"
            async with run.tool_call("3", "never", {}) as call:
                assert call.verdict.blocked
                call.decide(approved=True)
                assert "never run" in (await call.execute()).text
            async with run.tool_call("4", "asks", {}) as call:
                call.decide(approved=True)
                await do(
                    session, {"type": "update", "registration_id": 1, "descriptor": tool("asks", permission="block")}
                )
                assert "never run" in (await call.execute()).text
        with pytest.raises(CallAborted, match="never run"):
            await session.call_tool("never", {})


async def test_an_override_can_call_what_it_displaced(tmp_path, autojump_clock) -> None:
    async def bare(arguments):
        await trio.lowlevel.checkpoint()
        return f"bare {arguments['c']}"

    policy = Policy(extensions={"p": ExtensionPolicy(grant=["tools.override:bash"])})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s", tools=[SimpleTool("bash", "", {"type": "object"}, bare)]) as session:
            await session.load_all()
            await do(
                session,
                register(1, "tool", tool("bash", override=True)),
                answer(
                    1,
                    {"type": "call_tool", "id": "mine", "name": "bash", "args": {"c": "ls"}, "displaced": True},
                    {"type": "sleep", "s": 1},
                    result(text_value("wrapped")),
                ),
            )
            # The call names its parent, which the puppet cannot know: without one it is refused while the tool runs.
            assert (await session.call_tool("bash", {"c": "x"})).text == "wrapped"
            (refused,) = [frame for frame in await do(session) if frame["type"] == "tool_result"]
            assert refused["is_error"]
            await do(
                session, {"type": "call_tool", "id": "alone", "name": "bash", "args": {"c": "ls"}, "displaced": True}
            )
            await trio.testing.wait_all_tasks_blocked()
            (ran,) = [frame for frame in await do(session) if frame["type"] == "tool_result"]
            assert ran["content"] == [{"type": "text", "text": "bare ls"}]


@pytest.mark.parametrize("on_absent", ["refuse", "restore"])
async def test_an_overridden_name_is_kept_while_its_extension_is_gone_unless_the_policy_restores_it(
    tmp_path, autojump_clock, on_absent
) -> None:
    async def bare(arguments):
        await trio.lowlevel.checkpoint()
        return "bare"

    policy = Policy(extensions={"p": ExtensionPolicy(grant=["tools.override:bash"], on_absent=on_absent)})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("p", puppet, permissions=ALL)
        around.add("q", puppet, permissions=ALL)
        async with host.open_session("s", tools=[SimpleTool("bash", "", {"type": "object"}, bare)]) as session:

            async def ran() -> str:
                with session.open_run() as run:
                    async with run.tool_call("1", "bash", {}) as call:
                        return (await call.execute()).text

            def listed():
                (info,) = [info for info in session.tools() if info.name == "bash"]
                return info.extension, info.active, info.reserved_for

            is_kept = on_absent == "refuse"
            assert ("is kept for p (not installed)" in await ran()) == is_kept
            assert listed() == ((None, False, "p") if is_kept else (None, True, ""))
            await session.load_all()
            assert ("is kept for p (ready)" in await ran()) == is_kept  # it has not registered it yet
            (frame,) = await told(session, register(1, "tool", tool("bash")), name="do-q")
            assert frame["code"] == "conflict"
            await do(session, register(1, "tool", tool("bash", override=True)), answer(1, result(text_value("boxed"))))
            assert await ran() == "boxed"
            assert listed() == ("p", True, "")
            await do(session, {"type": "dispose", "registration_id": 1})
            assert await ran() == "bare"  # of its own free will
            await do(session, register(2, "tool", tool("bash", override=True)), answer(2, result(text_value("again"))))
            assert await ran() == "again"
            around.guests["p"].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            while session.tools()[0].extension == "p":
                await session.wait_changed(session.version)
            assert ("is kept for p (failed: it exited by itself" in await ran()) == is_kept
            assert listed() == ((None, False, "p") if is_kept else (None, True, ""))


async def test_merged_tools_are_tools_and_end_with_their_record(tmp_path, autojump_clock) -> None:
    async def own(arguments):
        await trio.lowlevel.checkpoint()
        return "own"

    base = [SimpleTool(name, "", {"type": "object"}, own) for name in ("read", "t")]
    async with one_puppet(tmp_path) as session:
        await do(
            session,
            register(1, "tool", tool("t")),
            register(2, "tool", tool("u", description="of the puppet")),
            answer(2, result(text_value("ran"))),
        )
        merged = session.registrations.merge_tools(base)
        assert [each.name for each in merged.tools] == ["read", "t", "u"]
        assert [(clash.name, clash.extension) for clash in merged.clashes] == [("t", "p")]
        last = merged.tools[-1]
        assert (last.description, last.schema) == ("of the puppet", {"type": "object"})
        context = ToolContext(session, None, "call-1")
        assert (await last({}, context)).text == "ran"
        await do(session, {"type": "dispose", "registration_id": 2})
        with pytest.raises(DisposedHandle):
            await last({}, context)
        assert [each.name for each in session.registrations.merge_tools(base).tools] == ["read", "t"]
        assert [each.name for each in merged.tools] == ["read", "t", "u"]


@given(st.lists(st.sampled_from(["emit", "register", "tool", "command", "run"]), max_size=30))
def test_sequence_numbers_grow_over_everything_that_draws_one(acts) -> None:
    async def main(folder: Path) -> None:
        async with world(folder) as (around, host):
            around.add("p", subscribed_puppet, permissions=ALL)
            async with host.open_session("s") as session:
                await session.load_all()
                await do(session, register(1, "tool", tool("t")), register(2, "command", command("c")))
                await do(session, answer(1, result(text_value("x"))), answer(2, result({"status": "success"})))
                drawn = []
                for number, act in enumerate(acts, 3):
                    match act:
                        case "emit":
                            drawn.append(session.emit("tick"))
                        case "register":
                            await do(session, register(number, "prompt_section", section(f"s{number}", "x")))
                            drawn.append(
                                session.ledger.active_records(EffectKind.PROMPT_SECTION)[-1].registration.sequence
                            )
                        case "tool":
                            await session.call_tool("t", {}, tool_id="id")
                        case "command":
                            await session.run_command("c")
                        case "run":
                            drawn.append(session.next_sequence())
                await do(session)
            seen = [
                frame["sequence"] if frame["type"] == "event" else frame["envelope"]["context"]["sequence"]
                for frame in around.guests["p"].received
                if frame["type"] in ("event", "invoke") and frame.get("event") != "session_end"
            ]
            assert seen == sorted(set(seen))
            assert drawn == sorted(set(drawn))
            assert len([act for act in acts if act in ("emit", "tool", "command")]) == len(seen)

    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))


async def subscribed_puppet(guest) -> None:
    """A puppet that is told about `tick`, too."""
    send = guest.send

    def send_with_subscription(**frame) -> None:
        if frame["type"] == "ready":
            send(type="subscribe", events=["tick"])
        send(**frame)

    guest.send = send_with_subscription
    await puppet(guest)


async def test_requests_the_host_has_nothing_for_are_answered(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        frames = await told(
            session,
            {"type": "ask_user", "id": "1", "invocation": "x", "kind": "confirm", "title": "Sure?"},
            {"type": "broker_call", "id": "2", "invocation": "x", "operation": "spawn"},
            {"type": "state_commit", "id": "3", "space": "session", "actions": []},
        )
        assert [(frame["type"], frame["id"]) for frame in frames] == [
            ("ask_user_result", "1"),
            ("broker_result", "2"),
            ("state_result", "3"),
        ]
        assert frames[0]["outcome"] == "unavailable"
        assert [frame["error"]["code"] for frame in frames[1:]] == ["broker_unavailable", "state_schema_required"]


NEEDED = {
    "ask_user": {"invocation": "x", "kind": "confirm", "title": "?"},
    "broker_call": {"invocation": "x", "operation": "o"},
    "state_commit": {"space": "session"},
    "call_tool": {"name": "t"},
}


@pytest.mark.parametrize("kind", NEEDED)
async def test_an_id_that_fills_a_frame_disturbs_nobody(tmp_path, autojump_clock, kind) -> None:
    async def program(guest) -> None:
        guest.send(type="hello", name="p", capabilities=["effects", "call_tool"])
        guest.send(type="register_command", name="c")
        guest.send(type="ready")
        await guest.frames("hello_ack")
        for length in range(4_700, 4_960, 3):
            guest.send(type=kind, id="i" * length, **NEEDED[kind])
            await trio.sleep(0.01)
        await guest.until_shutdown()

    async with world(tmp_path, limits=Limits(frame_bytes=5_000)) as (around, host):
        around.add("p", program)
        around.add("good", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.sleep(5)
            assert [row.state for row in session.extensions()] == ["ready", "ready"]
            assert "frame_invalid" in codes(host)


async def test_a_register_that_cannot_be_read_is_rejected_all_the_same(tmp_path, autojump_clock) -> None:
    async with one_puppet(tmp_path) as session:
        frames = await told(
            session,
            {"type": "register", "registration_id": 1, "kind": "dance", "descriptor": {}},
            {"type": "register", "registration_id": 2, "kind": "tool", "descriptor": []},
            {"type": "register", "registration_id": 3, "kind": "tool", "descriptor": {}},
            {
                "type": "register",
                "registration_id": 4,
                "kind": "hook",
                "descriptor": {"event": "before_provider_request_raw"},
            },
            register(4, "tool", tool("t")),
            register(4, "tool", tool("u")),
        )
        assert [(frame["registration_id"], frame.get("code")) for frame in frames] == [
            (1, "invalid_payload"),
            (2, "invalid_payload"),
            (3, "invalid_payload"),
            (4, "event_not_dispatched"),
            (4, None),
            (4, "invalid_payload"),
        ]


async def test_frames_before_ready_are_applied_in_their_order_when_it_is_ready(tmp_path, autojump_clock) -> None:
    async def early(guest) -> None:
        guest.send(type="hello", name="early", capabilities=["effects"])
        guest.send(**register(1, "tool", tool("t")))
        guest.send(type="dispose", registration_id=1)
        guest.send(**register(2, "tool", tool("t", description="second")))
        guest.send(type="update", registration_id=2, descriptor=tool("t", description="third"))
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("early", early, permissions=("tools.register",))
        async with host.open_session("s") as session:
            await session.load_all()
            assert [info.description for info in session.tools()] == ["third"]
        types = [frame["type"] for frame in around.guests["early"].received]
        assert types == ["hello_ack", "registered", "disposed", "registered", "updated", "disposed", "shutdown"]


async def test_without_the_permission_a_registration_is_refused(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("p", puppet)
        async with host.open_session("s") as session:
            await session.load_all()
            frames = await told(
                session, register(1, "tool", tool("t")), register(2, "prompt_section", section("s", "x"))
            )
            assert [frame.get("code") for frame in frames] == ["permission_denied", None]


class Failing(InMemoryModelCatalogue):
    """Refuses the n-th model it is given from now on."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def register(self, model) -> None:
        self.at -= 1
        if self.at == -1:
            raise OSError("the disk is full")
        super().register(model)


@pytest.mark.parametrize("at", range(7))
async def test_a_provider_that_fails_at_any_model_leaves_nothing_and_the_others_stand(
    tmp_path, autojump_clock, at
) -> None:
    models = Failing(at)
    async with one_puppet(tmp_path, models=models) as session:
        frames = await told(
            session,
            register(1, "provider", provider("one", "a", "b", "c")),
            register(2, "tool", tool("t")),
            register(3, "provider", provider("two", "a", "b", "c")),
        )
        failed = {0: 1, 1: 1, 2: 1, 3: 3, 4: 3, 5: 3}.get(at)
        assert [frame["registration_id"] for frame in frames if frame["type"] == "rejected"] == (
            [failed] if failed else []
        )
        expected = [(p, m) for n, p in ((1, "one"), (3, "two")) if n != failed for m in "abc"]
        assert [(each.provider, each.model) for each in models.models()] == expected
        assert [info.name for info in session.tools()] == ["t"]
        assert codes(session.host) == (["callback_failed", "registration_refused"] if failed else [])
    assert len(models) == 0


async def test_dropped_events_are_told_before_the_next_one(tmp_path, autojump_clock) -> None:
    async def slow(guest) -> None:
        guest.greet(capabilities=["effects", "gaps"], events=["tick"])
        await guest.frames("hello_ack")
        go.set()
        await read.wait()
        while len(ticks) < 2 or ticks[-1].get("n") != "last":
            ticks.append(await guest.frames("event", "events_dropped"))
        done.set()
        await guest.until_shutdown()

    go, read, done = trio.Event(), trio.Event(), trio.Event()
    ticks: list = []
    async with world(tmp_path, limits=Limits(outbox_frames=4)) as (around, host):
        around.add("slow", slow)
        async with host.open_session("s") as session:
            await session.load_all()
            await go.wait()
            numbers = [session.emit("tick", {"n": n, "pad": "x" * 30_000}) for n in range(20)]
            read.set()
            await trio.testing.wait_all_tasks_blocked()
            session.emit("tick", {"n": "last"})
            await done.wait()
        gaps = [frame for frame in ticks if frame["type"] == "events_dropped"]
        seen = [frame["sequence"] for frame in ticks if frame["type"] == "event"]
        assert gaps, "nothing was dropped"
        missed = [number for number in numbers if number not in seen]
        assert sum(gap["count"] for gap in gaps) == len(missed)
        assert (gaps[0]["first_sequence"], gaps[-1]["last_sequence"]) == (missed[0], missed[-1])
        for place, frame in enumerate(ticks):
            if frame["type"] == "events_dropped":
                assert ticks[place + 1]["sequence"] > frame["last_sequence"]
                assert all(
                    each["sequence"] < frame["first_sequence"] for each in ticks[:place] if each["type"] == "event"
                )
        assert json.dumps(ticks[-1]["n"]) == '"last"'


def test_progress_text_of_none_keeps_the_line():
    assert Progress().text is None
