"""`exthost replay TRANSCRIPT --ext DIR`: what extensions would have done to a recorded conversation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import trio

from trio_exthost.cli.check_policy import read_policy
from trio_exthost.cli.group import COMMANDS, HELP_OPTIONS, Command
from trio_exthost.cli.replay_player import Player
from trio_exthost.cli.replay_progress import progress_bar, read_chunks
from trio_exthost.cli.replay_report import Asked, Report
from trio_exthost.cli.replay_view import show
from trio_exthost.cli.text import write_json
from trio_exthost.cli.transcripts import Format
from trio_exthost.cli.transcripts_open import Recording, UnknownFormat, open_recording
from trio_exthost.config import Deadlines, HostConfig
from trio_exthost.diagnostics import Code
from trio_exthost.errors import LoadError
from trio_exthost.policy import Policy
from trio_exthost.runtime.host import Host, open_host
from trio_exthost.runtime.next_steps import HINTS
from trio_exthost.runtime.session import Session

_ERROR_KEYS = ("extension", "code", "stage", "message", "exit_status", "stderr_tail", "log_path", "hint")


async def replay(
    recording: Recording, directories: Sequence[Path], hello_s: float | None = None, policy: Policy | None = None
) -> dict[str, Any]:
    """Play a recording to extensions, in a session with nothing else; what they would have done, or why one does not start.

    Their processes have ended on return.

    Args:
      recording: Read to its end, unless an extension does not start.
      directories: Of the extensions, absolute; in the order in which they are asked, where priorities are the same.
      hello_s: Seconds until `hello`; None for the default. A manifest that asks for more or less wins.
      policy: Under which they are loaded; None for one that says nothing.
    """
    deadlines = Deadlines(hello_s=hello_s) if hello_s is not None else Deadlines()
    config = HostConfig(project_roots=(), user_roots=(), deadlines=deadlines)
    report = Report(config.mask)
    error: dict[str, str] | None = None
    rows: list[dict[str, Any]] = []
    begun = time.monotonic()
    async with open_host(config, policy=policy) as host, host.open_session("replay") as session:
        try:
            for directory in directories:
                await session.load(directory)
        except LoadError as exc:
            error = {key: str(getattr(exc, key) or "") for key in _ERROR_KEYS}
            error["hint"] = error["hint"] or HINTS.get(exc.code, "") or "`exthost check` of its directory says more"
        else:
            player = Player(session, report)
            for entry in recording.entries:
                await player.play(entry)
            await player.finish()
        rows = _rows(host, session, report)
    restarts = host.diagnostics.counts.get(Code.RESTARTING, 0)
    return {
        "ok": error is None and not restarts and all(row["state"] == "ready" for row in rows),
        "format": recording.format.value,
        "seconds": round(time.monotonic() - begun, 3),
        "error": error,
        **report.to_json(),
        "extensions": rows,
        # Read only now: that one had to be killed is worth knowing, too.
        "diagnostics": {code.value: count for code, count in host.diagnostics.counts.items()},
    }


def _rows(host: Host, session: Session, report: Report) -> list[dict[str, Any]]:
    """A row for each extension that was to be started."""
    missed = {each.extension: each.dropped for each in host.stats().extensions}
    rows = []
    for row in session.extensions():
        asked = report.asked.get(row.name, Asked())
        rows.append(
            {
                "name": row.name,
                "version": row.version,
                "state": row.state,
                "reason": row.reason,
                "asked": asked.durations.count,
                "points": dict(asked.points),
                "p50_s": asked.durations.quantile(0.5),
                "p99_s": asked.durations.quantile(0.99),
                "max_s": asked.durations.maximum_s,
                "missed": missed.get(row.name, 0),
            }
        )
    return rows


EPILOG = """
Examples:
  exthost replay session.jsonl --ext ./guard
  exthost replay chat.json --ext ./guard --ext ./redact --policy policy.toml

