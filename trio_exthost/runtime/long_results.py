"""Results of tools with more text than a model should be given: cut, marked, and kept whole in a file."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.runtime.results import ToolResult, cut_text, text_block
from trio_exthost.runtime.tool_limits import bytes_of

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.wire.from_extension import ContentBlock

SUFFIX = ".txt"


async def shortened(result: ToolResult, instance: Instance, tool: str) -> ToolResult:
    """The result as it is, or with so much of its text as its extension's limit allows, and a note of where all of it is.

    Text is cut at the boundary of a character; images are left whole. Of the files, the newest `limits.kept_results` stay.

    Args:
      result: What the tool has given back.
      instance: Whose the tool is.
      tool: Its name.
    """
    limit = bytes_of(instance)
    size = sum(len(block.text.encode("utf-8", "surrogatepass")) for block in result.content)
    if size <= limit:
        return result
    directory = instance.host.config.data_dir / "results"
    try:
        path = await trio.to_thread.run_sync(_keep, directory, instance.name, result.text, instance.limits.kept_results)
    except OSError as exc:
        path, where = None, f"the full text could not be kept in {directory}: {exc.strerror or exc}"
    else:
        where = f"full text in {path}"
    note = f"[truncated: the tool gave {size} bytes of text, more than the {limit} allowed; {where}]"
    content = _cut(result.content, max(limit - len(note.encode("utf-8", "surrogatepass")), 0))
    instance.report(
        Code.RESULT_TRUNCATED,
        Severity.WARNING,
        f"tool {tool!r}: its result has {size} bytes of text and is cut to {limit}; {where}; "
        "exthost.tool_result_bytes in its manifest, or limits.tool_result_bytes of the host, is the limit",
    )
    details = {**result.details, "full_text": str(path)} if path is not None else result.details
    return attrs.evolve(result, content=(*content, text_block(note)), truncated=True, details=details)


def _cut(blocks: tuple[ContentBlock, ...], room: int) -> tuple[ContentBlock, ...]:
    """The blocks with so many bytes of text; what has none left goes."""
    kept: list[ContentBlock] = []
    for block in blocks:
        if block.type != "text":
            kept.append(block)
        elif text := cut_text(block.text, room):
            kept.append(attrs.evolve(block, text=text))
            room -= len(text.encode("utf-8", "surrogatepass"))
            room = room if len(text) == len(block.text) else 0
    return tuple(kept)


def _keep(directory: Path, name: str, text: str, files: int) -> Path:
    """Write a text to a new file that only the user may read, and remove the oldest beyond so many. Blocks."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, path = tempfile.mkstemp(SUFFIX, f"{name}-", directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    except OSError:
        with suppress(OSError):  # half a text is worse than none
            os.unlink(path)  # noqa: PTH108 - as it was made
        raise
    _prune(directory, Path(path), files)
    return Path(path)


def _prune(directory: Path, newest: Path, files: int) -> None:
    """Several hosts may do so at the same time: what is gone is gone."""
    found: list[tuple[int, Path]] = []
    for each in directory.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):
            found.append((each.stat().st_mtime_ns, each))
    older = sorted(each for each in found if each[1] != newest)
    for _, each in older[: max(len(older) + 1 - files, 0)]:
        each.unlink(missing_ok=True)
