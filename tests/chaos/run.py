"""One chaos run from its beginning to its end, in a host of this process."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio
from chaos.agent import Stage
from chaos.invariants import MARKER, anonymous_bytes
from chaos.keepers import WORKERS
from chaos.person import Person, tools_of
from chaos.plan import DEADLINES, LIMITS, SESSIONS, STEP_S, WARDEN, WITNESS, Plan, chance
from chaos.rest import check_at_rest, check_bounds, check_closed, check_ended, check_objects, open_in
from chaos.tally import Tally
from chaos.watch import Watch
from runtime.real.programs import until_state

from trio_exthost import Host, HostConfig, Session, open_host
from trio_exthost.state import SessionState

HERE = Path(__file__).parent
PROGRAM = ("program.py", "mischief.py", "offers.py", "answers.py")
"""What each extension consists of."""
REST_S = 20.0
"""Until nothing is asked any more once everybody has stopped asking: several deadlines, one after the other."""
PATIENCE_S = 120.0
"""When a run is stuck, not slow."""


def furnish(place: Path, plan: Plan) -> dict[str, Path]:
    """The extensions' directories, by name."""
    directories = {}
    for rank, guest in enumerate(plan.guests):
        directory = directories[guest.name] = place / f"{rank}-{guest.name}"
        directory.mkdir()
        for name in PROGRAM:
            shutil.copy(HERE / name, directory)
        manifest = {"name": guest.name, "exec": sys.executable, "args": ["-S", "program.py"], "exthost": guest.section}
        (directory / "extension.json").write_text(json.dumps(manifest))
        (directory / "plan.json").write_text(json.dumps({**attrs.asdict(guest), "seed": plan.seed}))
    return directories


class Chaos:
    """One run; `faults` of its watch, and what it raises, say what did not hold."""

    def __init__(self, place: Path, plan: Plan, token: str) -> None:
        self.place = place
        self.plan = plan
        self.watch = Watch(place, plan)
        self.tally = Tally(self.watch)
        self.stored: dict[str, set[str]] = {each: set() for each in SESSIONS}
        """What the agent was told is stored."""
        self.states: dict[str, SessionState] = {}
        """As the host had them; they go on to be current until it has left."""
        self.memory: list[int] = []
        """After a third, and at the end."""
        self._directories = furnish(place, plan)
        self._token = token

    @property
    def _config(self) -> HostConfig:
        return HostConfig(
            deadlines=DEADLINES,
            limits=LIMITS,
            data_dir=self.place / "data",
            extensions=self._directories.values(),
            project_roots=(),
            user_roots=(),
            env={MARKER: self._token},
            seed=self.plan.seed,
        )

    async def run(self) -> None:
        """All of it."""
        with trio.fail_after(self.plan.seconds + PATIENCE_S), trio.CancelScope() as everything:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.tally.beat)
                await self._in_a_host(everything)
                nursery.cancel_scope.cancel("it is over")
        self.tally.check()
        self.watch.look_at_instances(is_over=True)

    async def _in_a_host(self, everything: trio.CancelScope) -> None:
        log = self.place / "decisions.jsonl"
        async with (
            open_host(self._config, policy=self.plan.policy, instrument=self.watch, decision_log=log) as host,
            trio.open_nursery() as people,
        ):
            self.watch.host = host
            sessions: list[Session] = []
            try:
                async with self._session(host, people, sessions), self._session(host, people, sessions):
                    await self._work(sessions, everything)
                    await self._come_to_rest(sessions)
                    self.watch.is_leaving = True
                    self._leave(sessions)
            finally:
                self.watch.is_leaving = True
            took = trio.current_time() - self._left_at
            if took > len(SESSIONS) * DEADLINES.stop_total_s + STEP_S:
                self.watch.fault(f"leaving took {took:.2f} s")
            people.cancel_scope.cancel("nobody is asked any more")
            for session in sessions:
                check_ended(session, self.watch.followed[session.id])
                if screen := self.watch.screens[session.id]:
                    self.watch.fault(f"{session.id} has ended, and still shows {screen}")
            check_closed(host)

    @asynccontextmanager
    async def _session(self, host: Host, people: trio.Nursery, sessions: list[Session]) -> AsyncIterator[None]:
        name = SESSIONS[len(sessions)]
        dice = chance(self.plan.seed, name, "person")
        person, tools = Person(people, dice, self.watch), tools_of(self.watch, dice)
        async with host.open_session(name, cwd=self.place, client=person, tools=tools) as session:
            sessions.append(session)
            yield

    async def _work(self, sessions: list[Session], everything: trio.CancelScope) -> None:
        """Everybody does what they like, for as long as the plan says."""
        numbers = itertools.count(1)
        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(session.load_all)
        for session in sessions:
            for name in (WITNESS, WARDEN):
                await until_state(session, name, "ready")
        try:
            async with trio.open_nursery() as nursery:
                for session in sessions:
                    stored = self.stored[session.id]
                    stage = Stage(self.plan, session, self.tally, self.watch, self._directories, stored, [], numbers)
                    for place, kind in enumerate(WORKERS):
                        nursery.start_soon(kind(stage, f"{kind.__name__} {place}").work)
                await trio.sleep(self.plan.seconds / 3)
                self.memory.append(anonymous_bytes())
                await trio.sleep(self.plan.seconds * 2 / 3)
                self._leave(sessions)
                if self.plan.is_abrupt:
                    self.watch.is_leaving = True
                    everything.cancel("in the middle of it")
                self.memory.append(anonymous_bytes())
                nursery.cancel_scope.cancel("the plan is over")
        finally:
            self._leave(sessions)

    def _leave(self, sessions: list[Session]) -> None:
        """Keep hold of what is to be compared with the disk."""
        self._left_at = trio.current_time()
        for session in sessions:
            if session.persistence._committer is not None:
                self.states[session.id] = session.persistence._committer.state

    async def _come_to_rest(self, sessions: list[Session]) -> None:
        """Nobody asks anything any more: then nobody waits for anything, and the witness has heard all."""
        (self.place / "hush").touch()
        until = trio.current_time() + REST_S
        while busy := {f"{each.session.id}/{each.name}": open_in(each) for each in _busy(sessions)}:
            if trio.current_time() > until:
                self.watch.fault(f"at rest, and they still wait: {busy}")
                break
            await trio.sleep(0.05)
        for session in sessions:
            check_at_rest(session)
            with trio.fail_after(REST_S):
                await session.run_command(f"c-{WITNESS}")
            self.watch.look_closely(session)
        if self.watch.results:
            self.watch.fault(f"tool calls without their result: {list(self.watch.results)[:5]}")
        self.watch.look_at_instances(patience_s=0)
        check_bounds(self.watch.host)
        for what in await check_objects(sessions):
            self.watch.fault(what)


def _busy(sessions: list[Session]) -> list:
    everybody = [each for session in sessions for each in (*session.loader.instances(), *session.loader._beside)]
    return [each for each in everybody if open_in(each) or each in each.session.loader._beside]
