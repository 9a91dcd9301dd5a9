"""Required guards: whatever keeps one from being asked, what it guards is refused, and the verdict says why."""

from __future__ import annotations

from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from runtime.fakes import Guest, codes, serve, world
from runtime.puppets import ALL, do, puppet, register, tool

from trio_exthost import Deadlines, ExtensionPolicy, OnFailure, Outcome, PointPolicy, Policy, SimpleTool, StepKind
from trio_exthost.packages import Status

REQUIRED = ExtensionPolicy(required=True, guards=["tool:bash"])
POLICY = Policy(extensions={"guard": REQUIRED})


async def _bash(arguments):
    await trio.lowlevel.checkpoint()
    return "ran"


BASH, READ = (SimpleTool(name, "", {"type": "object"}, _bash) for name in ("bash", "read"))


def guard(*answers: dict, **more):
    """Intercepts tool calls and gives these answers in turn, the last for ever."""

    async def program(guest: Guest) -> None:
        guest.greet(intercept=["tool_call"], **more)
        left = list(answers) or [{}]
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                answer = left.pop(0) if len(left) > 1 else left[0]
                if answer is not None:
                    guest.send(type="event_intercept_response", id=frame["id"], **answer)

    return program


@asynccontextmanager
async def guarded(tmp_path, program=None, *, policy=POLICY, load=True, **options):
    """A session whose `bash` is guarded by `guard`, if there is a program for it."""
    async with world(tmp_path, policy=policy, **options.pop("world", {})) as (around, host):
        if program is not None:
            around.add("guard", program, **options)
        async with host.open_session("s", tools=[BASH, READ]) as session:
            if load:
                await session.load_all()
            session.around = around
            yield session


async def call(session, name: str = "bash"):
    """The verdict and the text of the result."""
    with session.open_run() as run:
        async with run.tool_call("1", name, {}) as tool_call:
            result = await tool_call.execute()
        return tool_call.verdict, result.text


async def assert_refused(session, why: str) -> None:
    verdict, text = await call(session)
    assert verdict.outcome is Outcome.BLOCK
    assert (verdict.by, verdict.code) == ("guard", "guard_absent")
    assert why in verdict.explain(), verdict.explain()
    assert "way out" in verdict.explain()
    assert "guard" in text
    assert "ran" not in text
    assert verdict.steps[-1].kind is StepKind.NOT_RUNNING
    assert verdict.steps[-1].rule == "required_guard"
    # What it does not guard goes on.
    assert (await call(session, "read"))[1] == "ran"


async def test_one_that_runs_is_asked(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard({}, {"block": True, "reason": "no"})) as session:
        assert (await call(session))[1] == "ran"
        assert (await call(session))[1] == "no"


async def test_never_installed(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path) as session:
        await assert_refused(session, "not installed")
        assert "policy_unknown" in codes(session.host)
        assert "guard_absent" in codes(session.host)


async def test_not_loaded_yet(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard(), load=False) as session:
        await assert_refused(session, "not installed")  # nothing has looked for it


async def test_blocked_by_trust(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard(), load=False) as session:
        (candidate,) = session.around.candidates

        session.around.candidates[:] = [attrs.evolve(candidate, status=Status.BLOCKED, reason="trust_required: ...")]
        await session.load_all()
        await assert_refused(session, "blocked: trust_required")


async def test_still_starting(tmp_path, autojump_clock) -> None:
    async def slow(guest: Guest) -> None:
        await trio.sleep(5)
        await guard()(guest)

    async with guarded(tmp_path, slow) as session:
        await assert_refused(session, "handshaking")
        await trio.sleep(3)
        assert (await call(session))[1] == "ran"


async def test_exits_before_hello(tmp_path, autojump_clock) -> None:
    async def dead(guest: Guest) -> None:
        await trio.lowlevel.checkpoint()

    async with guarded(tmp_path, dead) as session:
        await assert_refused(session, "failed: it exited by itself")


async def test_crashed(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard()) as session:
        session.around.guests["guard"].exit(1)
        await trio.testing.wait_all_tasks_blocked()
        await assert_refused(session, "failed: it exited by itself")


async def test_unloaded_without_a_change_of_policy(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard()) as session:
        await session.unload("guard")
        await assert_refused(session, "stopped")


async def test_ready_without_subscribing(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, serve) as session:
        await assert_refused(session, "ready, but does not intercept this")


