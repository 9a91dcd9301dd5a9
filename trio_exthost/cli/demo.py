"""`exthost demo`: the example agent with the example extensions on a real task, live in the terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import trio

from trio_exthost.cli.demo_view import View
from trio_exthost.cli.examples import agent_module, prepare_extensions
from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.text import write_json
from trio_exthost.config import HostConfig
from trio_exthost.runtime.host import ModelRef, open_host
from trio_exthost.runtime.toolcall import ToolCall

TASK = "The greeting script in this folder is broken. Fix it, have it reviewed, and publish it."
BROKEN_SCRIPT = '#!/bin/sh\necho "helo, wrld"\n'


def choose_model() -> Any:
    """The real model where there is a key, else the scripted one."""
    if os.environ.get("OPENAI_API_KEY"):
        return agent_module("model").OpenAIModel.from_environment()
    return agent_module("scripted").ScriptedModel()


def make_project(folder: Path) -> Path:
    """The project the agent works on; with git, one that could really be pushed somewhere."""
    project = folder / "project"
    project.mkdir()
    (project / "greet.sh").write_text(BROKEN_SCRIPT)
    if git := shutil.which("git"):
        identity = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
        for arguments in (
            ["init", "-q", "--bare", "../origin.git"],
            ["init", "-q", "-b", "main"],
            ["remote", "add", "origin", "../origin.git"],
            ["add", "."],
            [*identity, "commit", "-q", "-m", "A greeting"],
        ):
            subprocess.run([git, *arguments], cwd=project, check=False, capture_output=True)
    return project


async def play(folder: Path, view: View) -> None:
    """Run the agent in `folder`; everything that happens goes to the view. Ends early where that can print no more."""
    with trio.CancelScope() as scope:
        view.on_broken = lambda: scope.cancel(reason="nothing can be printed any more")
        await _play(folder, view)


async def _play(folder: Path, view: View) -> None:
    scratch = make_project(folder)
    ready, left_out = prepare_extensions(folder / "extensions")
    config = HostConfig(extensions=ready, project_roots=(), user_roots=(), data_dir=folder / "data")
    model = choose_model()
    view.begin(TASK, model.name, left_out)
    await trio.lowlevel.checkpoint_if_cancelled()  # that may have been for nobody: then nothing is started

    async def confirm(call: ToolCall) -> bool:
        await trio.lowlevel.checkpoint()
        view.confirmed(call)
        return True

    tools = agent_module("builtin").builtin_tools(scratch)
    run_task = agent_module("agent").run_task
    async with (
        open_host(config, instrument=view.instrument) as host,
        host.open_session(
            "demo", cwd=scratch, client=view.client, tools=tools, confirm=confirm, model=ModelRef("demo", model.name)
        ) as session,
    ):
        view.loaded(await session.load_all())
        await run_task(session, model, TASK, show=view.say)
        for command in session.commands():
            if command.name in ("audit", "todo"):
                view.command(command.name, await session.run_command(command.name))
    script = scratch / "greet.sh"
    view.result(script.read_text(errors="replace") if script.is_file() else "")


EPILOG = """
Examples:
  exthost demo
  exthost demo --json | jq .summary

With OPENAI_API_KEY a real model plays the agent, else a script does.

--json prints one object, at the end:
  task, model, seconds
  extensions   {name: state}; left_out says why others could not run here
  events       [{event, told: [name]}], in order
  verdicts     [{event, outcome, reason, by, steps: [{extension, kind, ms}]}]
  notes        [{extension, level, message}]
  said         what the agent said, as the user may see it
  greet_sh     the script as the agent left it
  summary      {events told, asked, refused, rewrote, hidden, replaced,
               confirmed, tools run}: numbers
  folder       with --keep: where it worked
"""


@click.command("demo", cls=Command, short_help=COMMANDS["demo"][1], epilog=EPILOG, context_settings=HELP_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
@click.option("--keep", is_flag=True, help="Keep the folder it works in, and say where it is.")
def demo_command(as_json: bool, keep: bool) -> None:
    """An agent fixes a script while five extensions watch, refuse, rewrite and hide. Works offline."""
    view = View(is_silent=as_json)
    folder = Path(tempfile.mkdtemp(prefix="exthost-demo-"))
    begun = time.monotonic()
    try:
        trio.run(play, folder, view)
    except agent_module("model").ModelError as exc:
        raise click.ClickException(str(exc)) from exc
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    view.end(time.monotonic() - begun, folder if keep else None)
    if view.broken is not None:
        raise view.broken
    if as_json:
        write_json(view.record)
