"""Generated scripts of register, update, dispose and invoke_result over the wire, against a plain model of who owns what."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import attrs
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from runtime.fakes import assert_nothing_left, world
from runtime.puppets import ALL, answer, command, do, puppet, register, result, section, tool

from trio_exthost import EffectKind, ExtensionPolicy, HostError, Policy, SimpleTool

NAMES = ("p0", "p1")
POLICY = Policy(extensions={"p0": ExtensionPolicy(grant=["tools.override:k1"], on_absent="restore")})
"""Only p0 may override, and only k1; what it overrode is back when it goes."""
FRESH = 0
NUMBERS = st.integers(1, 3)
"""Which of its numbers an extension means: the last one it has used, the one before, ..."""
KEYS = st.sampled_from(["k1", "k1", "k2", "own"])
REGISTER = st.fixed_dictionaries(
    {
        "do": st.just("register"),
        "number": st.just(FRESH) | st.just(FRESH) | NUMBERS,
        "kind": st.sampled_from(["tool", "tool", "command", "prompt_section"]),
        "key": KEYS,
        "override": st.booleans(),
        "run": st.sampled_from([None, None, None, "r1", "r1", "r2", "closed"]),
        "text": st.text("ab", min_size=1, max_size=2),
    }
)
STEPS = st.one_of(
    REGISTER,
    st.fixed_dictionaries(
        {"do": st.just("update"), "number": NUMBERS, "key": KEYS, "text": st.text("cd", min_size=1, max_size=2)}
    ),
    st.fixed_dictionaries({"do": st.just("dispose"), "number": NUMBERS}),
    st.fixed_dictionaries(
        {
            "do": st.just("answer"),
            "dispose": st.lists(NUMBERS, min_size=1, max_size=3),
            "status": st.sampled_from(["success", "success", "nonsense"]),
            "then": st.lists(REGISTER, max_size=1),
        }
    ),
    st.just({"do": "unload"}),
)
SCRIPTS = st.lists(st.tuples(st.integers(0, 1), STEPS), min_size=6, max_size=20)


@attrs.define
class Held:
    """A registration of the model; those of one place stand in a list, the last in force."""

    who: int
    number: int
    kind: str
    key: str
    run: str | None
    override: bool
    text: str


class Model:
    """Who owns what, without an index or a handle."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.used: list[set[int]] = [set(), set()]
        self.running = [True, True]

    def find(self, who: int, number: int) -> Held | None:
        return next((each for each in self.held if (each.who, each.number) == (who, number)), None)

    def stack(self, kind: str, key: str, run: str | None) -> list[Held]:
        return [each for each in self.held if (each.kind, each.key, each.run) == (kind, key, run)]

    def register(self, who: int, step: dict[str, Any]) -> str | None:
        """The code of the refusal, or None."""
        kind, key, run = step["kind"], step["key"], step["run"]
        override = step["override"] and kind != "prompt_section"
        if step["number"] in self.used[who]:
            return "invalid_payload"
        if run == "closed":
            return "scope_mismatch"
        if override and not (who == 0 and key == "k1"):
            return "override_denied"
        if not override:
            wider = self.stack(kind, key, None) if run and kind != "prompt_section" else []
            if (kind, key) == ("tool", "own") or (wider and wider[-1].who != who) or self.stack(kind, key, run):
                return "conflict"
        self.used[who].add(step["number"])
        self.held.append(Held(who, step["number"], kind, key, run, override, step["text"]))
        return None

    def update(self, who: int, step: dict[str, Any]) -> str | None:
        held = self.find(who, step["number"])
        if held is None or held.key != step["key"]:
            is_override = held is not None and held.override and step["key"] != "k1"
            return "override_denied" if is_override else "invalid_payload"
        held.text = step["text"]
        return None

    def dispose(self, who: int, number: int) -> bool:
        held = self.find(who, number)
        if held is not None:
            self.held.remove(held)
        return held is not None


def descriptor(kind: str, key: str, text: str, run: str | None, *, override: bool) -> dict[str, Any]:
    more = {"scope": "run" if run else "session"}
    if kind == "prompt_section":
        return section(key, text, **more)
    make = tool if kind == "tool" else command
    return make(key, description=text, override=override, **more)


def register_frame(step: dict[str, Any]) -> dict[str, Any]:
    raw = descriptor(step["kind"], step["key"], step["text"], step["run"], override=step["override"])
    binding = {"scope": "run", "id": step["run"]} if step["run"] else {}
    return register(step["number"], step["kind"], raw, **binding)


async def bare(arguments: dict[str, Any]) -> str:
    await trio.lowlevel.checkpoint()
    return "bare"


