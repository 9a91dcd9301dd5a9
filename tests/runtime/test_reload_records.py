"""Reload and the ledger: one publication, each record in its predecessor's place, nothing left of the old one."""

from __future__ import annotations

import trio
from runtime.fakes import Guest, World, assert_nothing_left, serve, world
from runtime.puppets import ALL, command, provider, register, result, section, text_value, tool
from runtime.reloads import ask, change, frames_of, version

from trio_exthost import ExtensionPolicy, HostInstrument, Policy
from trio_exthost.runtime.models import InMemoryModelCatalogue


def declaring(*frames, ready: bool = True):
    """A program of the effect dialect that sends these before it is ready, and answers each tool with its process."""

    async def program(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name, capabilities=["effects"])
        for frame in frames:
            guest.send(**frame)
        guest.send(type="ready")
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "invoke":
                guest.send(id=frame["id"], **result(text_value(str(guest.pid))))

    return program


class Published(HostInstrument):
    """The changes of each mutation."""

    def __init__(self) -> None:
        self.steps: list[tuple] = []

    def effects_changed(self, session_id, changes) -> None:
        self.steps.append(changes)


async def test_after_a_hundred_reloads_nothing_has_grown(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("0", tools=("t",), commands=("c",), events=("tick",), intercept=("tool_call",)))
        async with host.open_session("s") as session:
            await session.load_all()
            held = session.ledger.active_count
            sequences = [session.emit("tick")]
            for _ in range(100):
                old = around.guests["a"]
                await session.reload("a")
                assert old.reaped
                assert session.ledger.active_count == held
                assert len(session.views.subscribers["tick"]) == len(session.views.interceptors["tool_call"]) == 1
                sequences.append(session.emit("tick"))
            assert sequences == sorted(set(sequences))
            assert session.loader._beside == set()
            assert session.ledger.statistics().owners == 1
        assert_nothing_left(session)


async def test_exactly_what_the_new_one_registers_is_there(tmp_path, autojump_clock) -> None:
    async def old(guest: Guest) -> None:
        await guest_with_a_panel(guest)

    async with world(tmp_path) as (around, host):
        around.add("a", old)
        async with host.open_session("s") as session:
            await session.load_all()
            await trio.testing.wait_all_tasks_blocked()
            assert len(session.panels) == 1
            change(around, "a", version("2", tools=("b2",)))
            await session.reload()
            assert [each.name for each in session.tools()] == ["b2"]
            assert session.commands() == ()
            assert len(session.panels) == 0
            assert not session.views.interceptors
            assert session.emit("tick") > 0
            assert frames_of(around.guests["a"], "event") == []


async def guest_with_a_panel(guest: Guest) -> None:
    guest.send(type="hello", name="a", capabilities=[])
    for name in ("a", "b"):
        guest.send(type="register_tool", name=name, schema={"type": "object"})
    guest.send(type="register_command", name="x")
    guest.send(type="subscribe", events=["tick"], intercept=["tool_call"])
    guest.send(type="ready")
    guest.send(type="command_response", id="0")
    guest.send(type="open_panel", panel={"id": "p", "title": "P", "lines": []}, panel_id="p", title="P")
    await guest.until_shutdown()


OVERRIDE = Policy(
    extensions={
        "lower": ExtensionPolicy(grant={"tools.override:bash"}),
        "upper": ExtensionPolicy(grant={"tools.override:bash"}),
    }
)


