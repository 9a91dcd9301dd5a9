"""Every way to fail: what its row and `exthost check` say, and that nothing that is configured is left out."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from cli.running import run
from field.helpers_a import change_manifest, script
from runtime.real.programs import GOOD, Place, assert_good_answers, row_of, running, until_state

from trio_exthost import ExtensionPolicy, Policy, open_host

SAYS = """
import glob
def times_ready():
    logs = glob.glob(os.path.join("..", "*", "logs", os.path.basename(os.getcwd()) + ".log"))
    return sum(open(each, errors="replace").read().count("-> ready") for each in logs)
def greet_and_wait():
    before = times_ready()
    greet()
    while times_ready() == before:
        time.sleep(0.005)
os.write(2, b"first\\nlast words\\n")
"""
"""What each says at the end, and how one knows that the host has taken it for ready: its log says so."""


@attrs.frozen(kw_only=True)
class Case:
    """A way to fail, and what is to be said about it. An empty text: there is none."""

    stage: str
    source: str = ""
    manifest: str = ""
    mode: int = 0
    says: str
    exit: str = ""
    stderr: str = "first\nlast words"
    step: str


BY_HAND = "to see more, run it by hand: cd "
AGAIN = 'a reload, or "restart": "on_crash" in its manifest, starts it again'
NOT_RUN = {"exit": "", "stderr": ""}
CASES = {
    "bad-json": Case(
        stage="discovery", manifest='{"name": ', says="extension.json at line 1, column 10",
        step="correct extension.json; a small one is", **NOT_RUN,
    ),
    "bad-key": Case(
        stage="discovery", manifest='{"name": "bad-key", "exec": "x", "exthost": {"on_failur": 1}}',
        says="$.exthost.on_failur", step="did you mean on_failure?", **NOT_RUN,
    ),
    "disabled": Case(
        stage="discovery", manifest='{"name": "disabled", "exec": "x", "enabled": false}', says="enabled: false",
        step='take "enabled": false out', **NOT_RUN,
    ),
    "no-exec": Case(
        stage="spawn", manifest='{"name": "no-exec", "exec": "./gone"}', says="gone does not exist",
        step="build the extension, or correct exec", **NOT_RUN,
    ),
    "no-word": Case(
        stage="spawn", manifest='{"name": "no-word", "exec": "nosuchword"}', says="nosuchword",
        step="it is not installed, or not on the PATH of this process", **NOT_RUN,
    ),
    "not-executable": Case(stage="spawn", mode=0o644, says="run is not executable", step="run: chmod +x", **NOT_RUN),
    "exits": Case(stage="hello", source="sys.exit(3)", says="it exited by itself", exit="exit 3", step=BY_HAND),
    "silent": Case(stage="hello", source="hang()", says="no hello within", step="exthost.startup_timeout_s"),
    "segfault": Case(
        stage="hello", source="os.kill(os.getpid(), signal.SIGSEGV)", says="it exited by itself",
        exit="killed by SIGSEGV", step=BY_HAND,
    ),
    "bad-hello": Case(stage="hello", source="send(type='hello', name=7); hang()", says="$.name", step="correct that frame"),
    "no-end": Case(
        stage="hello", source="put(b'x' * (100 << 20)); hang()", says="thrown away", step="end each frame with a line feed",
    ),
    "half-registered": Case(
        stage="registering", source="greet(ready=False); sys.exit(4)", says="it exited by itself", exit="exit 4",
        step=BY_HAND,
    ),
    "crashes": Case(
        stage="running", source="greet_and_wait(); os.abort()", says="it exited by itself", exit="killed by SIGABRT", step=AGAIN,
    ),
    "ends": Case(stage="running", source="greet_and_wait(); sys.exit(0)", says="it exited by itself", exit="exit 0", step=AGAIN),
    "closes": Case(
        stage="running", source="greet_and_wait(); os.close(1); hang()", says="it closed its output", step="keep stdout open",
    ),
}  # fmt: skip


def add(place: Place, name: str, case: Case) -> Path:
    """The extension that fails so."""
    settings = {"startup_timeout_s": 10 if name == "no-end" else 2, "env": {"PIDS": str(place.pids)}}
    directory = place.add(name, SAYS + case.source, **settings)
    if case.manifest:
        (directory / "extension.json").write_text(case.manifest)
    if case.mode:
        script(directory, b"#!/bin/sh\n", mode=case.mode)
    return directory


async def test_c22_each_failure_has_all_its_parts_in_its_row(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, case in CASES.items():
        add(place, name, case)
    place.add("good", GOOD)
    async with running(place) as (host, session):
        for name, case in CASES.items():
            row = await until_state(session, name, "failed", "rejected", "disabled")
            error = row.error
            assert (row.name, error.extension) == (name, name)
            assert error.stage == case.stage, name
            if case.exit or not case.stderr:
                assert error.exit_status == case.exit, name
                assert case.exit in row.reason
            assert error.stderr_tail == case.stderr, name
            assert case.says in error.message, name
            assert case.says in row.reason, name
            assert case.step in row.reason, name
            assert case.step in str(error), name
            assert (error.uptime_s is None) == (not case.stderr), name
            if case.stage == "discovery":
                assert (error.log_path, row.log_path) == ("", None), "nothing was started, so there is no log"
            else:
                assert error.log_path == str(row.log_path)
                assert case.says in row.log_path.read_text(errors="replace")
            if case.stage != "discovery" or row.state == "rejected":
                assert any(case.says in each.message for each in host.diagnostics.of(name)), name
        await assert_good_answers(session)


@pytest.mark.parametrize("name", CASES)
def test_c22_check_says_the_same_and_exits_1(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    directory, home = add(Place(tmp_path), name, case), tmp_path / "home"
    found = run(home, "check", str(directory), "--json")
    assert (found.returncode, found.stderr) == (1, "")
    error = json.loads(found.stdout)["error"]
    told = f"{error['message']} {error['hint']}"
    log_path = "" if case.stage == "discovery" else str(home / "logs" / f"{name}.log")
    assert (error["stage"], error["log_path"], error["stderr_tail"]) == (case.stage, log_path, case.stderr)
    assert case.says in told
    assert case.step in told
    if case.exit or not case.stderr:
        assert error["exit_status"] == case.exit
    assert (error["uptime_s"] is None) == (not case.stderr)

    shown = run(home, "check", str(directory))
    assert (shown.returncode, shown.stdout) == (1, "")
    text = " ".join(shown.stderr.split())
    assert text.startswith(f"{name}: ")
    for part in ("message", "hint", "stderr_tail", "log_path"):
        assert " ".join(error[part].split()) in text
    for label, part in (("stage", "stage"), ("exit", "exit_status"), ("log", "log_path")):
        assert (f" {label}: {error[part]}" in text) == bool(error[part])
    if log_path:
        assert case.says in run(home, "logs", name).stdout


async def test_c22_whatever_is_configured_has_a_row_with_its_reason(tmp_path: Path) -> None:
    place = Place(tmp_path)
    add(place, "bad-json", CASES["bad-json"])
    add(place, "no-exec", CASES["no-exec"])
    add(place, "disabled", CASES["disabled"])
    place.add("twice", "serve()")
    place.add("double", "serve()")
    change_manifest(tmp_path / "double", name="twice")
    place.directories += [tmp_path / "missing", tmp_path / "file", tmp_path / "dangling", tmp_path / "again"]
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "again").symlink_to(tmp_path / "twice")
    place.add("loop", SAYS + "greet_and_wait(); sys.exit(1)", restart="on_crash")
    place.add("leaves", "serve()")
    place.add("good", GOOD)
    place.add("untrusted", "serve()", root="project")
    policy = Policy(extensions={"loop": ExtensionPolicy(restart="on_crash", restart_budget=3, restart_delay_s=0.01)})
    settings = place.config(project_roots=("project",))
    async with open_host(settings, policy=policy) as host, host.open_session("s", cwd=tmp_path) as session:
        await session.load_all()
        await session.unload("leaves")
        await until_state(session, "loop", "gave_up")
        rows = [(row.name, row.state) for row in session.extensions()]
        assert rows == [
            ("bad-json", "rejected"),
            ("no-exec", "failed"),
            ("disabled", "disabled"),
            ("twice", "ready"),
            ("twice", "shadowed"),
            ("missing", "rejected"),
            ("file", "rejected"),
            ("dangling", "rejected"),
            ("twice", "shadowed"),
            ("loop", "gave_up"),
            ("leaves", "stopped"),
            ("good", "ready"),
            ("untrusted", "blocked"),
        ]
        words = {
            "missing": "does not exist (name the directory that holds extension.json)",
            "file": "is no directory",
            "dangling": "nothing is there (correct the link, or remove it)",
            "leaves": "it was asked to stop",
            "untrusted": "after reading it: exthost trust ",
            "loop": "given up after 3 restarts in ",
        }
        for name, said in words.items():
            assert said in row_of(session, name).reason
        assert "exit 1" in row_of(session, "loop").reason
        assert row_of(session, "loop").error.stage == "running"
        for row in session.extensions():
            assert bool(row.reason) == (row.state != "ready"), row
            if row.state == "shadowed":
                assert f"shadowed by {tmp_path}/twice" in row.reason
                assert "remove one of the two, or give it another name" in row.reason
        await assert_good_answers(session)


def test_c22_list_has_the_same_rows_with_their_way_out(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("bad-json", "disabled"):
        add(place, name, CASES[name])
        (tmp_path / "home" / "extensions").mkdir(parents=True, exist_ok=True)
        (tmp_path / name).rename(tmp_path / "home" / "extensions" / name)
    found = json.loads(run(tmp_path / "home", "list", "--json", cwd=tmp_path).stdout)["extensions"]
    assert [each["name"] for each in found] == ["bad-json", "disabled"]
    shown = " ".join(run(tmp_path / "home", "list", cwd=tmp_path).stdout.split())
    for each in found:
        case = CASES[each["name"]]
        assert case.says in each["reason"]
        assert case.step in each["way_out"]
        assert f"way out: {each['way_out']}" in shown
