"""The smallest form of what once ended a whole host, or filled its memory."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from runtime.fakes import Guest, codes, world

from trio_exthost import ConfigError, Deadlines, HostConfig, Limits
from trio_exthost.diagnostics import MESSAGE_CHARACTERS, Code, Diagnostic, Severity
from trio_exthost.packages import discover
from trio_exthost.packages.explain import explain_spawn_error

LIMITS = Limits(frame_bytes=8192)
TOO_LONG = "x" * 300
"""For one name of a path, on any file system: whoever looks for it is told ENAMETOOLONG."""


def filling(frame: dict[str, Any], key: str, length: int) -> bytes:
    """A line of this length, with a text under the key that makes it so."""
    text = "i" * (length - len(json.dumps(frame)))
    return json.dumps({**frame, key: text}).encode() + b"\n"


@pytest.mark.parametrize("comes_first", ["hello", "ready"])
async def test_a_call_whose_id_leaves_no_room_for_an_answer_costs_its_answer_only(
    tmp_path, autojump_clock, comes_first
) -> None:
    """It once ended the host where it came in one breath with `hello`: what is answered before `hello_ack` is sent later."""

    async def guest(guest: Guest) -> None:
        hello = b'{"type":"hello","name":"g"}\n'
        ready = b'{"type":"ready"}\n'
        call = filling({"type": "call_tool", "id": "", "name": "x"}, "id", 8192)
        guest.write(hello + call + ready if comes_first == "hello" else hello + ready + call)
        await guest.until_shutdown()

    async with world(tmp_path, limits=LIMITS) as (around, host):
        around.add("g", guest)
        async with host.open_session("s") as session:
            assert (await session.load_all()).ready == ("g",)
            assert "frame_invalid" in codes(host)


@pytest.mark.parametrize("is_staged", [True, False])
async def test_a_registration_whose_refusal_does_not_fit_into_a_frame_is_told(
    tmp_path, autojump_clock, is_staged
) -> None:
    number = int("9" * 4015)

    async def guest(guest: Guest) -> None:
        guest.send(type="hello", name="g", capabilities=["effects"])
        if not is_staged:
            guest.send(type="ready")
        guest.send(type="register", registration_id=number, kind="tool", descriptor={})
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, limits=Limits(frame_bytes=4096)) as (around, host):
        around.add("g", guest, permissions=("tools.register",))
        async with host.open_session("s") as session:
            assert (await session.load_all()).ready == ("g",)
            assert "frame_invalid" in codes(host)


@pytest.mark.parametrize("capability", ["effects", "tool_cancel"])
async def test_a_greeting_that_does_not_fit_into_a_frame_fails_the_extension_only(
    tmp_path, autojump_clock, capability
) -> None:
    async def guest(guest: Guest) -> None:
        guest.greet(capabilities=[capability])
        await guest.until_shutdown()

    async with world(tmp_path, limits=Limits(frame_bytes=1024), host_name="h" * 2000) as (around, host):
        around.add("g", guest)
        async with host.open_session("s") as session:
            assert (await session.load_all()).ready == ()
        (told,) = [each for each in host.diagnostics if each.code is Code.LOAD_FAILED]
        assert "it cannot be greeted: hello_ack" in told.message


async def test_an_id_that_fills_a_frame_does_not_fill_the_diagnostics(tmp_path, autojump_clock) -> None:
    async def guest(guest: Guest) -> None:
        guest.greet()
        guest.write(filling({"type": "tool_result", "id": ""}, "id", 8192))
        await guest.until_shutdown()

    async with world(tmp_path, limits=LIMITS, deadlines=Deadlines(stop_grace_s=0.1)) as (around, host):
        around.add("g", guest)
        async with host.open_session("s") as session:
            await session.load_all()
        (told,) = [each for each in host.diagnostics if each.code is Code.REPLY_UNKNOWN]
        assert len(told.message) <= MESSAGE_CHARACTERS
        assert told.message.endswith("never asked, or answered already")
        assert "i" * 4100 not in (tmp_path / "logs" / "g.log").read_text()


def test_a_long_message_is_cut_in_its_middle() -> None:
    told = Diagnostic(Code.CALLBACK_FAILED, Severity.ERROR, "begin" + "x" * 10_000 + "end")
    assert len(told.message) <= MESSAGE_CHARACTERS
    assert told.message.startswith("begin")
    assert told.message.endswith("end")
    whole = "x" * MESSAGE_CHARACTERS
    assert Diagnostic(Code.CALLBACK_FAILED, Severity.ERROR, whole).message == whole


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EACCES, errno.ENOENT, errno.ENOEXEC])
def test_a_program_whose_path_cannot_be_looked_at_is_explained(number, tmp_path) -> None:
    program = tmp_path / TOO_LONG
    found = explain_spawn_error(OSError(number, "why"), [str(program)], tmp_path)
    assert str(program) in found
    assert "not there any more" in explain_spawn_error(OSError(number, "why"), [str(program)], program)


def test_a_path_that_cannot_be_looked_at_is_a_row_of_the_catalogue(tmp_path) -> None:
    config = HostConfig(
        data_dir=tmp_path, extensions=[tmp_path / TOO_LONG], project_roots=[TOO_LONG], user_roots=[Path("/", TOO_LONG)]
    )
    rows = discover(config, tmp_path)
    assert [(row.status.value, row.code) for row in rows] == [("rejected", "unreadable")] * 3
    assert all("too long" in row.reason for row in rows)


def test_a_link_to_a_path_that_cannot_be_looked_at_is_a_row_of_the_catalogue(tmp_path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "x").symlink_to(tmp_path / TOO_LONG)
    rows = discover(HostConfig(data_dir=tmp_path, project_roots=[], user_roots=[root]), tmp_path)
    assert [(row.name, row.status.value) for row in rows] == [("x", "rejected")]


@pytest.mark.parametrize("says_ready", [True, False])
async def test_registrations_have_a_bound_in_bytes_before_and_after_ready(
    tmp_path, autojump_clock, says_ready: bool
) -> None:
    """Once a thousand of them, each as large as a frame, could wait for `ready`."""

    async def guest(guest: Guest) -> None:
        guest.send(type="hello", name="g", capabilities=["effects"])
        if says_ready:
            guest.send(type="ready")
        for number in range(4):
            guest.send(type="register_command", name=f"c{number}", description="d" * 1000)
            if not says_ready:
                guest.send(type="register", registration_id=number + 1, kind="tool", descriptor={"x": "y" * 1000})
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path, limits=Limits(registration_bytes=4000)) as (around, host):
        around.add("g", guest, permissions=("tools.register",))
        async with host.open_session("s") as session:
            await session.load_all()
            refused = [each.message for each in host.diagnostics if each.code is Code.REGISTRATION_REFUSED]
            too_much = "its registrations have more than 4000 bytes"
            assert sum(too_much in each for each in refused) == (1 if says_ready else 5)
            names = [each.name for each in session.commands()]
            assert names == (["c0", "c1", "c2"] if says_ready else ["c0", "c1"])


async def test_what_waited_for_ready_makes_room_for_what_comes_after(tmp_path, autojump_clock) -> None:
    async def guest(guest: Guest) -> None:
        guest.greet(capabilities=["effects"], events=["tick"], ready=False)
        for number in (1, 2):
            descriptor = {"section_id": f"s{number}", "text": "y" * 1500}
            guest.send(type="register", registration_id=number, kind="prompt_section", descriptor=descriptor)
        guest.send(type="ready")
        await guest.frames("event")
        guest.send(type="register_command", name="c", description="d" * 2000)
        await guest.until_shutdown()

    async with world(tmp_path, limits=Limits(registration_bytes=4000)) as (around, host):
        around.add("g", guest)
        async with host.open_session("s") as session:
            await session.load_all()
            version = session.version
            session.emit("tick")
            await session.wait_changed(version)
            assert [each.name for each in session.commands()] == ["c"]
            assert codes(host) == []


async def test_points_that_there_are_not_are_told_one_by_one_up_to_a_bound(tmp_path, autojump_clock) -> None:
    async def guest(guest: Guest) -> None:
        guest.greet(intercept=["tool_call", *(f"e{number}" for number in range(100))])
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("g", guest)
        async with host.open_session("s") as session:
            await session.load_all()
            told = [each.message for each in host.diagnostics]
            assert len(told) == 17
            assert told[-1].startswith("interception of 84 more is refused")
            assert session.views.interceptors


@pytest.mark.parametrize("cwd", ["a\0b", "\ud800"])
async def test_a_directory_of_a_session_that_can_be_none_is_refused_at_once(tmp_path, cwd: str) -> None:
    async with world(tmp_path) as (_, host):
        with pytest.raises(ConfigError, match="can be no path"):
            async with host.open_session("s", cwd=cwd):
                raise AssertionError
        async with host.open_session("s", cwd=tmp_path) as session:
            assert session.cwd == tmp_path
