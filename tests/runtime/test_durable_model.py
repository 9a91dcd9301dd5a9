"""Random walks through a live session: branches, answers that store, commits, upgrades, calls that are cancelled anywhere.

The model is a dictionary per position. What was cancelled may count or not, but whole, and what comes after builds on it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st
from runtime.fakes import world
from runtime.reloads import change
from runtime.test_durable_moments import commit
from runtime.test_durable_state import WRITER, set_state, storing

from trio_exthost.packages import Manifest
from trio_exthost.packages.manifest import HostSection
from trio_exthost.state.memory import MemoryStores

keys = st.sampled_from("abc")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("advance")),
        st.tuples(st.just("checkout"), st.integers(0, 9)),
        st.tuples(st.just("answer"), keys),
        st.tuples(st.just("answer"), keys),
        st.tuples(st.just("commits"), keys, st.integers(1, 3)),
        st.tuples(st.just("fork"), st.integers(0, 9)),
        st.tuples(st.just("compact")),
        st.tuples(st.just("upgrade")),
        st.tuples(st.just("upgrade")),
        st.tuples(st.just("reopen")),
    ).flatmap(lambda step: st.tuples(st.just(step), st.none() | st.none() | st.integers(0, 12))),
    min_size=4,
    max_size=14,
)


@attrs.define
class Branch:
    """What a position holds."""

    state: dict[str, object] = attrs.field(factory=dict)
    schema: int | None = None

    def copy(self) -> Branch:
        return Branch(dict(self.state), self.schema)

    def migrate(self, schema: int) -> None:
        if self.schema is not None and self.schema != schema:
            self.schema = schema
            self.state["migrated to"] = schema


def migrating(payload):
    return {"value": {"state": {**payload["state"], "migrated to": payload["to_schema_version"]}}}


class Walk:
    """The model, and the session beside it."""

    def __init__(self) -> None:
        self.stores = MemoryStores()
        self.branches = {"": Branch()}
        self.selected = ""
        self.schema = 1
        self.count = 0
        self.copies: dict[str, Branch] = {}

    @property
    def here(self) -> Branch:
        return self.branches[self.selected]

    def next(self) -> int:
        self.count += 1
        return self.count

    def store(self, key: str, value: object) -> None:
        self.here.state[key] = value
        self.here.schema = self.schema

    def actual(self) -> Branch:
        projection = self.session.persistence.projection("a")
        return Branch(projection.state(), projection.schema)

    def check(self) -> None:
        assert self.session.persistence.selected == self.selected
        assert self.actual() == self.here
        assert [row.state for row in self.session.extensions()] == ["ready"]
        assert not self.around.guests["a"].signals

    # --- steps: each returns what to do to the model if it counted, and how to see whether it did ---

    async def advance(self) -> None:
        name = f"m{self.next()}"
        await self.attempt(self.session.advance, name)
        if self.session.persistence.selected == name:
            self.branches[name] = self.here.copy()
            self.selected = name
        else:
            assert self.is_cut

    async def checkout(self, number: int) -> None:
        name = sorted(self.branches)[number % len(self.branches)]
        await self.attempt(self.session.checkout, name)
        if self.session.persistence.selected == name:
            self.selected = name
            self.here.migrate(self.schema)
        else:
            assert self.is_cut

    async def answer(self, key: str) -> None:
        value = self.next()
        await self.attempt(self.session.run_command, "c", {"actions": [set_state(key, value)]})
        if not self.is_cut or self.actual().state.get(key) == value:
            self.store(key, value)

    async def commits(self, key: str, many: int) -> None:
        for _ in range(many):
            value = self.next()
            commit(self.around.guests["a"], str(value), key, value)
            self.store(key, value)
        await trio.testing.wait_all_tasks_blocked()

    async def fork(self, number: int) -> None:
        name, copy = sorted(self.branches)[number % len(self.branches)], f"copy {self.next()}"
        await self.attempt(self.session.fork, name, copy)
        if not self.is_cut:
            self.copies[copy] = self.branches[name].copy()

    async def compact(self) -> None:
        await self.attempt(self.session.compact_state)

    async def upgrade(self) -> None:
        self.schema += 1
        section = HostSection(**{**WRITER, "state_schema": self.schema})
        manifest = Manifest(name="a", exec="/bin/true", exthost=section)
        change(self.around, "a", storing(schema_migration=migrating), manifest=manifest)
        await self.session.reload("a")
        self.here.migrate(self.schema)

    async def attempt(self, function, *arguments) -> None:
        """Call it, cancelled after so many of the scheduler's rounds, if at all."""
        self.is_cut = False
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                if self.cut is not None:
                    nursery.start_soon(self._cut, scope)
                await function(*arguments)
                nursery.cancel_scope.cancel("it has ended by itself")
        self.is_cut = scope.cancelled_caught
        await trio.testing.wait_all_tasks_blocked()

    async def _cut(self, scope: trio.CancelScope) -> None:
        for _ in range(self.cut):
            await trio.lowlevel.checkpoint()
        scope.cancel("cut")

    # --- lives ---

    async def live(self, path: Path, steps, session_id: str = "s") -> list:
        """Take steps until the session is to be opened anew; what is left of them."""
        async with world(path, state=self.stores) as (self.around, host):
            section = {**WRITER, "state_schema": self.schema}
            self.around.add("a", storing(schema_migration=migrating), **section)
            async with host.open_session(session_id) as self.session:
                await self.session.load_all()
                if session_id != "s":
                    self.branches, self.selected = {session_id: self.copies[session_id]}, session_id
                    self.here.migrate(self.schema)
                    assert self.actual() == self.here
                    return []
                self.check()
                while steps:
                    (name, *arguments), self.cut = steps.pop(0)
                    if name == "reopen":
                        break
                    await getattr(self, name)(*arguments)
                    self.check()
                for name in sorted(self.branches) if not steps else ():
                    await self.session.checkout(name)
                    self.selected = name
                    self.here.migrate(self.schema)
                    self.check()
        return steps


AWAY_AND_BACK = [
    ("advance",),
    ("answer", "a"),
    ("checkout", 0),
    ("upgrade",),
    ("advance",),
    ("answer", "b"),
    ("checkout", 1),
]


@given(steps)
@example([(step, None) for step in AWAY_AND_BACK])
@example([(step, 3) for step in AWAY_AND_BACK])
def test_any_walk_leaves_what_the_model_says(plan) -> None:
    async def walk() -> None:
        a_walk, left = Walk(), list(plan)
        with tempfile.TemporaryDirectory() as name:
            while True:
                left = await a_walk.live(Path(name), left)
                if not left:
                    break
            for copy in a_walk.copies:
                await a_walk.live(Path(name), [], copy)

    trio.run(walk, clock=trio.testing.MockClock(autojump_threshold=0))
