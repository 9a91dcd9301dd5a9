"""Cases from the field: starting, greeting, and what is said where that fails."""

from __future__ import annotations

import json
import os
import struct

import pytest
import trio
from cli.running import extension, run
from field.helpers_a import change_manifest, failed, script
from runtime.fakes import Guest, serve, world
from runtime.real.programs import GOOD, Place, assert_good_answers, row_of, running, text_of, until_state

from trio_exthost import Deadlines, LoadError

AT_ONCE = {
    "exit 3": "print('no API_KEY', file=sys.stderr); sys.exit(3)",
    "exit 0": "print('no API_KEY', file=sys.stderr); sys.exit(0)",
    "killed by SIGSEGV": "os.write(2, b'no API_KEY'); os.kill(os.getpid(), signal.SIGSEGV)",
}


async def test_c15_an_exit_before_hello_is_told_with_its_status_its_stderr_and_the_log(tmp_path) -> None:
    place = Place(tmp_path)
    names = [f"dead{number}" for number in range(len(AT_ONCE))]
    for name, source in zip(names, AT_ONCE.values(), strict=True):
        place.add(name, source)
    async with running(place, deadlines=Deadlines(hello_s=50, ready_cap_s=50)) as (_host, session):
        for name, status in zip(names, AT_ONCE, strict=True):
            error = failed(session, name)
            assert (error.stage, error.exit_status) == ("hello", status)
            told = str(error)
            assert all(part in told for part in (name, status, "no API_KEY", str(row_of(session, name).log_path)))
            assert status in row_of(session, name).reason


