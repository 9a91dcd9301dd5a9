"""`exthost dev DIR`: one extension in the example agent, reloaded whenever its files change."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import attrs
import click
import trio

from trio_exthost.cli.demo import BROKEN_SCRIPT, TASK, make_project
from trio_exthost.cli.dev_changes import Relevance
from trio_exthost.cli.dev_pace import Changes, Rate
from trio_exthost.cli.dev_view import DevView
from trio_exthost.cli.dev_watch import check_installed, watch
from trio_exthost.cli.examples import agent_module
from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.config import HostConfig
from trio_exthost.errors import HostError, ManifestError
from trio_exthost.packages import load_manifest
from trio_exthost.runtime.host import ModelRef, open_host
from trio_exthost.runtime.reload_report import ReloadReport
from trio_exthost.runtime.session import Session
from trio_exthost.runtime.toolcall import ToolCall

QUIET_S = 0.3
"""A burst of changes is over after so long without one."""
BACK_S = 1.0
"""What was deleted is waited for so long: editors and build tools that delete a file often write it anew."""
LONGEST_S = 10.0
"""A burst that does not end is acted on after so long."""
WINDOW_S = 60.0


@attrs.frozen
class Options:
    """What the person asked for."""

    per_minute: int
    """Reloads in any minute."""
    commands: tuple[str, ...]
    """Run after the task, as a user would type them."""
    with_task: bool
    """Whether the agent works at all."""
    is_now: bool
    """Whether a reload waits for the agent."""


class Development:
    """One extension's folder, the session it runs in, and the agent that tries it."""

    def __init__(self, directory: Path, folder: Path, view: DevView, options: Options) -> None:
        """Nothing is started. `directory` is absolute, links resolved; all that the host writes is in `folder`."""
        self._directory = directory
        self._folder = folder
        self._view = view
        self._options = options
        self._changes = Changes(quiet_s=QUIET_S, longest_s=LONGEST_S)
        self._rate = Rate(options.per_minute, WINDOW_S)
        self._relevance = Relevance(directory, own=(folder,))
        self._wanted = trio.Event()  # the agent is to begin

    async def run(self) -> None:
        """Load it, have the agent work, reload on change, for ever. Ends where nothing can be printed any more."""
        async with trio.open_nursery() as nursery:
            self._view.on_broken = lambda: nursery.cancel_scope.cancel("nothing can be printed any more")
            await self._read_manifest()
            await nursery.start(watch, self._directory, self._see)
            await self._host()

    def _see(self, paths: Iterable[str]) -> None:
        self._changes.add(path for path in paths if self._relevance(path))

    async def _read_manifest(self) -> None:
        """What of its folder is no change; as before, while the manifest cannot be read."""
        try:
            manifest, _ = await trio.to_thread.run_sync(load_manifest, self._directory)
        except ManifestError:
            return  # loading and reloading say what is wrong with it
        self._relevance = Relevance(self._directory, own=(self._folder,), patterns=manifest.exthost.watch_ignore)

    async def _host(self) -> None:
        scratch = make_project(self._folder)
        view = self._view
        config = HostConfig(
            extensions=(self._directory,), project_roots=(), user_roots=(), data_dir=self._folder / "data"
        )

        async def confirm(call: ToolCall) -> bool:
            await trio.lowlevel.checkpoint()
            view.confirmed(call)
            return True

        tools = agent_module("builtin").builtin_tools(scratch)
        async with (
            open_host(config, instrument=view.instrument) as host,
            host.open_session(
                "dev", cwd=scratch, client=view.client, tools=tools, confirm=confirm, model=ModelRef("demo", "scripted")
            ) as session,
            trio.open_nursery() as nursery,
        ):
            report = await session.load_all()
            view.loaded(report)
            nursery.start_soon(self._work, session, scratch)
            if report.ready:
                self._wanted.set()
            while True:
                await self._reload_once(session)

    # --- reloading ---

    async def _reload_once(self, session: Session) -> None:
        """Wait for a change, and reload."""
        view = self._view
        paths = await self._until_back(await self._changes.wait())
        pause_s = self._rate.wait_s(trio.current_time())
        if pause_s:
            view.paused(pause_s, self._rate.most, self._rate.window_s)
            await trio.sleep(pause_s)
            paths = tuple(sorted({*paths, *self._changes.take()}))
        self._rate.use(trio.current_time())
        view.changed(paths)
        if session.runs and not self._options.is_now:
            view.waiting()
        begun = trio.current_time()
        await self._read_manifest()
        report = await self._reload(session)
        if any(each.stage == "discovery" for each in report.failed):
            # It may have been read while it was being written, in two steps that are further apart than a save's.
            await self._changes.settle()
            self._changes.take()
            await self._read_manifest()
            report = await self._reload(session)
        view.reloaded(report, trio.current_time() - begun)
        if report.added or report.restarted:
            self._wanted.set()

    async def _until_back(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Wait a moment for those of these files that are gone; with all that has changed meanwhile."""
        found = set(paths)
        with trio.move_on_after(BACK_S):  # noqa: ASYNC912 - nothing to wait for where none is gone
            while not all(map(os.path.lexists, found)):
                found.update(await self._changes.wait())
        found.update(self._changes.take())
        return tuple(sorted(found))

    async def _reload(self, session: Session) -> ReloadReport:
        return await session.reload(when="now" if self._options.is_now else "idle")

    # --- the agent ---

    async def _work(self, session: Session, scratch: Path) -> None:
        """Work the task off, from the start, each time it is wanted."""
        model = agent_module("scripted").ScriptedModel()
        run_task = agent_module("agent").run_task
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            self._view.begin_round(TASK)
            if self._options.with_task:
                await trio.Path(scratch / "greet.sh").write_text(BROKEN_SCRIPT)
                await run_task(session, model, TASK, show=self._view.say)
            for line in self._options.commands:
                await self._command(session, line)
            self._view.end_round()

    async def _command(self, session: Session, line: str) -> None:
        name, _, arguments = line.removeprefix("/").partition(" ")
        try:
            self._view.command(line.removeprefix("/"), await session.run_command(name, arguments))
        except HostError as exc:  # the extension's, and what the author wants to see
            self._view.command_failed(line.removeprefix("/"), exc)


EPILOG = """
Examples:
  exthost dev ./my-extension
  exthost dev ./my-extension --no-task -c "/deploy staging"

The agent plays a script, offline, with your extension as its only one. When
you save a file, a new process is started beside the old one; once it is ready
and the agent is through, it takes over, and the agent begins again. While the
new one does not start, the old one goes on.

Not looked at: names that begin with a dot, __pycache__, node_modules, venv,
*.log, editors' temporary files, and what exthost.watch_ignore of its manifest
names. Ctrl-C ends it.

--json prints one object a line, as things happen; `what` says which:
  loaded    ready: names; failed: [{name, stage, reason, log_path}]
  changed   paths, within the folder
  reloaded  added, removed, unchanged: names; restarted: [{name, old_pid,
            new_pid}]; failed as above; seconds
  paused    it changed too often: most reloads in window_s; seconds to go
  played    the agent is through: events, verdicts, notes, said (as `exthost
            demo --json` has them), commands: [{command, action, text}]

Exit status: 130 after Ctrl-C, 1 when the folder cannot be watched.
"""


@click.command("dev", cls=Command, short_help=COMMANDS["dev"][1], epilog=EPILOG, context_settings=HELP_OPTIONS)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-c", "--command", "commands", multiple=True, metavar="TEXT", help="Run a command after the task, too.")
@click.option("--task/--no-task", "with_task", default=True, help="Whether the agent works its task off.")
@click.option("--now", "is_now", is_flag=True, help="Reload in the middle of the agent's work.")
@click.option(
    "--limit", "per_minute", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N",
    help="Reloads per minute; then it pauses, with a message.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, described below.")
def dev_command(
    directory: Path, commands: tuple[str, ...], with_task: bool, is_now: bool, per_minute: int, as_json: bool
) -> None:
    """Run the extension in DIRECTORY in the example agent, and reload it when its files change.

    It is run: by naming it you trust it.
    """
    check_installed()
    directory = directory.resolve()
    view = DevView(directory, as_json=as_json)
    folder = Path(tempfile.mkdtemp(prefix="exthost-dev-")).resolve()
    try:
        trio.run(Development(directory, folder, view, Options(per_minute, commands, with_task, is_now)).run)
    except BaseExceptionGroup as group:
        # Of all that ran at once, the folder that cannot be watched ends it by itself.
        failure = _only(group)
        if not isinstance(failure, click.ClickException):
            raise
        raise failure from group
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if view.broken is not None:
        raise view.broken


def _only(exc: BaseException) -> BaseException:
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
