"""The life of an instance: start, handshake, readiness, and the order of its end."""

from __future__ import annotations

import signal

import pytest
import trio
from runtime.fakes import Guest, assert_nothing_left, codes, serve, world

from trio_exthost import Deadlines, LoadError


async def test_load_all_of_a_ready_extension_reports_it_and_takes_no_time(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("a", serve)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert report.ready == ("a",)
            assert trio.current_time() == 0
        assert_nothing_left(session)
        assert around.guests["a"].received[0]["type"] == "hello_ack"
        assert session.extensions()[0].state == "stopped"


async def test_no_hello_ends_it_at_its_deadline(tmp_path, autojump_clock) -> None:
    async def silent(guest: Guest) -> None:
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("a", silent)
        async with host.open_session("s") as session:
            with pytest.raises(LoadError, match="no hello within 10 s") as caught:
                await session.load(around.candidates[0])
            assert caught.value.stage == "hello"
            assert caught.value is not session.extensions()  # a fresh one each time
            assert trio.current_time() == 10


async def test_startup_timeout_of_the_manifest_changes_the_deadline(tmp_path, autojump_clock) -> None:
    async def slow(guest: Guest) -> None:
        await trio.sleep(20)
        await serve(guest)

    async with world(tmp_path) as (around, host):
        around.add("a", slow, startup_timeout_s=30)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert report.late == ("a",)
            assert trio.current_time() == 3
            version = session.version
            while session.extensions()[0].state != "ready":
                version = await session.wait_changed(version)
            assert trio.current_time() == 20


def test_a_hello_that_is_in_the_pipe_beats_the_deadline(tmp_path) -> None:
    clock = trio.testing.MockClock()  # moved by hand: the loop sleeps through the deadline

    async def late(guest: Guest) -> None:
        await trio.sleep(9.9)
        guest.greet()
        clock.jump(5)
        await guest.until_shutdown()

    async def main() -> None:
        async with world(tmp_path) as (around, host):
            around.add("a", late)
            async with host.open_session("s") as session:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(session.load, around.candidates[0])
                    await trio.testing.wait_all_tasks_blocked()
                    clock.jump(9.9)
                assert session.extensions()[0].state == "ready"
                clock.autojump_threshold = 0

    trio.run(main, clock=clock)


async def test_registrations_printed_before_the_ack_count(tmp_path, autojump_clock) -> None:
    async def hasty(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_command", name="x")
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", hasty)
        async with host.open_session("s") as session:
            await session.load_all()
            assert [command.name for command in session.commands()] == ["x"]


async def test_silence_after_a_registration_counts_as_ready(tmp_path, autojump_clock) -> None:
    async def old(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        await guest.frames("hello_ack")
        await trio.sleep(1)
        guest.send(type="register_command", name="x")
        await trio.sleep(0.2)
        guest.send(type="register_command", name="y")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", old)
        async with host.open_session("s") as session:
            await session.load_all()
            assert trio.current_time() == pytest.approx(1.45)
            assert session.extensions()[0].auto_ready
            assert [command.name for command in session.commands()] == ["x", "y"]
            assert "auto_ready" in codes(host)


async def test_an_extension_that_registers_nothing_is_ready_at_the_cap(tmp_path, autojump_clock) -> None:
    async def quiet(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", quiet)
        async with host.open_session("s") as session:
            await session.load(around.candidates[0])
            assert trio.current_time() == 3


async def test_names_go_in_catalogue_order_whoever_is_ready_first(tmp_path, autojump_clock) -> None:
    def registrar(delay: float):
        async def program(guest: Guest) -> None:
            guest.send(type="hello", name=guest.name)
            await trio.sleep(delay)
            guest.send(type="register_command", name="Deploy" if delay else "deploy")
            guest.send(type="ready")
            await guest.until_shutdown()

        return program

    async with world(tmp_path) as (around, host):
        around.add("slow", registrar(2))
        around.add("fast", registrar(0))
        async with host.open_session("s") as session:
            await session.load_all()
            assert trio.current_time() == 2
            (command,) = session.commands()
            assert (command.name, command.extension) == ("Deploy", "slow")
            (refused,) = [each for each in host.diagnostics if each.code == "registration_refused"]
            assert refused.extension == "fast"


async def test_an_earlier_candidate_is_waited_for_until_the_cap_only(tmp_path, autojump_clock) -> None:
    async def silent(guest: Guest) -> None:
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("silent", silent)
        around.add("b", serve)
        async with host.open_session("s") as session:
            report = await session.load_all()
            assert (report.ready, report.late) == (("b",), ("silent",))
            assert trio.current_time() == 3


async def test_exit_before_ready_leaves_the_ledger_untouched_and_says_how(tmp_path, autojump_clock) -> None:
    async def dies(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_command", name="x")
        guest.complain("no API_KEY\n")
        await trio.sleep(0.1)
        guest.exit(3)
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("a", dies)
        async with host.open_session("s") as session:
            report = await session.load_all()
            (error,) = report.failed
            assert (error.stage, error.exit_status, error.stderr_tail) == ("registering", "exit 3", "no API_KEY")
            assert session.ledger.statistics().issued == 0
            assert session.extensions()[0].state == "failed"


async def test_stop_is_shutdown_then_the_end_of_stdin_at_once(tmp_path, autojump_clock) -> None:
    async def reads_on(guest: Guest) -> None:
        guest.greet()
        while await guest.frame() is not None:
            pass

    async with world(tmp_path) as (around, host):
        around.add("a", reads_on)
        async with host.open_session("s") as session:
            await session.load_all()
        guest = around.guests["a"]
        assert guest.received[-1] == {"type": "shutdown"}
        assert (guest.eof_at, guest.signals) == (0, [])


async def test_the_ladder_is_term_after_2_s_and_kill_1_s_later(tmp_path, autojump_clock) -> None:
    async def stubborn(guest: Guest) -> None:
        guest.ignores.add(signal.SIGTERM)
        guest.greet()
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        for name in ("a", "b", "c"):
            around.add(name, stubborn)
        async with host.open_session("s") as session:
            await session.load_all()
        assert trio.current_time() == 3
        for guest in around.guests.values():
            assert guest.signals == [(2, signal.SIGTERM), (3, signal.SIGKILL)]
        assert codes(host).count("killed") == 3


async def test_stdout_closed_with_a_call_pending_fails_the_call_at_once(tmp_path, autojump_clock) -> None:
    async def closes(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_command", name="x")
        guest.send(type="ready")
        await guest.frames("command_invoked")
        guest.close_stdout()
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("a", closes)
        async with host.open_session("s") as session:
            await session.load_all()
            with pytest.raises(Exception, match="closed its output"):
                await session.run_command("x")
            assert trio.current_time() == 0.25


async def test_eof_followed_by_the_exit_is_told_as_the_exit(tmp_path, autojump_clock) -> None:
    async def leaves(guest: Guest) -> None:
        guest.greet()
        guest.close_stdout()
        await trio.sleep(0.2)
        guest.exit(7)
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("a", leaves)
        async with host.open_session("s") as session:
            await session.load_all()
            version = session.version
            while session.extensions()[0].state != "failed":
                version = await session.wait_changed(version)
            assert session.extensions()[0].reason.startswith("it exited by itself (exit 7 after 0.20 s; ")


async def test_what_it_wrote_before_its_exit_is_handled(tmp_path, autojump_clock) -> None:
    async def last_words(guest: Guest) -> None:
        guest.send(type="hello", name="a")
        guest.send(type="register_command", name="x")
        guest.send(type="ready")
        frame = await guest.frames("command_invoked")
        guest.send(type="command_response", id=frame["id"], action="display", display="bye")

    async with world(tmp_path) as (around, host):
        around.add("a", last_words)
        async with host.open_session("s") as session:
            await session.load_all()
            assert (await session.run_command("x")).text == "bye"


async def test_a_cancelled_load_stops_that_instance(tmp_path, autojump_clock) -> None:
    async def silent(guest: Guest) -> None:
        await trio.sleep_forever()

    async with world(tmp_path) as (around, host):
        around.add("b", serve)
        around.add("a", silent)
        async with host.open_session("s") as session:
            with trio.move_on_after(1):
                await session.load_all()
            version = session.version
            while {row.state for row in session.extensions()} != {"stopped", "ready"}:
                version = await session.wait_changed(version)


async def test_unload_from_its_own_tool_does_not_hang(tmp_path, autojump_clock) -> None:
    from trio_exthost import SimpleTool

    async def asks_for_its_end(guest: Guest) -> None:
        guest.greet(capabilities=["call_tool"])
        await guest.frames("hello_ack")
        guest.send(type="call_tool", id="1", name="unload", args={})
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("a", asks_for_its_end)

        async def unload(arguments) -> str:
            await session.unload("a")
            return "never"

        tool = SimpleTool("unload", "", {"type": "object"}, unload)
        async with host.open_session("s", tools=[tool]) as session:
            await session.load_all()
            version = session.version
            while session.extensions()[0].state != "stopped":
                version = await session.wait_changed(version)


async def test_a_fault_in_a_handler_leaves_as_a_group_and_ends_the_process(
    tmp_path, autojump_clock, monkeypatch
) -> None:
    from trio_exthost.runtime import inbound
    from trio_exthost.wire import from_extension

    def broken(instance, frame) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setitem(inbound.HANDLERS, from_extension.ClearNotes, broken)

    async def provokes(guest: Guest) -> None:
        guest.greet()
        await guest.frames("hello_ack")
        guest.send(type="clear_notes")
        await guest.until_shutdown()

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with world(tmp_path) as (around, host):
            around.add("a", provokes)
            async with host.open_session("s") as session:
                await session.load_all()
                await trio.sleep_forever()
    assert around.guests["a"].reaped


async def test_the_bodys_own_exception_leaves_unwrapped(tmp_path, autojump_clock) -> None:
    from trio_exthost import HostConfig, open_host

    with pytest.raises(KeyError, match="mine"):
        async with open_host(HostConfig(data_dir=tmp_path)) as host, host.open_session("s"):
            raise KeyError("mine")


async def test_deadlines_of_stop_are_bounded_in_all(tmp_path, autojump_clock) -> None:
    async def stubborn(guest: Guest) -> None:
        guest.ignores.add(signal.SIGTERM)
        guest.greet()
        await trio.sleep_forever()

    deadlines = Deadlines(stop_grace_s=4, term_grace_s=4, stop_total_s=5)
    async with world(tmp_path, deadlines=deadlines) as (around, host):
        around.add("a", stubborn)
        async with host.open_session("s") as session:
            await session.load_all()
        assert around.guests["a"].signals == [(4, signal.SIGTERM), (4, signal.SIGKILL)]


async def test_one_that_exits_while_it_is_asked_to_stop_is_stopped(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        # trio shuffles its tasks: some learn of the exit before they begin to stop, some after
        for number in range(32):
            around.add(f"x{number}", serve)
        async with host.open_session("s") as session:
            await session.load_all()
            async with trio.open_nursery() as nursery:
                for name, guest in around.guests.items():
                    nursery.start_soon(session.unload, name)
                    guest.exit(0)
            assert {row.state for row in session.extensions()} == {"stopped"}
        assert_nothing_left(session)


async def test_a_host_that_is_opened_where_everything_is_cancelled_already_ends(tmp_path, autojump_clock) -> None:
    with trio.CancelScope() as scope:
        scope.cancel("before it began")
        async with world(tmp_path):
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