async def test_c16_one_that_never_greets_fails_by_itself_while_the_others_work(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("silent", "hang()", startup_timeout_s=1.5)
    place.add("good", GOOD)
    deadlines = Deadlines(ready_cap_s=0.5, stop_grace_s=0.2, term_grace_s=0.2)
    async with running(place, deadlines=deadlines) as (_host, session):
        assert "silent" in session.report.late
        await until_state(session, "good", "ready")
        await assert_good_answers(session)
        row = await until_state(session, "silent", "failed")
        assert "no hello within 1.5 s" in row.reason


async def test_c18_a_hello_without_flush_arrives_and_the_error_about_none_mentions_buffers(tmp_path) -> None:
    place = Place(tmp_path)
    unflushed = "for each in ('hello', 'ready'): print(json.dumps({'type': each, 'name': 'b'}))\nlist(frames())"
    place.add("default", unflushed)
    place.add("own", unflushed, env={"PYTHONUNBUFFERED": ""}, startup_timeout_s=1)
    async with running(place) as (_host, session):
        assert session.report.ready == ("default",)
        assert "output kept in a buffer? flush after each line" in str(failed(session, "own"))


async def slow_start(guest: Guest) -> None:
    await trio.sleep(15)
    await serve(guest)


async def test_c19_a_slow_start_has_a_setting_of_its_own_and_can_be_tried_again(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("default", slow_start)
        around.add("patient", slow_start, startup_timeout_s=30)
        async with host.open_session("s") as session:
            await session.load_all()
            row = await until_state(session, "default", "failed")
            assert "no hello within 10 s" in row.reason
            assert "exthost.startup_timeout_s" in row.reason
            assert (await until_state(session, "patient", "ready")).reason == ""
            around.programs["default"] = serve
            report = await session.reload("default")
            assert [each.name for each in report.restarted] == ["default"]
            assert row_of(session, "default").state == "ready"


async def test_c20_all_start_at_the_same_time_and_late_ones_join(tmp_path) -> None:
    place = Place(tmp_path)
    names = [f"slow{number}" for number in range(5)]
    for name in names:
        # One after the other, the first would never greet.
        place.add(name, f"open('../{name}.here', 'w').close()\nfor n in {names}: wait_for(n + '.here')\nserve()")
    place.add("late", "wait_for('go')\nserve(tools=['late'])")
    async with running(place, deadlines=Deadlines(ready_cap_s=1.5), load=False) as (_host, session):
        report = await session.load_all()
        assert report.late[-1] == "late"
        for name in names:
            await until_state(session, name, "ready")
        place.signal("go")
        await until_state(session, "late", "ready")
        assert [tool.name for tool in session.tools()] == ["late"]


async def test_c24_exec_is_of_the_extensions_folder_and_so_is_the_working_directory(tmp_path, monkeypatch) -> None:
    place = Place(tmp_path)
    say = "greet(tools=['cwd'])\nack, call = (next(frames(each)) for each in ('hello_ack', 'tool_call'))\n"
    say += "result(call['id'], json.dumps([os.getcwd(), ack['extension_dir'], ack['cwd']]))\nlist(frames())"
    directory = place.add("b", say)
    script(
        directory,
        f"#!/bin/sh\nexec {json.loads((directory / 'extension.json').read_text())['exec']} main.py\n".encode(),
    )
    outside = place.add("outside", "")
    change_manifest(outside, exec="../b/run", args=None)
    decoy = tmp_path / "a"
    decoy.mkdir()
    (decoy / "run").write_text("#!/bin/sh\nexit 9\n")
    (decoy / "run").chmod(0o755)
    monkeypatch.chdir(decoy)
    monkeypatch.setenv("PATH", ".:" + os.environ["PATH"])
    async with running(place) as (_host, session):
        told = json.loads(text_of(await session.call_tool("cwd", {})))
        assert told == [str(directory), str(directory), str(tmp_path)], "its own, where it is, and the project's"
        error = failed(session, "outside")
        assert error.code == "exec_outside"
        assert "'../b/run' is outside the extension's directory" in str(error)


async def test_c25_a_bare_word_is_looked_up_in_the_path_that_the_extension_gets(tmp_path) -> None:
    place = Place(tmp_path)
    change_manifest(place.add("found", "serve()"), exec="python3")
    change_manifest(place.add("none", ""), exec="no-such-program")
    tools = tmp_path / "tools"
    tools.mkdir()
    own = place.add("own", "serve()", env={"PATH": f"{tools}:/usr/bin:/bin"})
    (tools / "my-python").symlink_to(json.loads((own / "extension.json").read_text())["exec"])
    change_manifest(own, exec="my-python")
    async with running(place) as (_host, session):
        assert session.report.ready == ("found", "own")
        error = failed(session, "none")
        assert error.code == "exec_not_found"
        told = row_of(session, "none").reason
        assert "exec 'no-such-program' was not found; PATH searched: /" in told
        assert "it is not installed, or not on the PATH of this process" in told


async def test_c28_each_reason_why_a_script_does_not_start_has_its_message(tmp_path) -> None:
    place = Place(tmp_path)
    mode = script(place.add("mode", ""), b"#!/bin/sh\n", mode=0o644)
    script(place.add("windows", ""), b"#!/bin/sh\r\nexit 0\r\n")
    script(place.add("bare", ""), b"print('hi')\n")
    script(place.add("missing", ""), b"#!/opt/none/python3\n")
    script(place.add("env", ""), b"#!/usr/bin/env no-such-interpreter\n")
    async with running(place) as (_host, session):
        told = {row.name: row.reason for row in session.extensions()}
        assert f"is not executable; run: chmod +x {mode}" in told["mode"]
        assert "has Windows line ends" in told["windows"]
        assert "has no #! line" in told["bare"]
        assert "begins with #!/opt/none/python3, and there is no such program" in told["missing"]
        assert "asks for no-such-interpreter, which is probably not installed" in told["env"]


async def test_c30_another_version_or_another_machine_is_named(tmp_path) -> None:
    place = Place(tmp_path)
    place.add("other", "send(type='hello', name='x', protocol_version=99); hang()")
    # The first bytes of a program for a machine that nobody has.
    elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, 0xFFFE, 1) + bytes(100)
    script(place.add("machine", ""), elf)
    place.add(
        "newer",
        "send(type='hello', name='n', protocol_version=1, from_the_future=[1]); send(type='ready'); list(frames())",
    )
    async with running(place) as (_host, session):
        assert session.report.ready == ("newer",)
        assert "speaks 99, host speaks 1" in str(failed(session, "other"))
        assert "is a program for Linux or another ELF system, but not for this machine" in str(
            failed(session, "machine")
        )


def test_c30_check_tells_both_versions_and_exits_1(tmp_path) -> None:
    directory = extension(tmp_path / "other", "send(type='hello', name='x', protocol_version=99); sys.stdin.read()")
    done = run(tmp_path / "home", "check", str(directory))
    assert done.returncode == 1
    assert "speaks 99, host speaks 1" in done.stderr


async def test_c16_load_of_one_that_never_greets_raises_and_leaves_nothing(tmp_path, autojump_clock) -> None:
    async with world(tmp_path) as (around, host):
        around.add("silent", lambda guest: guest.until_shutdown())
        async with host.open_session("s") as session:
            begun = trio.current_time()
            with pytest.raises(LoadError, match="no hello within 10 s"):
                await session.load(around.candidates[0])
            assert trio.current_time() - begun < 12
            assert (await until_state(session, "silent", "failed")).pid is None
