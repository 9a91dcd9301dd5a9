"""Reloads one after the other beside a model that says what each report holds, and which version serves, guards and is told.

`test_reload_plans` has everything at the same time and looks at what must never be; here each outcome is known.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import example, given
from hypothesis import strategies as st
from runtime.fakes import Guest, World, assert_nothing_left, world
from runtime.reloads import answer, ask, candidate, change

from trio_exthost import Deadlines, ExtensionPolicy, HostError, Policy, Session
from trio_exthost.packages import Candidate, Status

NAMES = ("plain", "guard")
POLICY = Policy(extensions={"guard": ExtensionPolicy(required=True, guards={"tool:*"})})
DEADLINES = Deadlines(hello_s=2, ready_cap_s=1, stop_grace_s=0.5, term_grace_s=0.5, stop_total_s=2, reload_total_s=9)
FATES = ("good", "exits", "says nothing", "hangs after hello", "exits before ready", "drops the guard")
EDITS = st.tuples(st.just("edit"), st.sampled_from(NAMES), st.sampled_from(("good", *FATES)))
SWITCHES = st.tuples(st.sampled_from(["take away", "switch off", "break", "mend"]), st.sampled_from(NAMES))
ENDS = st.tuples(st.sampled_from(["kill", "unload", "load"]), st.sampled_from(NAMES))
RELOADS = st.tuples(st.just("reload"), st.sampled_from([None, None, *NAMES]))


def program(version: int, fate: str, processes: dict[int, Guest]):
    """One version of an extension: a tool `t-NAME` and an interceptor that say which, or one of the ways to fail."""

    async def run(guest: Guest) -> None:
        processes[guest.pid] = guest
        if fate == "exits":
            return
        if fate == "says nothing":
            await guest.until_shutdown()
            return
        guest.send(type="hello", name=guest.name, capabilities=[])
        if fate == "hangs after hello":
            await guest.until_shutdown()
            return
        guest.send(type="register_tool", name=f"t-{guest.name}", schema={"type": "object"})
        if fate == "exits before ready":
            return
        if fate != "drops the guard":
            guest.send(type="subscribe", intercept=["tool_call"])
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            answer(guest, frame, str(version))

    return run


@attrs.define
class Extension:
    """What the model knows of one extension."""

    name: str
    row: Candidate
    version: int = 0
    fate: str = "good"
    is_listed: bool = True
    """Whether it is on disk, switched on, and its manifest can be read."""
    is_broken: bool = False
    """Whether its manifest cannot be read."""
    was_listed: bool = True
    """As `is_listed` was at the last look."""
    runs: int | None = 0
    """The version that runs."""
    runs_with_guard: bool = True
    runs_with_tool: bool = True
    state: str = "runs"
    """`runs`, `failed`, `unloaded`, or `none`: it is new."""

    def comes_up(self, *, in_place: bool) -> bool:
        """Whether what is on disk takes over."""
        if self.fate == "drops the guard":
            return not (in_place and self.name == "guard" and self.runs_with_guard)
        # Where the one that runs has said that it is ready, silence is no way of getting so.
        return self.fate == "good" or (self.fate == "hangs after hello" and not (in_place and self.runs_with_tool))

    def start(self) -> None:
        self.runs, self.state = self.version, "runs"
        self.runs_with_guard = self.fate == "good"
        self.runs_with_tool = self.fate in ("good", "drops the guard")


class Model:
    """What a reload has to report, and what is the case after it."""

    def __init__(self, extensions: dict[str, Extension], processes: dict[int, Guest]) -> None:
        self.extensions = extensions
        self.processes = processes

    def reload(self, named: str | None) -> dict[str, set[str]]:
        report: dict[str, set[str]] = {key: set() for key in ("added", "removed", "restarted", "unchanged", "failed")}
        for name, it in self.extensions.items():
            if named in (None, name):
                key = self._look(it, is_named=named == name)
                if key is not None:
                    report[key].add(name)
        return report

    def _look(self, it: Extension, *, is_named: bool) -> str | None:
        was_listed, it.was_listed = it.was_listed, it.is_listed or (it.is_broken and it.state == "runs")
        if it.is_broken:
            return "failed"
        if not it.is_listed:
            if not was_listed:
                return "failed" if is_named else None
            it.runs, it.state = None, "none"
            return "removed"
        if it.state == "unloaded" and not is_named:
            return "unchanged"
        if it.state == "runs" and it.runs == it.version and not is_named:
            return "unchanged"
        is_new, in_place = it.state == "none", it.state == "runs"
        if not it.comes_up(in_place=in_place):
            return "failed"
        it.start()
        return "added" if is_new else "restarted"


async def do(around: World, session: Session, model: Model, act: tuple[Any, ...]) -> None:
    """One act, in the world and in the model."""
    if act[0] == "reload":
        report = await session.reload(act[1])
        found = {
            "added": set(report.added), "removed": set(report.removed), "unchanged": set(report.unchanged),
            "restarted": {each.name for each in report.restarted}, "failed": {each.name for each in report.failed},
        }  # fmt: skip
        assert found == model.reload(act[1])
        return
    it = model.extensions[act[1]]
    if act[0] == "edit":
        it.version, it.fate = it.version + 1, act[2]
        it.row = attrs.evolve(it.row, digest=str(it.version))
        around.programs[it.name] = program(it.version, it.fate, model.processes)
    elif act[0] == "kill" and it.state == "runs":
        model.processes[session.loader.running(it.name).pid].exit(9)
        await trio.testing.wait_all_tasks_blocked()
        it.runs, it.state = None, "failed"
    elif act[0] == "unload" and it.state == "runs":
        await session.unload(it.name)
        it.runs, it.state = None, "unloaded"
    elif act[0] == "load" and it.state not in ("runs", "none"):
        await load(session, it)
    elif act[0] in ("take away", "switch off", "break", "mend"):
        it.is_listed, it.is_broken = act[0] == "mend", act[0] == "break"
    arrange(around, model, act[0])


async def load(session: Session, it: Extension) -> None:
    """By hand, as it is on disk; what takes its silence for ready is let in."""
    try:
        await session.load(it.row)
    except HostError:
        it.runs, it.state = None, "failed"
    else:
        it.start()


def arrange(around: World, model: Model, act: str) -> None:
    """The catalogue as the model has it."""
    rows = []
    for it in model.extensions.values():
        if it.is_broken:
            rows.append(attrs.evolve(it.row, status=Status.REJECTED, code="manifest_invalid", manifest=None))
        elif it.is_listed:
            rows.append(it.row)
        elif act == "switch off":
            rows.append(attrs.evolve(it.row, status=Status.DISABLED, code="disabled"))
    around.candidates[:] = rows


async def check(session: Session, model: Model) -> None:
    """Each name is served by the version that the model says, and the guard that is required is asked, or misses."""
    for name, it in model.extensions.items():
        tools = [each.name for each in session.tools()]
        assert (f"t-{name}" in tools) == (it.state == "runs" and it.runs_with_tool)
        if f"t-{name}" in tools:
            assert (await session.call_tool(f"t-{name}", {})).text == str(it.runs)
        else:
            with pytest.raises(HostError):
                await session.call_tool(f"t-{name}", {})
    verdict = await ask(session)
    guard = model.extensions["guard"]
    said = {step.extension: step for step in verdict.steps}
    if guard.state == "runs" and guard.runs_with_guard:
        assert said["guard"].reason == str(guard.runs)
        assert verdict.allowed
    else:
        assert (verdict.blocked, verdict.by) == (True, "guard")
    if verdict.allowed:
        plain = model.extensions["plain"]
        assert ("plain" in said) == (plain.state == "runs" and plain.runs_with_guard)


async def play(acts: list[tuple[Any, ...]], folder: Path) -> None:
    async with world(folder, deadlines=DEADLINES, policy=POLICY) as (around, host):
        extensions, processes = {}, {}
        for name in NAMES:
            around.add(name, program(0, "good", processes))
            change(around, name, digest="0")
            extensions[name] = Extension(name, candidate(around, name))
        model = Model(extensions, processes)
        async with host.open_session("s") as session:
            await session.load_all()
            await check(session, model)
            for act in acts:
                await do(around, session, model, act)
                await check(session, model)
            assert len(session.loader._beside) == 0
            owners = {
                record.owner for name in NAMES for record in session.ledger.records_for_owner(owner(session, name))
            }
            assert session.ledger.statistics().owners == len(owners)
        assert_nothing_left(session)


def owner(session: Session, name: str) -> Any:
    instance = session.loader.running(name)
    return instance.owner if instance is not None else None


@given(acts=st.lists(st.one_of(EDITS, SWITCHES, ENDS, RELOADS, RELOADS), max_size=12), seed=st.random_module())
@example(acts=[("edit", "plain", "hangs after hello"), ("reload", None)], seed=None)
@example(acts=[("take away", "plain"), ("reload", None), ("mend", "plain"), ("reload", None)], seed=None)
@example(
    acts=[("unload", "plain"), ("break", "plain"), ("reload", None), ("mend", "plain"), ("reload", None)], seed=None
)
@example(
    acts=[("edit", "guard", "drops the guard"), ("reload", "guard"), ("kill", "guard"), ("reload", None)], seed=None
)
@example(acts=[("switch off", "plain"), ("reload", "guard"), ("reload", None)], seed=None)
def test_each_reload_reports_and_leaves_what_the_model_says(acts: list[tuple[Any, ...]], seed: object) -> None:
    del seed  # drawn so that trio schedules differently in each example
    with tempfile.TemporaryDirectory() as folder:
        trio.run(play, acts, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
