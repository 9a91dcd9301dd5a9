"""Cases from the field: what is found on the disk, what its manifest says, and that one that is broken concerns only itself."""

from __future__ import annotations

import json
import sys

import pytest
import trio
from cli.running import extension, good, run
from field.helpers_a import change_manifest, failed
from runtime.fakes import Guest, world
from runtime.real.programs import GOOD, Place, assert_good_answers, row_of, running

from trio_exthost import CallTimedOut

BROKEN = {
    "bad-json": ("", "extension.json at line 1, column 10"),
    "no-exec": ("", "not-there does not exist"),
    "crash": ("raise RuntimeError('at once')", "exit 1"),
    "garbage": ("while True: put(os.urandom(1000))", "no hello within"),
    "bad-schema": ("send(type='hello', name=7); hang()", "name"),
    "silent": ("hang()", "no hello within"),
    "huge": ("put(b'x' * (100 << 20)); hang()", "thrown away"),
    "loud": ("os.write(2, b'e' * (5 << 20)); sys.exit(9)", "exit 9"),
}


def broken(place: Place) -> None:
    for name, (source, _) in BROKEN.items():
        place.add(name, source, startup_timeout_s=6 if name == "huge" else 1.5)
    (place.path / "bad-json" / "extension.json").write_text('{"name": ')
    change_manifest(place.path / "no-exec", exec="./not-there")


async def test_c21_eight_broken_ones_leave_the_good_one_alone(tmp_path) -> None:
    place = Place(tmp_path)
    broken(place)
    place.add("good", GOOD)
    async with running(place) as (_host, session):
        assert session.report.ready == ("good",)
        await assert_good_answers(session)
        rows = {row.name: row for row in session.extensions()}
        assert len(rows) == 9
        assert [name for name, row in rows.items() if not row.reason] == ["good"]


async def test_c22_each_failure_is_in_its_row_in_the_report_and_in_its_log(tmp_path) -> None:
    place = Place(tmp_path)
    broken(place)
    async with running(place) as (host, session):
        for name, (_, reason) in BROKEN.items():
            row = row_of(session, name)
            assert reason in row.reason, row
            assert reason in str(failed(session, name))
            assert any(reason in each.message for each in host.diagnostics.of(name))
            if name != "bad-json":  # nothing was started, and it has no name to call a log by
                assert reason in row.log_path.read_text(errors="replace")


def test_c22_check_says_why_and_the_way_out_and_exits_1(tmp_path) -> None:
    cases = {
        "no-exec": (extension(tmp_path / "no-exec", "", exec="./not-there"), "does not exist; build the extension, or"),
        "crash": (extension(tmp_path / "crash", "raise RuntimeError('at once')"), "way out: to see more, run it by hand"),
        "bad-schema": (extension(tmp_path / "bad-schema", "send(type='hello', name=7); sys.stdin.read()"), "way out: correct"),
    }  # fmt: skip
    for name, (directory, way_out) in cases.items():
        done = run(tmp_path / "home", "check", str(directory))
        shown = " ".join(done.stderr.split())
        assert (done.returncode, done.stdout) == (1, "")
        assert BROKEN[name][1] in shown
        assert way_out in shown
        assert "log: " in shown


def test_c27_linked_folders_are_extensions_and_broken_links_are_rows(tmp_path) -> None:
    home = tmp_path / "home"
    root = home / "extensions"
    root.mkdir(parents=True)
    target = good(tmp_path / "elsewhere" / "good")
    (root / "good").symlink_to(target)
    (root / "dangling").symlink_to(tmp_path / "gone")
    (root / "file").symlink_to(target / "main.py")
    (root / "loop").symlink_to(root / "loop")
    rows = {each["name"]: each for each in json.loads(run(home, "list", "--json").stdout)["extensions"]}
    assert rows["good"]["status"] == "effective"
    for name, why in {"dangling": "nothing is there", "file": "no directory", "loop": "leads back to itself"}.items():
        assert (rows[name]["status"], rows[name]["code"]) == ("rejected", "broken_link")
        assert "is a broken link" in rows[name]["reason"]
        assert why in rows[name]["reason"]
    assert run(home, "check", str(root / "good")).returncode == 0
    assert "registering -> ready" in run(home, "logs", "good").stdout


async def test_c27_a_linked_folder_is_loaded(tmp_path) -> None:
    place = Place(tmp_path)
    target = place.add("good", GOOD)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "good").symlink_to(target)
    async with running(place, extensions=(), project_roots=(tmp_path / "root",), trust=lambda _candidate: True) as (
        _host,
        session,
    ):
        assert session.report.ready == ("good",)
        await assert_good_answers(session)


