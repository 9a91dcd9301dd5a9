"""The agent of a chaos run: two sessions, in each several people and machines at work, who throw dice about what to do next."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import trio
from chaos.answers import SECOND
from chaos.plan import DEADLINES, GUESTS, WITNESS, Plan, chance
from chaos.tally import Tally
from chaos.watch import Watch
from effects.ledger_invariants import check_invariants

from trio_exthost import (
    AgentRef,
    BranchTarget,
    CallError,
    ModelRef,
    Outcome,
    Panel,
    Run,
    Session,
    Success,
    ToolResult,
)

CHAIN_S = DEADLINES.chain_s + 1.0
"""A chain, and a person who is asked."""
CALL_S = DEADLINES.tool_maximum_s + 1.0
WHOLE_CALL_S = 3 * CHAIN_S + CALL_S
COMMIT_S = DEADLINES.commit_s


@attrs.frozen
class Stage:
    """What everybody in one session works with."""

    plan: Plan
    session: Session
    tally: Tally
    watch: Watch
    directories: dict[str, Path]
    stored: set[str]
    """What the agent was told is stored."""
    entries: list[str]
    """Positions of the transcript."""
    numbers: itertools.count[int]


class Worker:
    """Somebody who does one thing after the other until stopped."""

    acts: tuple[str, ...] = ()

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.session = stage.session
        self.dice = chance(stage.plan.seed, stage.session.id, name)

    async def work(self) -> None:
        while True:
            await getattr(self, self.dice.choice(self.acts))()
            check_invariants(self.session.ledger)
            self.stage.watch.check_questions(self.session)
            await trio.sleep(self.dice.uniform(0, 0.05))

    async def use(self, kind: str, limit_s: float, operation: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call; one in four is given up."""
        give_up = self.dice.uniform(0, 0.6) if self.dice.random() < 0.25 else float("inf")
        return await self.stage.tally.use(kind, limit_s, operation, give_up)

    def number(self) -> int:
        return next(self.stage.numbers)


class Ticker(Worker):
    """Tells what happens, in order."""

    acts = ("tick",)

    async def tick(self) -> None:
        watch, session = self.stage.watch, self.session
        burst = self.dice.random() < 0.03
        for _ in range(500 if burst else self.dice.choice((1, 1, 5, 20, 60))):
            pad = "x" * (3000 if burst else self.dice.choice((1, 100, 1000)))
            session.emit("tick", {"n": watch.ticks[session.id], "pad": pad})
            watch.ticks[session.id] += 1


