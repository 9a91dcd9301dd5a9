"""What a call that was given up must not have changed: each found by the cancellation sweep."""

from __future__ import annotations

import trio
from runtime.fakes import codes, serve, world
from runtime.puppets import section
from runtime.sweep_scenarios import REQUEST
from runtime.sweeping import seed
from runtime.test_hook_chain import hooked


def with_section():
    """A section of the prompt, and a hook that lets everybody wait for a second."""

    async def program(guest):
        guest.greet(capabilities=["effects"], ready=False, intercept=["before_agent_start"])
        descriptor = section("s", "Be brief.")
        guest.send(type="register", registration_id=1, kind="prompt_section", descriptor=descriptor)
        guest.send(type="register", registration_id=2, kind="hook", descriptor={"event": "before_model_request"})
        guest.send(type="ready")
        while (frame := await guest.frame())["type"] != "shutdown":
            if frame["type"] in ("invoke", "event_intercept"):
                await trio.sleep(1)
                kind = "invoke_result" if frame["type"] == "invoke" else "event_intercept_response"
                guest.send(type=kind, id=frame["id"])

    return program


async def test_the_next_request_has_the_sections_that_one_given_up_had(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": with_section()}) as (session, _):
        with session.open_run() as run:
            with trio.move_on_after(0.5) as scope:
                await run.model_request(REQUEST)
            assert scope.cancelled_caught
            for _ in range(2):  # and so has each that does not come from `system_prompt`
                request = await run.model_request(REQUEST)
                assert request["system_instructions"] == "Be kind.\n\nBe brief."


async def test_a_system_prompt_given_up_is_none(tmp_path, autojump_clock) -> None:
    async with hooked(tmp_path, {"a": with_section()}) as (session, _):
        with session.open_run() as run:
            with trio.move_on_after(0.5) as scope:
                await run.system_prompt("Be kind.")
            assert scope.cancelled_caught
            assert (await run.model_request(REQUEST))["system_instructions"] == "Be kind.\n\nBe brief."
            prompt = await run.system_prompt("Be kind.")
            with trio.move_on_after(0.5) as scope:
                await run.system_prompt("")
            assert scope.cancelled_caught
            request = await run.model_request({**REQUEST, "system_instructions": prompt})
            assert request["system_instructions"] == prompt


async def test_one_that_is_stopped_the_moment_it_is_started_is_reaped(tmp_path, autojump_clock) -> None:
    """Its end began before the task that watches for its exit had had its first step."""
    for number in range(20):
        seed(number)
        async with world(tmp_path) as (around, host):
            around.add("a", serve)
            async with host.open_session("s") as session:
                with trio.CancelScope() as scope:
                    scope.cancel("at once")
                    await session.load(around.candidates[0])
                await session.unload("a")
            assert around.guests["a"].reaped


async def test_one_whose_tasks_end_by_a_fault_while_it_is_wound_up_is_reaped(tmp_path, autojump_clock) -> None:
    """Whoever watched for its exit has gone, after its end had begun; nobody must wait for a SIGKILL in vain."""

    async def slow(guest):
        await serve(guest)
        await trio.sleep(1)

    async with world(tmp_path) as (around, host):
        around.add("a", slow)
        async with host.open_session("s") as session:
            await session.load_all()
            instance = session.loader.running("a")
            instance.stop()
            await trio.sleep(0.5)
            instance.nursery.cancel_scope.cancel("as a fault in one of its tasks would")
            await session.unload("a")
        assert around.guests["a"].reaped
        assert not around.guests["a"].signals
        assert "unkillable" not in codes(host)
