"""What an extension stores counts in the order of its frames, however many are on the way at once."""

from __future__ import annotations

import trio
import trio.testing
from runtime.test_durable_state import WRITER, set_state, stored

from trio_exthost.state.memory import MemoryStores

ROUNDS = 10
"""Trio runs what is ready in either order, by chance."""
MANY = 20
DESCRIPTOR = {"name": "c", "description": "c", "argument_schema": {"type": "object"}}


async def bursting(guest) -> None:
    """At each invocation: commits, the answer, which stores too, and more commits, all at once."""
    guest.greet(capabilities=["effects"], ready=False)
    guest.send(type="register", registration_id=1, kind="command", descriptor=DESCRIPTOR)
    guest.send(type="ready")
    number = 0
    while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
        if frame["type"] != "invoke":
            continue
        for space in ("session", "extension"):
            for each in range(number, number + MANY):
                guest.send(type="state_commit", id=f"{space} {each}", space=space, actions=[set_state("k", each)])
        answer = {"value": {"status": "success"}, "actions": [set_state("k", "answer"), set_state("answer", number)]}
        guest.send(type="invoke_result", id=frame["id"], **answer)
        number += MANY
        for space in ("session", "extension"):
            guest.send(type="state_commit", id=f"{space} {number}", space=space, actions=[set_state("k", number)])
        number += 1


async def test_commits_and_answers_count_in_the_order_of_their_frames(tmp_path, autojump_clock) -> None:
    stores = MemoryStores()
    async with stored(tmp_path, bursting, stores=stores) as (session, guest):
        for number in range(1, ROUNDS + 1):
            await session.run_command("c", {})
            await trio.testing.wait_all_tasks_blocked()
            last = number * (MANY + 1) - 1
            projection = session.persistence.projection("a")
            assert projection.get("k") == last
            # The answer was stored after the commits before it and before the one after it.
            assert projection.revision_of("k") == projection.revision_of("answer") + 1 == number * (MANY + 2)
            assert stores.open_extension("a").read().get("k") == last
        results = [each for each in guest.received if each["type"] == "state_result"]
        for space in ("session", "extension"):
            ids = [each["id"] for each in results if each["id"].startswith(space)]
            assert ids == [f"{space} {each}" for each in range(ROUNDS * (MANY + 1))]


async def test_a_caller_that_gives_up_its_answer_holds_up_nobody(tmp_path, autojump_clock) -> None:
    async with stored(tmp_path, bursting, section=WRITER) as (session, guest):
        for _ in range(ROUNDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run_command, "c", {})
                while not any(each["type"] == "state_result" for each in guest.received):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
        await session.run_command("c", {})
        await trio.testing.wait_all_tasks_blocked()
        sent = sum(each["type"] == "invoke" for each in guest.received) * 2 * (MANY + 1)
        assert sum(each["type"] == "state_result" for each in guest.received) == sent