class User(Worker):
    """Works off requests, as an agent does, and calls this and that directly."""

    acts = (
        *["request", "call", "call", "command", "command"] * 3,
        "crowd",
        "crowd",
        "panel",
        "gates",
        "ask",
        "follow_up",
        "look",
    )

    async def request(self) -> None:
        agent = AgentRef("a1", "helper") if self.dice.random() < 0.3 else None
        with self.session.open_run(agent=agent) as run:
            await self._begin(run)
            for step in range(self.dice.randint(1, 3)):
                if await self.use("turn_start", CHAIN_S, lambda step=step: run.turn_start(step)) is None:
                    continue
                with run.open_request():
                    await self._model(run)
                    await self._text(run)
                    run.turn_end(stop="tool")
                    for _ in range(self.dice.randint(0, 3)):
                        await self.use("tool_call", WHOLE_CALL_S, lambda: self._tool_call(run))
                run.turn_completed({"role": "assistant", "content": "ok"})
            if self.dice.random() < 0.2:
                with run.compaction(message_count=3, token_estimate=10):
                    await self.use("before_compaction", CHAIN_S, lambda: run.before_compaction("short"))
            if self.dice.random() < 0.2:
                payload = {"tool_id": "w", "tool_name": "vault", "tool_args": {"deny": True}}
                verdict = await self.use("what_if", CHAIN_S, lambda: run.what_if("tool_call", payload))
                if verdict is not None and verdict.outcome is not Outcome.BLOCK:
                    self.stage.watch.fault(f"it would be allowed: {verdict.explain()}")

    async def _begin(self, run: Run) -> None:
        await self.use("input", CHAIN_S, lambda: run.input("do it"))
        await self.use("begin", CHAIN_S, lambda: run.begin(system_prompt="Be good.", messages=[]))
        await self.use("system_prompt", CHAIN_S, lambda: run.system_prompt("Be good."))
        self.session.model_context()

    async def _model(self, run: Run) -> None:
        await self.use("context", CHAIN_S, lambda: run.context([{"role": "user", "content": "do it"}]))
        request = {
            "provider": self.session.model.provider,
            "model": self.session.model.model,
            "messages": [{"role": "user", "content": "do it"}],
            "visible_tools": [],
            "executable_tool_names": [],
            "generation_options": {},
        }
        await self.use("model_request", CHAIN_S, lambda: run.model_request(request))
        run.model_response({"text": "fine"})

    async def _text(self, run: Run) -> None:
        async def stream() -> None:
            async with run.assistant_text(f"m{self.number()}") as text:
                for _ in range(self.dice.randint(1, 6)):
                    await text.feed("words " * self.dice.randint(1, 100))

        await self.use("text", 8 * CHAIN_S, stream)

    async def _tool_call(self, run: Run) -> ToolResult | None:
        guest = self.dice.choice(GUESTS)
        name = self.dice.choice(("vault", "vault", "bash", "slow", "shared", f"t-{guest}", f"e-{guest}", "t-witness"))
        number, is_denied = self.number(), self.dice.random() < 0.3
        arguments = {"n": number, "deny": True} if is_denied else {"n": number}
        async with run.tool_call(f"call-{number}", name, arguments) as call:
            self.stage.watch.check_verdict(call.verdict)
            if is_denied and call.verdict.outcome is not Outcome.BLOCK:
                self.stage.watch.fault(f"not blocked: {call.verdict.explain()}")
            if call.verdict.outcome is Outcome.ASK or self.dice.random() < 0.1:
                await call.confirm()
            if self.dice.random() < 0.9:
                result = await call.execute()
                if call.verdict.blocked and (call.executed or not result.is_error):
                    self.stage.watch.fault(f"{name} was run in spite of {call.verdict.explain()}")
                self._took(number, result)
                return result
        return None

    def _took(self, number: int, result: ToolResult) -> None:
        """A result is that of its own call, the first that was given; a call that cannot have begun never does."""
        words = result.text.split()
        if result.text == SECOND or (words[:1] == ["done"] and words[1:] not in ([], [str(number)])):
            self.stage.watch.fault(f"call {number} has the result {result.text!r}")
        if not result.may_have_run:
            self.stage.watch.never_begun[number] = result.text
        self._remember(result.structured_content if not result.is_error else None)

    def _remember(self, data: Any) -> None:
        """An answer that stores is on the disk before the caller has it."""
        if isinstance(data, dict) and data.get("stored"):
            self.stage.stored.add(data["stored"])
            self.stage.watch.check_stored(self.session.id, data["stored"])

    async def call(self) -> None:
        await self._call(self._a_tool())

    async def crowd(self) -> None:
        """Several calls of one tool at once: an answer that comes late finds others that are waited for."""
        name = self._a_tool()
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(self._call, name)

    def _a_tool(self) -> str:
        guest = self.dice.choice(GUESTS)
        return self.dice.choice((f"t-{guest}", f"t-{guest}", f"e-{guest}", "bash", "slow", "t-witness"))

    async def _call(self, name: str) -> None:
        number = self.number()
        # More than a pipe holds, at times: what is given up then is cut, and what is behind it not written at all.
        arguments = {"n": number, "pad": "x" * self.dice.choice((0, 0, 0, 100_000))}

        async def ask() -> ToolResult:
            try:
                return await self.session.call_tool(name, arguments)
            except CallError as exc:
                if not exc.may_have_run:
                    self.stage.watch.never_begun[number] = str(exc)
                raise

        result = await self.use("call_tool", CALL_S + COMMIT_S, ask)
        if result is not None:
            self._took(number, result)

    async def command(self) -> None:
        guest = self.dice.choice(GUESTS)
        name = self.dice.choice((f"c-{guest}", f"ec-{guest}", f"ec-{guest}", f"c-{WITNESS}"))
        outcome = await self.use(
            "command", DEADLINES.command_s + 1 + COMMIT_S, lambda: self.session.run_command(name, {})
        )
        if isinstance(outcome, Success):
            self._remember(outcome.data)

    async def panel(self) -> None:
        panel = self.session.panels.find(f"p{self.dice.randint(0, 9)}")
        if panel is not None:
            self.dice.choice((lambda: panel.key("down"), lambda: panel.resize(80, 24), lambda: self._close(panel)))()

    def _close(self, panel: Panel) -> None:
        self.stage.watch.screens[self.session.id].discard(panel.spec.id)
        panel.close()

    async def gates(self) -> None:
        model = ModelRef("acme", self.dice.choice(("small", "large")))
        target = BranchTarget("a", "b")
        await self.use("select_model", CHAIN_S, lambda: self.session.select_model(model))
        await self.use("before_switch", CHAIN_S, lambda: self.session.before_switch(target))
        await self.use("before_fork", CHAIN_S, lambda: self.session.before_fork("a"))

    async def look(self) -> None:
        """Whatever can be asked at any time."""
        session = self.session
        session.host.stats()
        assert len(session.extensions()) == len(self.stage.directories)
        for verdict in list(session.host.decisions)[-20:]:
            verdict.explain()
        for tool in session.tools():
            assert tool.name
        session.commands()
        await trio.lowlevel.checkpoint()

    async def ask(self) -> None:
        payload = {"tool_id": f"call-{self.number()}", "tool_name": "vault", "tool_args": {"deny": True}}
        verdict = await self.use("intercept", CHAIN_S, lambda: self.session.intercept("tool_call", payload))
        if verdict is not None and verdict.outcome is not Outcome.BLOCK:
            self.stage.watch.fault(f"not blocked: {verdict.explain()}")

    async def follow_up(self) -> None:
        follow_up = self.session.next_follow_up()
        if follow_up is not None:
            with self.session.open_run(follow_up=follow_up) as run:
                await self._begin(run)