class Play:
    """Plays a script in a session and in the model, step by step."""

    def __init__(self, session) -> None:
        self.session = session
        self.model = Model()
        self.expected: list[list[tuple[Any, ...]]] = [[], []]

    def meant(self, who: int, step: dict[str, Any]) -> dict[str, Any]:
        """The step with the numbers that are meant."""
        used = sorted(self.model.used[who] | {0}, reverse=True)

        def number(which: int) -> int:
            return used[0] + 1 if which == FRESH else (used[which - 1 : which] or [77])[0] or 77

        step = {**step}
        if "number" in step:
            step["number"] = number(step["number"])
        if "then" in step:
            step["dispose"] = [number(each) for each in step["dispose"]]
            step["then"] = [{**each, "number": number(FRESH)} for each in step["then"]]
        return step

    def expect(self, who: int, step: dict[str, Any], code: str | None, word: str) -> None:
        self.expected[who].append((word, step["number"], None) if code is None else ("rejected", step["number"], code))

    def disposes(self, who: int, number: int, cause: str = "handle") -> None:
        if self.model.dispose(who, number):
            self.expected[who].append(("disposed", number, cause))

    async def step(self, who: int, step: dict[str, Any]) -> None:
        if not self.model.running[who]:
            return
        step = self.meant(who, step)
        name, number = f"do-{NAMES[who]}", step.get("number", 0)
        match step["do"]:
            case "register":
                self.expect(who, step, self.model.register(who, step), "registered")
                await do(self.session, register_frame(step), name=name)
            case "update":
                held = self.model.find(who, number)
                kind, run, override = (held.kind, held.run, held.override) if held else ("tool", None, False)
                raw = descriptor(kind, step["key"], step["text"], run, override=override)
                self.expect(who, step, self.model.update(who, step), "updated")
                await do(self.session, {"type": "update", "registration_id": number, "descriptor": raw}, name=name)
            case "dispose":
                self.disposes(who, number)
                await do(self.session, {"type": "dispose", "registration_id": number}, name=name)
            case "answer":
                await self.answer(who, step, name)
            case "unload":
                self.model.running[who] = False
                self.model.held = [each for each in self.model.held if each.who != who]
                await self.session.unload(NAMES[who])

    async def answer(self, who: int, step: dict[str, Any], name: str) -> None:
        """The puppet answers an invocation of its command `any`, and registers something right behind it."""
        known = self.model.used[who] | {99}
        is_good = step["status"] == "success" and set(step["dispose"]) <= known
        if is_good:
            for number in step["dispose"]:
                self.disposes(who, number)
        for each in step["then"]:
            self.expect(who, each, self.model.register(who, each), "registered")
        frames = [result({"status": step["status"]}, dispose=step["dispose"]), *map(register_frame, step["then"])]
        await do(self.session, answer(99, *frames), name=name)
        failed: HostError | None = None
        try:
            await self.session.run_command(f"any-{NAMES[who]}")
        except HostError as exc:
            failed = exc
        assert (failed is None) == is_good, failed

    def check(self) -> None:
        """The ledger says what the model says, in force and displaced, seen from outside and from each run."""
        held = [
            (NAMES.index(record.owner.extension_id), entry.registration_id)
            for kind in (EffectKind.TOOL, EffectKind.COMMAND, EffectKind.PROMPT_SECTION)
            for record in self.session.ledger.active_records(kind)
            if (entry := record.registration.value).registration_id not in (None, 99)
        ]
        in_force = [
            stack[-1]
            for kind in ("tool", "command", "prompt_section")
            for key in ("k1", "k2", "own")
            if (stack := self.model.stack(kind, key, None))
        ]
        assert sorted(held) == sorted((each.who, each.number) for each in in_force)
        for run in self.session.runs.values():
            tools = {info.name: (info.extension, info.description) for info in self.session.tools(run)}
            for key in ("k1", "k2", "own"):
                stack = self.model.stack("tool", key, run.id) or self.model.stack("tool", key, None)
                bare_tool = (None, "bare") if key == "own" else None
                assert tools.get(key) == ((NAMES[stack[-1].who], stack[-1].text) if stack else bare_tool)


async def play(script: list[tuple[int, dict[str, Any]]], folder: Path) -> None:
    async with world(folder, policy=POLICY) as (around, host):
        for name in NAMES:
            around.add(name, puppet, permissions=ALL)
        own = SimpleTool("own", "bare", {"type": "object"}, bare)
        async with host.open_session("s", tools=[own]) as session:
            await session.load_all()
            with session.open_run(run_id="r1"), session.open_run(run_id="r2"):
                playing = Play(session)
                for name in NAMES:
                    await do(session, register(99, "command", command(f"any-{name}")), name=f"do-{name}")
                for who, step in script:
                    await playing.step(who, step)
                    playing.check()
                running = [who for who in (0, 1) if playing.model.running[who]]
            # The runs have ended, and with them what was bound to them: the last bound first.
            for who in running:
                bound = [each for each in playing.model.held if each.who == who and each.run]
                for run in ("r2", "r1"):
                    for each in reversed([each for each in bound if each.run == run]):
                        playing.disposes(who, each.number, "scope")
                await do(session, name=f"do-{NAMES[who]}")
            playing.check()
        for who in running:
            got = [
                (frame["type"], frame["registration_id"], frame.get("code") or frame.get("cause"))
                for frame in around.guests[NAMES[who]].received
                if frame["type"] in ("registered", "updated", "rejected", "disposed") and frame["registration_id"] != 99
            ]
            assert [each for each in got if each[2] != "shutdown"] == playing.expected[who]
        assert_nothing_left(session)


@given(SCRIPTS)
def test_any_script_ends_as_the_model_says(script) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trio.run(play, script, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
