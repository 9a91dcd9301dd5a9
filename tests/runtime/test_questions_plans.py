"""Generated orders of calls, questions, answers and ends: every question ends in one way, and no clock stands still after it."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from runtime.askers import Asker, Person, asker
from trio.testing import wait_all_tasks_blocked

from trio_exthost import Deadlines, Question

PLACE = st.integers(0, 4)
AT_ONCE = st.sampled_from([None, "answer", "decline", "cancel", "unavailable", "raise"])
ACT = st.one_of(
    st.tuples(st.just("call")),
    st.tuples(st.just("ask"), PLACE, st.sampled_from([None, 0, 3000]), AT_ONCE),
    st.tuples(st.sampled_from(["answer", "decline", "cancel", "unavailable"]), PLACE),
    st.tuples(st.sampled_from(["finish", "fail", "give up"]), PLACE),
    st.tuples(st.just("sleep"), st.sampled_from([1, 4, 12])),
)
LAST = st.sampled_from(["finish", "unload", "exit", "nothing"])


class Plan:
    """What a plan has begun."""

    def __init__(self, one: Asker, person: Person, nursery: trio.Nursery) -> None:
        self.one = one
        self.person = person
        self.nursery = nursery
        self.calls: list[tuple[str, trio.CancelScope]] = []
        self.asked = 0

    async def call(self) -> None:
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await self.one.call()

        self.nursery.start_soon(run)
        self.calls.append((await self.one.invoked(), scope))

    async def act(self, what: str, *details: Any) -> None:
        if what == "call":
            await self.call()
        elif what == "sleep":
            await trio.sleep(details[0])
        elif what == "ask" and self.calls:
            place, timeout_ms, at_once = details
            self.person.react = reaction(at_once)
            self.asked += 1
            more = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
            await self.one.ask(self.calls[place % len(self.calls)][0], f"q{self.asked}", **more)
        elif what in ("answer", "decline", "cancel", "unavailable") and self.person.questions:
            question = self.person.questions[details[0] % len(self.person.questions)]
            if question.is_open:
                assert settle(question, what) is True
            elif question.withdrawn:
                assert settle(question, what) is False
        elif what in ("finish", "fail", "give up") and self.calls:
            invocation, scope = self.calls[details[0] % len(self.calls)]
            if what == "give up":
                scope.cancel()
            elif what == "fail":
                await self.one.send(type="invoke_result", id=invocation, error={"code": "x", "message": "y"})
            else:
                await self.one.finish(invocation)
        await wait_all_tasks_blocked()

    def check(self) -> None:
        """A clock stands still exactly while its invocation has a question open."""
        instance = self.one.instance
        for invocation, asking in instance.questions.invocations.items():
            mine = [each for each in self.person.questions if each.is_open and each in asking._open]
            assert instance.replies.find(invocation).patience.is_paused is bool(mine)
        assert len(instance.questions) == sum(question.is_open for question in self.person.questions)


def settle(question: Question, how: str) -> bool:
    return question.answer(True) if how == "answer" else getattr(question, how)()


def reaction(how: str | None):
    def react(question: Question) -> None:
        if how == "raise":
            raise LookupError("no screen")
        if how is not None:
            settle(question, how)

    return react


@given(st.lists(ACT, max_size=25), LAST, st.random_module())
def test_any_order_leaves_nothing_open(acts: list[tuple[Any, ...]], last: str, random: object) -> None:
    async def main(folder: Path) -> None:
        person = Person()
        async with asker(folder, person, deadlines=Deadlines(tool_s=10)) as one:
            instance = one.instance
            async with trio.open_nursery() as nursery:
                plan = Plan(one, person, nursery)
                for act in acts:
                    await plan.act(*act)
                    plan.check()
                match last:
                    case "finish":
                        for invocation, _ in plan.calls:
                            await one.finish(invocation)
                    case "unload":
                        await one.session.unload("a")
                    case "exit":
                        one.guest.exit(1)
                    case "nothing":
                        nursery.cancel_scope.cancel()
            await wait_all_tasks_blocked()
            assert len(instance.replies) == 0
            assert len(instance.questions) == 0
        told = Counter(each[0] for each in one.told())
        assert set(told.values()) <= {1}
        if last != "exit":
            assert sum(told.values()) == plan.asked
        assert all(not question.is_open for question in person.questions)
        assert [bool(question.withdrawn) for question in person.questions].count(True) == len(person.withdrawn)

    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
