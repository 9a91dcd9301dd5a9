"""Who looks after a session of a chaos run: its extensions, and its history."""

from __future__ import annotations

import trio
from chaos.agent import COMMIT_S, Ticker, User, Worker
from chaos.plan import DEADLINES, GUESTS
from chaos.rest import overdue

LATE_S = 2.5
"""After the deadline of a call, so long for what may come in its grace, and for a busy machine."""


class Operator(Worker):
    """Reloads, unloads, loads and changes extensions."""

    acts = ("reload", "reload_one", "reload_one", "unload", "load", "load_all", "wait")

    async def reload(self) -> None:
        for name in self.dice.sample(GUESTS, 2):
            (self.stage.directories[name] / "changed").write_text(str(self.number()))
        when = self.dice.choice(("now", "idle"))
        # Runs of others may be open for as long as they like: who waits for them has to give up by himself.
        give_up = 1.5 if when == "idle" else self.dice.choice((0.3, float("inf")))
        limit_s = DEADLINES.reload_total_s + DEADLINES.stop_total_s
        await self.stage.tally.use("reload", limit_s, lambda: self.session.reload(when=when), give_up)

    async def reload_one(self) -> None:
        name, limit_s = self.dice.choice(GUESTS), DEADLINES.reload_total_s + DEADLINES.stop_total_s
        grace_s = self.dice.choice((0.0, 0.2, None))
        await self.use("reload", limit_s, lambda: self.session.reload(name, when="now", grace_s=grace_s))

    async def unload(self) -> None:
        name = self.dice.choice(GUESTS)
        await self.use("unload", DEADLINES.stop_total_s + DEADLINES.life_cycle_s, lambda: self.session.unload(name))

    async def load(self) -> None:
        directory = self.stage.directories[self.dice.choice(GUESTS)]
        limit_s = DEADLINES.hello_s + DEADLINES.ready_cap_s + DEADLINES.life_cycle_s + COMMIT_S
        await self.use("load", limit_s, lambda: self.session.load(directory))

    async def load_all(self) -> None:
        await self.use("load_all", DEADLINES.ready_cap_s + DEADLINES.hello_s, self.session.load_all)

    async def wait(self) -> None:
        self.stage.watch.look_closely(self.session)
        late = overdue(self.session, LATE_S)
        await trio.sleep(0.3)
        if still := late & overdue(self.session, LATE_S):
            self.stage.watch.fault(f"waited for long after their deadlines: {still}")


class Historian(Worker):
    """Goes back and forth in the transcript, to which what extensions store belongs."""

    acts = ("advance", "advance", "checkout", "compact", "fork", "wait")

    async def advance(self) -> None:
        name = f"entry-{self.number()}"
        await self.use("advance", COMMIT_S, lambda: self.session.advance(name))
        self.stage.entries.append(name)

    async def checkout(self) -> None:
        name = self.dice.choice(["", *self.stage.entries[-20:]])
        await self.use("checkout", COMMIT_S, lambda: self.session.checkout(name))

    async def compact(self) -> None:
        await self.use("compact", COMMIT_S, self.session.compact_state)

    async def fork(self) -> None:
        if self.dice.random() < 0.2:
            name, into = self.dice.choice(["", *self.stage.entries[-20:]]), f"{self.session.id}-{self.number()}"
            await self.use("fork", COMMIT_S, lambda: self.session.fork(name, into))

    async def wait(self) -> None:
        await trio.sleep(0.2)


WORKERS = (Ticker, User, User, User, Operator, Historian)
