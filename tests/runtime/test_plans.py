"""Generated plans: whatever extensions and the agent do, each call ends in one way and nothing is left."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from runtime.fakes import Guest, assert_nothing_left, world

from trio_exthost import CallError, ClosedError, Deadlines, HostError, Session

TIMES = st.integers(0, 40).map(lambda tenths: tenths / 10)
"""When something happens, in seconds; the deadlines below lie among them."""
DEADLINES = Deadlines(
    intercept_s=1, chain_s=1.5, command_s=2, tool_s=2, stall_s=1.5, stop_grace_s=0.5, term_grace_s=0.5, stop_total_s=2
)
ANSWERS = st.sampled_from(["answer", "late", "twice", "wrong type", "wrong id", "malformed", "never", "die", "garbage"])
GUEST_ACTS = st.sampled_from(["die", "close stdout", "close stdin", "stop reading", "garbage", "register", "notify"])
HOST_ACTS = st.sampled_from(["emit", "flood", "intercept", "command", "tool", "unload", "load"])
PLANS = st.fixed_dictionaries(
    {
        "answers": st.lists(st.lists(ANSWERS, max_size=6), min_size=2, max_size=2),
        "guests": st.lists(st.tuples(TIMES, st.integers(0, 1), GUEST_ACTS), max_size=3),
        "host": st.lists(st.tuples(TIMES, HOST_ACTS, st.integers(0, 1), TIMES), max_size=8),
        "end": TIMES,
    }
)


class Actor:
    """A fake extension that answers as its plan says, and meanwhile does what the plan says."""

    def __init__(self, answers: list[str], acts: list[tuple[float, str]]) -> None:
        self.answers = list(answers)
        self.acts = acts
        self.events: list[int] = []

    async def __call__(self, guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=["tool_cancel", "call_tool"])
        guest.send(type="register_command", name=f"x-{guest.name}")
        guest.send(type="register_tool", name=f"t-{guest.name}", schema={"type": "object"})
        guest.send(type="subscribe", events=["tick"], intercept=["tool_call"])
        guest.send(type="ready")
        async with trio.open_nursery() as nursery:
            self.reading = trio.Event()
            self.reading.set()
            for at, act in self.acts:
                nursery.start_soon(self.act, guest, at, act)
            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                await self.reading.wait()
                if frame["type"] == "event":
                    self.events.append(frame["sequence"])
                elif "id" in frame and frame["type"] != "tool_cancel":
                    nursery.start_soon(self.answer, guest, frame)
            nursery.cancel_scope.cancel("stdin has ended")

    async def act(self, guest: Guest, at: float, act: str) -> None:
        await trio.sleep_until(at)
        if act == "die":
            guest.exit(9)
        elif act == "close stdout":
            guest.close_stdout()
        elif act == "close stdin":
            guest.close_stdin()
        elif act == "stop reading":
            self.reading = trio.Event()
        elif guest._stdout >= 0:
            if act == "garbage":
                guest.write(b"\xff\xfe garbage\n")
            elif act == "register":
                guest.send(type="register_command", name="late")
            else:
                guest.send(type="notify", message="hi")

    async def answer(self, guest: Guest, frame: dict[str, Any]) -> None:
        how = self.answers.pop(0) if self.answers else "answer"
        kind = {
            "command_invoked": "command_response",
            "tool_call": "tool_result",
            "event_intercept": "event_intercept_response",
        }[frame["type"]]
        if how == "late":
            await trio.sleep(2.5)
        if how == "never" or guest._stdout < 0:
            return
        if how == "die":
            guest.exit(1)
        elif how == "garbage":
            guest.write(b"{oops\n")
        else:
            answer: dict[str, Any] = {"type": kind, "id": frame["id"]}
            if how == "wrong id":
                answer["id"] = "0"
            if how == "wrong type":
                answer["type"] = "tool_result" if kind != "tool_result" else "command_response"
            if how == "malformed":
                answer[{"command_response": "action", "tool_result": "content"}.get(kind, "block")] = 7
            guest.send(**answer)
            if how == "twice":
                guest.send(**answer)


async def use(session: Session, act: str, name: str, ended: Counter[str]) -> None:
    """One act of the agent; however it ends is counted, once."""
    try:
        if act == "intercept":
            await session.intercept("tool_call", {"tool_name": "bash", "tool_args": {}})
        elif act == "command":
            await session.run_command(f"x-{name}")
        else:
            await session.call_tool(f"t-{name}", {})
    except CallError as exc:
        ended[exc.code] += 1
    except trio.Cancelled:
        ended["cancelled"] += 1
        raise
    else:
        ended["ok"] += 1


async def play(plan: dict[str, Any], tmp_path: Path) -> None:
    actors = [
        Actor(answers, [(at, act) for at, who, act in plan["guests"] if who == number])
        for number, answers in enumerate(plan["answers"])
    ]
    ended: Counter[str] = Counter()
    begun = 0
    async with world(tmp_path, deadlines=DEADLINES) as (around, host):
        for name, actor in zip("ab", actors, strict=True):
            around.add(name, actor)
        async with host.open_session("s") as session, trio.open_nursery() as nursery:
            await session.load_all()

            async def do(at: float, act: str, who: int, give_up_after: float) -> None:
                nonlocal begun
                await trio.sleep_until(at)
                name = "ab"[who]
                if act in ("emit", "flood"):
                    for _ in range(1 if act == "emit" else 40):
                        session.emit("tick", {"pad": "x" * (5000 if act == "flood" else 1)})
                elif act == "unload":
                    await session.unload(name)
                elif act == "load":
                    try:
                        await session.load(around.candidates[who])
                    except HostError:
                        return
                else:
                    begun += 1
                    latest = trio.current_time() + 2 + 0.001
                    with trio.move_on_after(give_up_after):
                        await use(session, act, name, ended)
                    assert trio.current_time() <= latest, f"{act} outlived its deadline"

            for each in plan["host"]:
                nursery.start_soon(do, *each)
            await trio.sleep_until(plan["end"])
            nursery.cancel_scope.cancel("the plan is over")
        instances = [*session.loader._gone.values()]
        assert all(instance.ended.is_set() for instance in instances)
        assert sum(ended.values()) == begun
        for instance in instances:
            assert len(instance.replies) == 0
            assert len(instance.nested) == 0
            assert instance.outbox.waiting_frames == 0
        for actor in actors:
            assert actor.events == sorted(set(actor.events))
        assert_nothing_left(session)
        try:
            session.emit("tick")
        except ClosedError:
            return
        raise AssertionError("a session that has ended took an event")


@given(plan=PLANS, seed=st.random_module())
def test_after_any_plan_each_call_has_ended_once_and_nothing_is_left(plan: dict[str, Any], seed: object) -> None:
    del seed  # drawn so that trio schedules differently in each example
    with tempfile.TemporaryDirectory() as folder:
        trio.run(play, plan, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
