"""Generated plans of reloads, calls, chains, runs and cancellations, beside a small model of who owns what.

The model: a name belongs to the newest version of its extension that has taken over and lives; a version takes over when it
gets ready; one that fails, hangs or dies before leaves the one before in place. It is looked at after every change of the
session, not only at the end.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from runtime.fakes import Guest, World, assert_nothing_left, world
from runtime.reloads import answer, change

from trio_exthost import CallError, Deadlines, ExtensionPolicy, HostInstrument, Policy, Session
from trio_exthost.effects import ChangeAction, DisposeCause, EffectKind
from trio_exthost.errors import UnknownTool

TIMES = st.integers(0, 60).map(lambda tenths: tenths / 10)
DEADLINES = Deadlines(
    hello_s=2,
    ready_cap_s=1,
    intercept_s=1,
    chain_s=2,
    tool_s=2,
    stop_grace_s=0.5,
    term_grace_s=0.5,
    stop_total_s=2,
    reload_total_s=4,
)
FATES = st.sampled_from(
    ["good", "slow start", "fails", "hangs", "dies when ready", "dies later", "clings", "drops the guard"]
)
PATIENCE = st.one_of(st.just(100.0), st.just(100.0), TIMES)
"""After how long an act is given up: mostly not."""
DELAYS = st.sampled_from([0, 0.4, 1.5])
ACTS = st.one_of(
    st.tuples(st.just("reload"), st.sampled_from([None, "a", "g"]), st.sampled_from(["idle", "now"]), DELAYS),
    st.tuples(st.just("reload"), st.sampled_from(["a", "g"]), st.just("now"), DELAYS),
    st.tuples(st.just("call"), st.sampled_from("ag")),
    st.tuples(st.just("chain")),
    st.tuples(st.just("run"), DELAYS),
    st.tuples(st.just("emit")),
)
PLANS = st.fixed_dictionaries(
    {
        "fates": st.fixed_dictionaries({name: st.lists(st.tuples(FATES, DELAYS), max_size=4) for name in "ag"}),
        "acts": st.lists(st.tuples(TIMES, ACTS, PATIENCE), min_size=3, max_size=12),
        "end": st.integers(60, 160).map(lambda tenths: tenths / 10),
    }
)
POLICY = Policy(extensions={"g": ExtensionPolicy(required=True, guards={"tool:*"})})


class Versions:
    """The programs of one extension: the first is good, the others have the fates of the plan."""

    def __init__(self, name: str, fates: list[tuple[str, float]]) -> None:
        self.name = name
        self._fates = iter([("good", 0.0), *fates])
        self._numbers = itertools.count()

    async def __call__(self, guest: Guest) -> None:
        fate, delay = next(self._fates, ("good", 0.0))
        number = next(self._numbers)
        if fate == "fails":
            guest.exit(3)
        if fate == "hangs":
            guest.ignores.add(15)
            await trio.sleep_forever()
        if fate == "slow start":
            await trio.sleep(delay)
        guest.send(type="hello", name=self.name, capabilities=[])
        guest.send(type="register_tool", name=f"t-{self.name}", schema={"type": "object"})
        guest.send(type="register_tool", name=f"v-{self.name}-{number}", schema={"type": "object"})
        if fate != "drops the guard":
            guest.send(type="subscribe", events=["tick"], intercept=["tool_call"])
        guest.send(type="ready")
        if fate == "dies when ready":
            await trio.sleep(delay)
            guest.exit(4)
        async with trio.open_nursery() as nursery:
            if fate == "dies later":
                nursery.start_soon(self._die, guest, delay + 1)
            while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
                if "id" in frame:
                    nursery.start_soon(self._answer, guest, frame, delay)
            if fate == "clings":
                guest.ignores.add(15)
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()

    async def _die(self, guest: Guest, after: float) -> None:
        await trio.sleep(after)
        guest.exit(5)

    async def _answer(self, guest: Guest, frame: dict[str, Any], delay: float) -> None:
        await trio.sleep(delay)
        if guest._stdout >= 0:
            guest.send(type="register_tool", name=f"l-{guest.pid}-{frame['id']}", schema={"type": "object"})
            answer(guest, frame, str(guest.pid))


class Watch(HostInstrument):
    """Looks after every step of the ledger at who owns what, and keeps every instance it has seen."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.instances: dict[int, Any] = {}
        self.verdicts: list[Any] = []

    def effects_changed(self, session_id, changes) -> None:
        for change_ in changes:
            instance = change_.record.registration.value.instance
            self.instances[instance.number] = instance
        self._check_step(changes)
        self.look()

    def _check_step(self, changes) -> None:
        """A name that changes hands never lies on the ground; nothing else takes from somebody who lives."""
        accepted = {each.record.registration.key for each in changes if each.action is ChangeAction.ACCEPTED}
        asked = {
            each.record.owner.extension_id
            for each in changes
            if each.action is ChangeAction.ACCEPTED and each.record.registration.kind is EffectKind.INTERCEPTION
        }
        for each in changes:
            record, instance = each.record, each.record.registration.value.instance
            if each.action is not ChangeAction.DISPOSED:
                continue
            if each.cause is DisposeCause.RELOAD:
                name = record.owner.extension_id
                assert f"t-{name}" in accepted
                assert name != "g" or record.registration.kind is not EffectKind.INTERCEPTION or name in asked
            elif each.cause in (DisposeCause.OWNER, DisposeCause.FAULT):
                assert instance.is_ending or instance.state == "tripped", f"{record.registration.key} was taken away"

    def chain_ended(self, session_id, verdict, seconds) -> None:
        self.verdicts.append(verdict)

    def look(self) -> None:
        session = self.session
        if session is None:
            return
        for name in "ag":
            owners = {
                record.owner.instance
                for kind in EffectKind
                for record in session.ledger.active_records(kind)
                if record.owner.extension_id == name
            }
            # One owner, and it is the one of its name: never the old one and the new one, never one that only waits.
            assert len(owners) <= 1
            running = session.loader.running(name)
            if owners and running is not None:
                assert owners == {running.number}, f"{name}: {owners}, but {running.number} is the one"
            tool = session.ledger.active(EffectKind.TOOL, f"t-{name}")
            marks = [key for key in _tools(session) if key.startswith(f"v-{name}-")]
            if tool is not None and owners:
                assert len(marks) <= 1, marks
        told = session.views.subscribers.get("tick", ())
        assert len({each.name for each in told}) == len(told)
        asked = session.views.interceptors.get("tool_call", ())
        assert len({each.name for each in asked}) == len(asked)
        assert all(session.loader.running(each.name) is each for each in asked)