FINE = json.dumps({"name": "NAME", "exec": sys.executable, "args": ["main.py"]})
GREETS = 'print(\'{"type": "hello", "name": "a"}\\n{"type": "ready"}\', flush=True); import sys; list(sys.stdin)'
MANIFESTS = {
    "bom": ("\ufeff" + FINE, ""),
    "crlf": (FINE.replace(" ", "\r\n"), ""),
    "utf16": (FINE.encode("utf-16"), "line 1, column 1: this is UTF-16"),
    "comment": ('{"name": "NAME",\n // why\n "exec": "true"}', "line 2, column 2: comments are not allowed"),
    "comma": (
        '{"name": "NAME",\n "exec": "true",\n}',
        "line 3, column 1: a comma before the closing bracket is not allowed",
    ),
    "empty": ("", "the file is empty"),
    "array": ("[]", "must be an object, not an array"),
    "twice": ('{"name": "NAME", "exec": "true", "exec": "false"}', '$.exec: the key "exec" stands twice'),
    "number": ('{"name": 7, "exec": "true"}', "$.name: must be text, not a number"),
}


def test_c31_a_byte_order_mark_and_crlf_are_accepted_and_all_else_has_its_place_named(tmp_path) -> None:
    home = tmp_path / "home"
    for name, (text, _) in MANIFESTS.items():
        folder = home / "extensions" / name
        folder.mkdir(parents=True)
        data = text if isinstance(text, bytes) else text.replace("NAME", name).encode()
        (folder / "extension.json").write_bytes(data)
        (folder / "main.py").write_text(GREETS)
    rows = {each["name"]: each for each in json.loads(run(home, "list", "--json").stdout)["extensions"]}
    assert rows.keys() == MANIFESTS.keys()
    for name, (_, why) in MANIFESTS.items():
        assert rows[name]["status"] == ("rejected" if why else "effective")
        assert why in rows[name]["reason"]
        assert (f"{name}/extension.json" in rows[name]["reason"]) == bool(why)
        checked = run(home, "check", rows[name]["directory"], "--json")
        assert checked.returncode == (1 if why else 0), "what is listed as fine is loaded, and nothing else"
        if why:
            assert why in json.loads(checked.stdout)["error"]["message"]


def test_c32_a_misspelt_key_is_told_with_the_one_that_is_meant(tmp_path) -> None:
    home = tmp_path / "home"
    folder = extension(home / "extensions" / "outside", "", timout_s=5)
    inside = extension(home / "extensions" / "inside", "", exthost={"tool_timout_s": 5})
    rows = {each["name"]: each for each in json.loads(run(home, "list", "--json").stdout)["extensions"]}
    (warning,) = rows[folder.name]["warnings"]
    assert "$.timout_s is not known and has no effect; did you mean exthost.tool_timeout_s?" in warning
    assert rows[inside.name]["status"] == "rejected"
    assert "$.exthost.tool_timout_s: is not known here (did you mean tool_timeout_s?)" in rows[inside.name]["reason"]


@pytest.mark.parametrize("value", ["5", -1, 0, 1e9, True])
def test_c32_a_timeout_out_of_its_range_is_an_error(tmp_path, value: object) -> None:
    home = tmp_path / "home"
    for key in ("startup_timeout_s", "tool_timeout_s"):
        extension(home / "extensions" / key, "", exthost={key: value})
    for each in json.loads(run(home, "list", "--json").stdout)["extensions"]:
        assert each["status"] == "rejected"
        assert f"$.exthost.{each['name']}: must be " in each["reason"]
        assert "seconds" in each["reason"]


async def test_c32_a_timeout_in_the_manifest_is_the_deadline_in_seconds(tmp_path, autojump_clock) -> None:
    async def deaf(guest: Guest) -> None:
        guest.send(type="hello", name=guest.name)
        guest.send(type="register_tool", name=guest.name, schema={"type": "object"})
        guest.send(type="ready")
        await guest.until_shutdown()

    async with world(tmp_path) as (around, host):
        around.add("default", deaf)
        around.add("seven", deaf, tool_timeout_s=7)
        async with host.open_session("s") as session:
            await session.load_all()
            for name, limit in {"default": 60, "seven": 7}.items():
                begun = trio.current_time()
                with pytest.raises(CallTimedOut, match=f"within {limit} s"):
                    await session.call_tool(name, {})
                assert trio.current_time() - begun == pytest.approx(limit)
