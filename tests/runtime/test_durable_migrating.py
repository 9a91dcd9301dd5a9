"""While an extension's state is brought in order, whoever wants something of it waits: nobody is passed over for it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from runtime.fakes import codes, world
from runtime.hookers import action, gate, invoked
from runtime.test_durable_state import WRITER, context, ended, set_state, stored

from trio_exthost import CallTimedOut, Deadlines, Outcome
from trio_exthost.state import Checkout, Commit, SessionState, read_actions
from trio_exthost.state.memory import MemoryStores

COMMAND = {"name": "c", "description": "c", "argument_schema": {"type": "object"}}
NEWER = {**WRITER, "state_schema": 2}


class Slow:
    """Registers hooks, a command and a migration, and answers the migration when the test says so."""

    def __init__(self, *hooks, reply=lambda _event, _payload: {}):
        self.hooks = hooks
        self.reply = reply
        self.may_migrate = trio.Event()
        self.answer = {"value": {"state": {"k": "new"}}}
        self.meanwhile = trio.lowlevel.checkpoint
        self.asked = []

    async def __call__(self, guest) -> None:
        guest.greet(capabilities=["effects"], ready=False)
        guest.send(type="register", registration_id=1, kind="command", descriptor=COMMAND)
        guest.send(type="register", registration_id=2, kind="migration", descriptor={})
        for number, descriptor in enumerate(self.hooks, 3):
            guest.send(type="register", registration_id=number, kind="hook", descriptor=descriptor)
        guest.send(type="ready")
        async with trio.open_nursery() as nursery:
            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                if frame["type"] == "invoke":
                    nursery.start_soon(self._answer, guest, frame)
            nursery.cancel_scope.cancel()

    async def _answer(self, guest, frame) -> None:
        event, payload = frame["envelope"]["event"], frame["envelope"]["payload"]
        if event == "migration":
            self.asked.append(payload["state"])
            await self.may_migrate.wait()
            await self.meanwhile()
            answer = self.answer
        elif event == "command":
            answer = {"value": {"status": "success"}, "actions": payload["arguments"].get("actions", [])}
        else:
            answer = self.reply(event, payload)
        guest.send(type="invoke_result", id=frame["id"], **answer)


async def old_state(tmp_path, *actions):
    """Stores that hold what version 1 has stored at the position m1; the beginning is selected, and has nothing."""
    stores = MemoryStores()
    async with stored(tmp_path, stores=stores) as (session, _):
        await session.advance("m1")
        await session.run_command("c", {"actions": [set_state("k", "old"), *actions]})
        await session.checkout("")
    return stores


@asynccontextmanager
async def newer(tmp_path, stores, program, *, deadlines=None):
    """A session, and in it version 2; nobody has waited until it is there."""
    async with world(tmp_path, state=stores, deadlines=deadlines or Deadlines()) as (around, host):
        around.add("a", program, **NEWER)
        async with host.open_session("s") as session, trio.open_nursery() as nursery:
            nursery.start_soon(session.load_all)
            await trio.testing.wait_all_tasks_blocked()
            yield session, around.guests["a"]


def selected(stores, entry_id):
    """The same, with another position selected."""
    state = SessionState(stores.open_session("s"))
    state.write([Checkout(entry_id)])
    state.close()
    return stores


async def commit_beside(session, number):
    """What an old incarnation stores while its successor migrates."""
    (action_,) = read_actions([set_state("k", f"late {number}")], extension="a")
    await (await session.persistence.open()).submit(Commit(extension="a", schema=1, actions=(action_,)))


class Later:
    """Runs something beside the test, and keeps what becomes of it."""

    def __init__(self, nursery, function, *arguments):
        self.result = None
        self.done = False
        nursery.start_soon(self._run, function, arguments)

    async def _run(self, function, arguments):
        self.result = await function(*arguments)
        self.done = True


async def test_a_gate_a_transform_and_a_command_wait_for_the_migration_at_the_begin(tmp_path, autojump_clock) -> None:
    stores = selected(await old_state(tmp_path), "m1")
    program = Slow(
        {"event": "tool_call"},
        {"event": "context"},
        reply=lambda event, _: gate("allow") if event == "tool_call" else action("replace_context", messages=[]),
    )
    async with newer(tmp_path, stores, program) as (session, guest), trio.open_nursery() as nursery:
        with session.open_run() as run:
            a_call = Later(nursery, session.intercept, "tool_call", {"tool_name": "x", "tool_args": {}})
            secret = [{"role": "user", "content": "secret"}]
            a_context = Later(nursery, run.context, secret)
            a_command = Later(nursery, session.run_command, "c", {})
            await trio.testing.wait_all_tasks_blocked()
            assert [each["event"] for each in invoked(guest)] == ["migration"]
            program.may_migrate.set()
            await trio.testing.wait_all_tasks_blocked()
            assert a_call.result.outcome is Outcome.ALLOW
            assert [step.kind.value for step in a_call.result.steps] == ["allowed"]
            assert a_context.result == []
            assert a_command.done
            assert session.persistence.projection("a").state() == {"k": "new"}


async def test_after_a_migration_that_failed_the_policy_answers_and_the_extension_is_stopped(
    tmp_path, autojump_clock
) -> None:
    stores = selected(await old_state(tmp_path), "m1")
    program = Slow({"event": "tool_call"})
    program.answer = {"error": {"code": "oops", "message": "cannot"}}
    async with newer(tmp_path, stores, program) as (session, _), trio.open_nursery() as nursery:
        a_call = Later(nursery, session.intercept, "tool_call", {"tool_name": "x", "tool_args": {}})
        await trio.testing.wait_all_tasks_blocked()
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert a_call.result.outcome is Outcome.BLOCK
        assert [step.kind.value for step in a_call.result.steps] == ["not_running"]
        assert "cannot" in (await ended(session)).reason


async def test_who_waits_for_a_migration_waits_no_longer_than_the_chain_or_the_command_may_take(
    tmp_path, autojump_clock
) -> None:
    stores = selected(await old_state(tmp_path), "m1")
    deadlines = Deadlines(chain_s=3, command_s=4, life_cycle_s=20)
    program = Slow({"event": "tool_call"})
    async with newer(tmp_path, stores, program, deadlines=deadlines) as (session, guest):
        begun = trio.current_time()
        verdict = await session.intercept("tool_call", {"tool_name": "x", "tool_args": {}})
        assert trio.current_time() - begun == pytest.approx(3)
        assert (verdict.outcome, [step.kind.value for step in verdict.steps]) == (Outcome.BLOCK, ["timed_out"])
        begun = trio.current_time()
        with pytest.raises(CallTimedOut) as caught:
            await session.run_command("c", {})
        assert trio.current_time() - begun == pytest.approx(4)
        assert not caught.value.may_have_run
        assert "still being migrated" in caught.value.message
        program.may_migrate.set()
        await session.run_command("c", {})
        assert [each["event"] for each in invoked(guest)] == ["migration", "command"]


async def test_a_hook_that_was_taken_back_meanwhile_is_not_asked(tmp_path, autojump_clock) -> None:
    stores = selected(await old_state(tmp_path), "m1")
    program = Slow({"event": "tool_call"})
    async with newer(tmp_path, stores, program) as (session, guest), trio.open_nursery() as nursery:
        a_call = Later(nursery, session.intercept, "tool_call", {"tool_name": "x", "tool_args": {}})
        await trio.testing.wait_all_tasks_blocked()
        guest.send(type="dispose", registration_id=3)
        await trio.testing.wait_all_tasks_blocked()
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert a_call.result.outcome is Outcome.ALLOW
        assert [each["event"] for each in invoked(guest)] == ["migration"]


async def test_after_a_checkout_hooks_wait_until_the_state_there_is_migrated(tmp_path, autojump_clock) -> None:
    stores = await old_state(tmp_path, context("c", "Be kind."))
    program = Slow({"event": "tool_call"}, reply=lambda *_: gate("allow"))
    async with newer(tmp_path, stores, program) as (session, guest), trio.open_nursery() as nursery:
        away = Later(nursery, session.checkout, "m1")
        await trio.testing.wait_all_tasks_blocked()
        assert [each.content for each in session.model_context()] == ["Be kind."]
        a_call = Later(nursery, session.intercept, "tool_call", {"tool_name": "x", "tool_args": {}})
        await trio.testing.wait_all_tasks_blocked()
        assert (away.done, [each["event"] for each in invoked(guest)]) == (False, ["migration"])
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (away.done, a_call.result.outcome) == (True, Outcome.ALLOW)
        assert [each["event"] for each in invoked(guest)] == ["migration", "tool_call"]
        assert session.persistence.projection("a").state() == {"k": "new"}


async def test_a_checkout_that_is_cancelled_once_the_branch_is_selected_is_finished_nevertheless(
    tmp_path, autojump_clock
) -> None:
    stores = await old_state(tmp_path)
    program = Slow({"event": "tool_call"}, reply=lambda *_: gate("allow"))
    async with newer(tmp_path, stores, program) as (session, guest):
        with trio.move_on_after(1) as scope:
            await session.checkout("m1")
        assert scope.cancelled_caught
        program.may_migrate.set()
        await session.intercept("tool_call", {"tool_name": "x", "tool_args": {}})
        assert [each["event"] for each in invoked(guest)] == ["migration", "tool_call"]
        assert session.persistence.projection("a").state() == {"k": "new"}


async def test_another_checkout_meanwhile_migrates_what_is_selected_then(tmp_path, autojump_clock) -> None:
    stores = await old_state(tmp_path)
    program = Slow()
    async with newer(tmp_path, stores, program) as (session, _), trio.open_nursery() as nursery:
        away = Later(nursery, session.checkout, "m1")
        await trio.testing.wait_all_tasks_blocked()
        back = Later(nursery, session.checkout, "")
        await trio.testing.wait_all_tasks_blocked()
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert (away.done, back.done) == (True, True)
        assert session.persistence.projection("a").state() == {}
        assert len(program.asked) == 1
        await session.checkout("m1")
        assert program.asked == [{"k": "old"}, {"k": "old"}]
        assert session.persistence.projection("a").state() == {"k": "new"}


async def test_what_an_old_incarnation_stores_meanwhile_is_migrated_with_the_rest(tmp_path, autojump_clock) -> None:
    stores = selected(await old_state(tmp_path), "m1")
    program = Slow()
    async with newer(tmp_path, stores, program) as (session, _):
        await commit_beside(session, 1)
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert program.asked == [{"k": "old"}, {"k": "late 1"}]
        assert session.persistence.projection("a").state() == {"k": "new"}
        assert [row.state for row in session.extensions()] == ["ready"]


async def test_what_another_session_stores_meanwhile_in_the_shared_space_is_migrated_with_the_rest(
    tmp_path, autojump_clock
) -> None:
    stores = await old_state(tmp_path)
    shared = stores.open_extension("a")
    shared.commit(read_actions([set_state("n", 1)], extension="a"), schema=1)
    program = Slow()
    async with newer(tmp_path, stores, program) as (session, _):
        shared.commit(read_actions([set_state("n", 2)], extension="a"), schema=1)
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert program.asked == [{"n": 1}, {"n": 2}]
        assert [row.state for row in session.extensions()] == ["ready"]


async def test_two_sessions_that_migrate_what_they_share_both_go_on(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    stores.open_extension("a").commit(read_actions([set_state("n", 1)], extension="a"), schema=1)
    program = Slow()
    async with newer(tmp_path, stores, program) as (first, _), first.host.open_session("t") as second:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(second.load_all)
            await trio.testing.wait_all_tasks_blocked()
            assert program.asked == [{"n": 1}, {"n": 1}]
            program.may_migrate.set()
        for session in (first, second):
            assert [row.state for row in session.extensions()] == ["ready"]
        assert stores.open_extension("a").read().revision == 2


async def test_a_migration_that_is_overtaken_again_and_again_is_given_up(tmp_path, autojump_clock) -> None:
    stores = selected(await old_state(tmp_path), "m1")

    program = Slow()
    async with newer(tmp_path, stores, program) as (session, _):
        program.meanwhile = lambda: commit_beside(session, len(program.asked))
        program.may_migrate.set()
        await trio.testing.wait_all_tasks_blocked()
        row = await ended(session)
        assert "another one while it was migrated" in row.reason
        assert len(program.asked) == 5
        assert "state_migration_failed" in codes(session.host)