def _tools(session: Session) -> list[str]:
    return [record.registration.key for record in session.ledger.active_records(EffectKind.TOOL)]


async def play(plan: dict[str, Any], tmp_path: Path) -> None:
    watch, ended, begun = Watch(), Counter[str](), 0
    reports: list[Any] = []
    async with world(tmp_path, deadlines=DEADLINES, policy=POLICY, instrument=watch) as (around, host):
        for name in "ag":
            around.add(name, Versions(name, plan["fates"][name]))
            change(around, name)
        guests = _keep_guests(around)
        host.spawn = around.spawn
        async with host.open_session("s") as session, trio.open_nursery() as nursery:
            await session.load_all()
            watch.session = session

            async def do(at: float, act: tuple[Any, ...], give_up_after: float) -> None:
                nonlocal begun
                await trio.sleep_until(at)
                if act[0] == "emit":
                    session.emit("tick")
                    return
                if act[0] == "run":
                    with session.open_run():
                        await trio.sleep(act[1])
                    return
                begun += 1
                if act[0] == "reload":
                    for name in "ag" if act[1] is None else act[1]:
                        change(around, name)
                try:
                    with trio.move_on_after(give_up_after) as scope:
                        await _use(session, act, reports, guests)
                except (CallError, UnknownTool) as exc:
                    ended[exc.code] += 1
                except trio.Cancelled:
                    ended["cancelled"] += 1
                    raise
                else:
                    ended["given up" if scope.cancelled_caught else "ok"] += 1

            for each in plan["acts"]:
                nursery.start_soon(do, *each)
            await trio.sleep_until(plan["end"])
            nursery.cancel_scope.cancel("the plan is over")
        watch.session = None
        assert sum(ended.values()) == begun
        assert session.loader._beside == set()
        assert session.reload_pending == ()
        for instance in watch.instances.values():
            assert instance.ended.is_set()
            assert len(instance.replies) == len(instance.nested) == 0
            assert instance.outbox.waiting_frames == 0
        assert all(guest.reaped for guest in guests)
        _check_verdicts(watch)
        for report in reports:
            _check_report(report)
        assert_nothing_left(session)


def _keep_guests(around: World) -> list[Guest]:
    """Every process that will be started, not only the last of each name."""
    guests: list[Guest] = []
    spawn = around.spawn

    def keeping(argv, **options) -> Guest:
        guests.append(spawn(argv, **options))
        return guests[-1]

    around.spawn = keeping
    return guests


async def _use(session: Session, act: tuple[Any, ...], reports: list[Any], guests: list[Guest]) -> None:
    if act[0] == "reload":
        report = await session.reload(act[1], when=act[2], grace_s=act[3])
        reports.append(report)
        await trio.sleep(DEADLINES.stop_total_s + 0.1)  # what the total of the reload may have cut off
        old = {each.old_pid for each in report.restarted}
        assert all(guest.reaped for guest in guests if guest.pid in old), "an old process lives on"
    elif act[0] == "call":
        before = session.loader.running(act[1])
        result = await session.call_tool(f"t-{act[1]}", {})
        assert result.is_error or before is not None
    else:
        await session.intercept("tool_call", {"tool_id": "1", "tool_name": "bash", "tool_args": {}})


def _check_verdicts(watch: Watch) -> None:
    """A required guard took part in every chain: it answered, or what it guards was refused."""
    for verdict in watch.verdicts:
        steps = [step for step in verdict.steps if step.extension == "g"]
        if not verdict.blocked:
            assert steps, verdict.explain()
            assert all(step.kind.value == "allowed" for step in steps), verdict.explain()


def _check_report(report: Any) -> None:
    """Nobody is in two lists."""
    names = [*report.added, *report.removed, *report.unchanged]
    names += [each.name for each in (*report.restarted, *report.failed)]
    assert len(names) == len(set(names)), report
    assert all(each.old_pid != each.new_pid for each in report.restarted)


@given(plan=PLANS, seed=st.random_module())
def test_whatever_happens_each_name_has_its_one_owner_and_a_guard_is_never_away(plan, seed) -> None:
    del seed  # drawn so that trio schedules differently in each example
    with tempfile.TemporaryDirectory() as folder:
        trio.run(play, plan, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