async def test_an_override_keeps_its_place_in_the_stack_in_one_publication(tmp_path, autojump_clock) -> None:
    published = Published()
    async with world(tmp_path, policy=OVERRIDE, instrument=published) as (around, host):
        around.add("lower", declaring(register(1, "tool", tool("bash", override=True))), permissions=ALL)
        around.add("upper", declaring(register(1, "tool", tool("bash", override=True))), permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            upper = around.guests["upper"].pid
            published.steps.clear()
            await session.reload("lower")
            assert len(published.steps) == 1
            assert (await session.call_tool("bash", {})).text == str(upper)
            published.steps.clear()
            await session.reload("upper")
            assert len(published.steps) == 1
            assert (await session.call_tool("bash", {})).text == str(around.guests["upper"].pid)
            await session.unload("upper")
            assert (await session.call_tool("bash", {})).text == str(around.guests["lower"].pid)


async def test_a_successor_that_would_drop_a_name_kept_for_it_does_not_take_over(tmp_path, autojump_clock) -> None:
    async with world(tmp_path, policy=OVERRIDE) as (around, host):
        around.add("upper", declaring(register(1, "tool", tool("bash", override=True))), permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            old = around.guests["upper"].pid
            change(around, "upper", serve)
            (failure,) = (await session.reload()).failed
            assert "it has no tool bash" in failure.reason
            assert (await session.call_tool("bash", {})).text == str(old)


async def test_what_is_registered_is_answered_once_it_counts_and_the_old_one_is_told(tmp_path, autojump_clock) -> None:
    frames = (
        register(1, "tool", tool("kept")),
        register(2, "tool", tool("gone")),
        {"type": "update", "registration_id": 1, "descriptor": tool("kept", description="other")},
        {"type": "dispose", "registration_id": 2},
        {"type": "dispose", "registration_id": 9},
        register(3, "tool", tool("kept")),
        register(1, "tool", tool("again")),
        {"type": "update", "registration_id": 1, "descriptor": tool("renamed")},
        {"type": "update", "registration_id": 8, "descriptor": tool("unknown")},
        register(4, "prompt_section", section("s", "text")),
        register(5, "command", command("c")),
    )
    async with world(tmp_path) as (around, host):
        around.add("a", declaring(register(1, "tool", tool("kept"))), permissions=ALL)
        async with host.open_session("s") as session:
            await session.load_all()
            old = around.guests["a"]
            change(around, "a", declaring(*frames))
            await session.reload()
            new = around.guests["a"]
            await session.call_tool("kept", {})
            told = [(each["type"], each["registration_id"]) for each in new.received if "registration_id" in each]
            assert [each for each in told if each[0] not in ("rejected", "invoke")] == [
                ("registered", 1),
                ("updated", 1),
                ("disposed", 2),
                ("registered", 4),
                ("registered", 5),
            ]
            assert sorted(number for kind, number in told if kind == "rejected") == [1, 1, 3, 8]
            (kept,) = session.tools()
            assert kept.description == "other"
            assert [each["cause"] for each in frames_of(old, "disposed")] == ["reload"]
            await session.unload("a")
        assert_nothing_left(session)


async def test_the_same_models_change_hands(tmp_path, autojump_clock) -> None:
    models = InMemoryModelCatalogue()
    async with world(tmp_path) as (around, host):
        around.add("a", declaring(register(1, "provider", provider("p", "m1", "m2"))), permissions=ALL)
        around.add("b", declaring(register(1, "provider", provider("q", "n"))), permissions=ALL)
        async with host.open_session("s", models=models) as session:
            await session.load_all()
            assert models.has("p", "m1")
            change(
                around,
                "a",
                declaring(
                    register(1, "provider", provider("p", "m2", "m3")),
                    register(2, "provider", provider("r", "x", credential_ref="nobody")),
                ),
            )
            await session.reload("a")
            assert [models.has("p", each) for each in ("m1", "m2", "m3")] == [False, True, True]
            assert not models.has("r", "x")
            assert models.has("q", "n")
            assert {frame["registration_id"] for frame in await all_of(around, "rejected")} == {2}


async def all_of(around: World, kind: str) -> list[dict]:
    await trio.testing.wait_all_tasks_blocked()
    return frames_of(around.guests["a"], kind)


async def test_what_the_old_one_registers_after_the_step_is_refused(tmp_path, autojump_clock) -> None:
    async def old(guest: Guest) -> None:
        guest.greet(intercept=["tool_call"])
        while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
            if frame["type"] == "event_intercept":
                await trio.sleep(2)
                guest.send(type="register_command", name="too-late")
                guest.send(type="event_intercept_response", id=frame["id"])

    async with world(tmp_path) as (around, host):
        around.add("a", old)
        async with host.open_session("s") as session:
            await session.load_all()

            async def late_question() -> None:
                await trio.sleep(1)
                assert (await ask(session)).allowed

            change(around, "a", version("2"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(late_question)
                nursery.start_soon(ask, session)
                await trio.sleep(0.5)
                await session.reload(when="now", grace_s=4)
            assert session.commands() == ()
            assert session.ledger.active_count == 0


async def test_the_same_tool_twice_and_too_many_registrations_are_refused_alone(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("other", version("other", tools=("theirs",)))
        around.add("a", version("1", tools=("t",)))
        change(around, "other")
        async with host.open_session("s") as session:
            await session.load_all()
            names = ("one", "theirs", "two", "one", "three", "theirs")
            change(around, "a", version("2", tools=names, events=("tick", "tick"), intercept=("nowhere",)))
            report = await session.reload("a")
            assert report.failed == ()
            assert [each.name for each in session.tools()] == ["theirs", "one", "two", "three"]
            assert (await session.call_tool("theirs", {})).text == "other"
            assert session.emit("tick")
            refused = [each for each in host.diagnostics if each.code == "registration_refused"]
            assert len(refused) == 4


async def test_session_start_is_told_to_the_successor_with_the_reason(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", version("1", events=("session_start",)))
        async with host.open_session("s") as session:
            await session.load_all()
            before = session.emit("tick")
            await session.reload("a")
            await trio.testing.wait_all_tasks_blocked()
            (started,) = [each for each in frames_of(around.guests["a"], "event") if each["event"] == "session_start"]
            assert started["sequence"] > before