async def test_taken_as_ready_without_its_subscription_until_it_comes(tmp_path, autojump_clock) -> None:
    async def late(guest: Guest) -> None:
        guest.send(type="hello", name="guard")
        guest.send(type="register_command", name="x")
        await trio.sleep(5)
        guest.send(type="subscribe", intercept=["tool_call"])
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                guest.send(type="event_intercept_response", id=frame["id"])

    async with guarded(tmp_path, late) as session:
        await assert_refused(session, "taken as ready without a word, but does not intercept this")
        await trio.sleep(5)
        assert (await call(session))[1] == "ran"


async def test_tripped_and_back(tmp_path, autojump_clock) -> None:
    deadlines = Deadlines(intercept_s=1, circuit_delay_s=10)
    hung = guard(None, None, None, None, {})
    async with guarded(tmp_path, hung, world={"deadlines": deadlines}) as session:
        for _ in range(3):
            verdict, text = await call(session)
            assert verdict.steps[0].kind is StepKind.TIMED_OUT
            assert verdict.blocked, text
        before = trio.current_time()
        await assert_refused(session, "tripped: 3 failures in a row")
        assert trio.current_time() == before  # nobody waits for it any more
        await trio.sleep(11)
        assert (await call(session))[0].blocked  # the probe hangs, too
        await assert_refused(session, "tripped")
        await trio.sleep(21)  # twice the first delay
        assert (await call(session))[1] == "ran"
        assert [code for code in codes(session.host) if code in ("tripped", "recovered")] == [
            "tripped",
            "tripped",
            "recovered",
        ]


async def test_waiting_for_its_restart_and_back(tmp_path, autojump_clock) -> None:
    policy = Policy(
        extensions={
            "guard": ExtensionPolicy(
                required=True, guards=["tool:bash"], restart="on_crash", restart_budget=1, restart_delay_s=2
            )
        }
    )
    async with guarded(tmp_path, guard(), policy=policy) as session:
        session.around.guests["guard"].exit(1)
        await trio.testing.wait_all_tasks_blocked()
        await assert_refused(session, "waiting: it is started again in")
        await trio.sleep(3)
        assert (await call(session))[1] == "ran"
        session.around.guests["guard"].exit(1)
        await trio.testing.wait_all_tasks_blocked()
        await assert_refused(session, "gave_up: given up after 1 restarts")


async def test_the_operator_can_let_a_required_guard_fail_open(tmp_path, autojump_clock) -> None:
    policy = Policy(
        extensions={
            "guard": ExtensionPolicy(
                required=True, guards=["tool:bash"], points={"tool_call": PointPolicy(on_failure="allow")}
            )
        }
    )
    async with guarded(tmp_path, policy=policy) as session:
        verdict, text = await call(session)
        assert text == "ran"
        (step,) = verdict.steps
        assert (step.policy, step.rule) == (OnFailure.ALLOW, "extension_point")
        assert step.where == "extensions.guard.tool_call.on_failure"


async def test_a_manifest_that_tightens_guards_from_discovery_until_it_is_unloaded(tmp_path, autojump_clock) -> None:
    async def dead(guest: Guest) -> None:
        await trio.lowlevel.checkpoint()

    async with guarded(tmp_path, dead, policy=None, on_failure="block") as session:
        verdict, _ = await call(session)
        assert (verdict.code, verdict.steps[0].rule) == ("guard_absent", "manifest")
        assert (await call(session, "read"))[0].blocked  # nobody has said what it guards
        session.around.programs["guard"] = guard()
        await session.load_all()
        assert (await call(session))[1] == "ran"
        session.around.guests["guard"].exit(1)
        await trio.testing.wait_all_tasks_blocked()
        assert (await call(session))[0].code == "guard_absent"
        with session.open_run() as run:
            assert not (await run.turn_start(1)).blocked  # there it never stood
        await session.load_all()
        await session.unload("guard")
        assert (await call(session))[1] == "ran"


async def test_absent_guards_keep_their_place_and_a_block_before_them_spares_them(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=POLICY) as (around, host):
        around.add("early", guard({}, {"block": True, "reason": "early"}), priority=5)
        around.add("guard", serve)
        around.add("late", guard({}))
        async with host.open_session("s", tools=[BASH]) as session:
            await session.load_all()
            verdict, _ = await call(session)
            assert [step.extension for step in verdict.steps] == ["early", "guard"]
            verdict, text = await call(session)
            assert [step.extension for step in verdict.steps] == ["early"]
            assert text == "early"