Formats, told from the content:
  events       a line for each event of a host, in zot's words
  openai       chat messages: a list, an object with "messages", or lines
  claude       session files of Claude Code

--json prints one object:
  transcript, format, seconds
  ok           true when all extensions became ready, and were in the end
  error        null, or why one does not start: {extension, code, stage,
               message, exit_status, stderr_tail, log_path, hint}
  conversations, system_prompts, prompts, turns, texts, calls, results
               how many of each there are; prompts are the user's
  unpaired_results
               results of calls that nobody made
  skipped      {type: number} of what is no part of a conversation
  unreadable   how much could not be read; problems: the first [{at, why}]
  verdicts     {point: {allow, ask, block}}: outcomes where anybody was asked
  unaware      who was asked in a protocol that knows no dry run
  findings     [{extension, deed, point, tool, reason, count, at, tool_id,
               example}]: deed is refused, hidden, rewritten, asked or
               no_answer; extension is null for the host itself; at, tool_id
               and example are of the first; secrets are masked
  extensions   [{name, version, state, reason, asked, points, p50_s, p99_s,
               max_s, missed}]; points: {point: how often it was asked};
               missed: events it did not get, as it reads too slowly
  diagnostics  {code: number}: what else the host noticed

Exit status: 0 it ran, whatever was refused; 1 it did not, or an extension
failed on the way; 2 wrong call.
"""


@click.command(
    "replay", cls=Command, short_help=COMMANDS["replay"][1], epilog=EPILOG, context_settings=HELP_OPTIONS,
)  # fmt: skip
@click.argument("transcript", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--ext",
    "directories",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    required=True,
    metavar="DIR",
    help="An extension; may be given several times.",
)
@click.option(
    "--format",
    type=click.Choice([each.value for each in Format]),
    help="Whose TRANSCRIPT is, where its content does not tell.",
)
@click.option("--policy", type=click.Path(path_type=Path), metavar="FILE", help="Play it under this policy.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=86_400),
    metavar="SECONDS",
    help="Until the hello of each, instead of 10; exthost.startup_timeout_s of its manifest wins.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, described below.")
def replay_command(
    transcript: Path,
    directories: tuple[Path, ...],
    format: str | None,
    policy: Path | None,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Play the recorded conversation TRANSCRIPT to extensions and say what they would have done.

    Nothing of it is executed. The extensions are run: by naming them you trust them. They see what was recorded as if it
    happened, and may act on it.
    """
    read = None if policy is None else read_policy(policy)
    absolute = [each.absolute() for each in directories]
    with transcript.open("rb") as stream:
        size = transcript.stat().st_size if transcript.is_file() else None
        with progress_bar(transcript.name, size) as bar:
            try:
                recording = open_recording(read_chunks(stream, bar), Format(format) if format else None)
            except UnknownFormat as exc:
                raise click.ClickException(f"{transcript}: {exc}") from exc
            found = trio.run(replay, recording, absolute, timeout, read)
    found = {"transcript": str(transcript), **found}
    _check_conversation(transcript, found)
    if as_json:
        write_json(found)
    else:
        show(found)
    return 0 if found["ok"] else 1


def _check_conversation(transcript: Path, found: Mapping[str, Any]) -> None:
    """Refuse a recording that has nothing to play: whoever reads a report of zeros takes it for a clean one."""
    if found["error"] is not None or found["conversations"]:
        return
    skipped = ", ".join(f"{what} {count}" for what, count in found["skipped"].items())
    words = [f"there is no conversation in it, read as {found['format']}"]
    words += [f"skipped: {skipped}"] if skipped else []
    words += [f"unreadable: {found['unreadable']}"] if found["unreadable"] else []
    words += [f"{each['at']} {each['why']}" for each in found["problems"][:1]]
    raise click.ClickException(f"{transcript}: {'; '.join(words)} (another format can be named with --format)")