async def test_a_hung_guard_in_a_chain_of_ten_costs_its_own_deadline_until_it_is_out_of_service(
    tmp_path, autojump_clock
) -> None:
    async with world(tmp_path, deadlines=Deadlines(intercept_s=1)) as (around, host):
        for number in range(10):
            around.add(f"g{number}", guard(None) if number == 4 else guard({}))
        async with host.open_session("s", tools=[BASH]) as session:
            await session.load_all()
            took = []
            for _ in range(10):
                begun = trio.current_time()
                assert (await call(session))[1] == "ran"
                took.append(trio.current_time() - begun)
            assert took[:3] == [1, 1, 1]
            assert took[3:] == [0] * 7


async def test_many_failures_at_once_trip_it_once(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard(None), world={"deadlines": Deadlines(intercept_s=1)}) as session:
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(call, session)
        assert codes(session.host).count("tripped") == 1


async def test_cancelled_calls_do_not_count(tmp_path, autojump_clock) -> None:
    async with guarded(tmp_path, guard(None)) as session:
        for _ in range(5):
            with trio.move_on_after(1):
                await call(session)
        assert "tripped" not in codes(session.host)


async def test_text_is_held_back_while_a_required_guard_of_it_is_not_there(tmp_path, autojump_clock) -> None:
    policy = Policy(extensions={"guard": ExtensionPolicy(required=True, guards=["assistant_message"])})
    async with guarded(tmp_path, policy=policy) as session:
        with session.open_run() as run:
            async with run.assistant_text("m") as text:
                assert await text.feed("secret") == ""
            assert text.hidden
            assert text.rest == ""


@pytest.mark.parametrize("winner", ["early", "late"])
async def test_the_operator_names_the_winner_of_a_name(tmp_path, autojump_clock, winner) -> None:
    async def has_t(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name)
        guest.send(type="register_tool", name="t", schema={"type": "object"})
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, policy=Policy(prefer={"t": winner})) as (around, host):
        around.add("early", has_t)
        around.add("late", has_t)
        async with host.open_session("s") as session:
            await session.load_all()
            assert [(info.name, info.extension) for info in session.tools()] == [("t", winner)]
            assert codes(host) == ["registration_refused"]


async def test_a_name_is_free_only_where_each_of_its_keepers_gave_it_up(tmp_path, autojump_clock) -> None:
    grant = ExtensionPolicy(grant=["tools.override:bash"])
    policy = Policy(extensions={"p": grant, "q": grant})
    async with world(tmp_path, policy=policy) as (around, host):
        for name in ("p", "q"):
            around.add(name, puppet, permissions=ALL)
        async with host.open_session("s", tools=[BASH]) as session:
            await session.load_all()
            override = register(1, "tool", tool("bash", override=True))
            await do(session, override)
            await do(session, {"type": "dispose", "registration_id": 1})
            assert "is kept for" in (await call(session))[1]  # q has never had it
            await do(session, override, name="do-q")
            await do(session, {"type": "dispose", "registration_id": 1}, name="do-q")
            assert (await call(session))[1] == "ran"
            around.guests["q"].exit(1)
            await trio.testing.wait_all_tasks_blocked()
            assert "is kept for" in (await call(session))[1]


async def test_giving_up_an_override_of_one_run_frees_the_name_there_only(tmp_path, autojump_clock) -> None:
    policy = Policy(extensions={"p": ExtensionPolicy(grant=["tools.override:bash"])})
    async with world(tmp_path, policy=policy) as (around, host):
        around.add("p", puppet, permissions=ALL)
        async with host.open_session("s", tools=[BASH]) as session:
            await session.load_all()
            with session.open_run(run_id="r1") as run:
                await do(
                    session,
                    register(1, "tool", tool("bash", override=True, scope="run"), scope="run", id="r1"),
                    {"type": "dispose", "registration_id": 1},
                )
                assert (await session.call_tool("bash", {}, run=run)).text == "ran"
                assert "is kept for" in (await call(session))[1]


async def test_an_absent_guards_own_call_is_refused_too(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=POLICY) as (around, host):
        around.add("guard", puppet, permissions=ALL)
        async with host.open_session("s", tools=[BASH]) as session:
            await session.load_all()
            await do(session, {"type": "call_tool", "id": "1", "name": "bash", "args": {}}, name="do-guard")
            await trio.testing.wait_all_tasks_blocked()
            (frame,) = [each for each in around.guests["guard"].received if each["type"] == "tool_result"]
            assert frame["is_error"]
            assert "does not intercept this" in frame["content"][0]["text"]
