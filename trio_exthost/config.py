"""HostConfig and its parts: deadlines in seconds, limits in bytes and counts.

The defaults are the numbers existing extensions of zot rely on, plus our own bounds for what zot leaves unbounded.
Every value is checked when the object is made, so a host never runs with a deadline of minus one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from trio_exthost.errors import ConfigError
from trio_exthost.mask import DEFAULT_MASK, check_pattern

MAX_AMOUNT = 1e9
"""Seconds: some thirty years, with which a clock still counts exactly."""
LEAST_FRAME_BYTES = 1024
"""With less there is no room for what every extension has to be told, its shutdown among it."""
MAX_COUNT = 2**40
"""Bytes, or things: more than any machine has room for."""


def _check(attribute: attrs.Attribute[Any], value: object, kinds: tuple[type, ...], wanted: str, most: float) -> None:
    """Refuse what is not a finite number of these kinds above zero (a bool is not a number here)."""
    # A comparison with nan is false, and one with an endless whole number is none with a float.
    if not isinstance(value, kinds) or isinstance(value, bool) or not 0 < value < math.inf:  # type: ignore[operator]
        raise ConfigError(f"{attribute.name} must be {wanted} above 0, not {_shown(value)}")
    if value > most:  # type: ignore[operator]
        raise ConfigError(f"{attribute.name} must be {wanted} above 0 and at most {most:.0f}, not {_shown(value)}")


def _shown(value: object) -> str:
    """A wrong value; of a whole number that Python would not write out, its size."""
    is_endless = isinstance(value, int) and value.bit_length() > 1000
    return "a number of more than 300 digits" if is_endless else repr(value)


def _count(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    _check(attribute, value, (int,), "a whole number", MAX_COUNT)


def _amount(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    _check(attribute, value, (int, float), "a finite number", MAX_AMOUNT)


def _text(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{attribute.name} must be text, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{attribute.name} {value!r} holds half of a surrogate pair, which no text may") from None


def _stream(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value not in ("hold", "show"):
        raise ConfigError(f"{attribute.name} must be hold or show, not {value!r}")


def _environment(_instance: object, _attribute: attrs.Attribute[Any], env: Mapping[Any, Any]) -> None:
    """Refuse what no program can be started with. Values stay out of messages: they may be secrets."""
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or not _is_of_the_system(name):
            raise ConfigError(f"env holds {name!r}, which cannot name an environment variable")
        if not isinstance(value, str) or not _is_of_the_system(value):
            raise ConfigError(f"env[{name!r}] must be text without NUL")


def _is_of_the_system(text: str) -> bool:
    """Whether the system can be given this text: as UTF-8, or as the bytes that it once gave us."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text


@attrs.frozen(kw_only=True)
class Deadlines:
    """How long the host waits, in seconds. Kept by the host's clock alone; queueing and writing count."""

    hello_s: float = attrs.field(default=10.0, validator=_amount)
    """From the spawn to the `hello` frame."""
    auto_ready_s: float = attrs.field(default=0.25, validator=_amount)
    """Silence after hello_ack and the last frame that counts as `ready` where no `ready` frame comes."""
    ready_cap_s: float = attrs.field(default=3.0, validator=_amount)
    """From hello_ack (of an instance) or from its start (`load_all`) until it is ready, or goes on late."""
    intercept_s: float = attrs.field(default=5.0, validator=_amount)
    """One interceptor's answer."""
    transform_s: float = attrs.field(default=2.0, validator=_amount)
    """One transform hook's answer."""
    chain_s: float = attrs.field(default=10.0, validator=_amount)
    """A whole chain of interceptors."""
    life_cycle_s: float = attrs.field(default=2.0, validator=_amount)
    """What an extension does where it begins (`extension_load`), and all it does where it ends."""
    commit_s: float = attrs.field(default=10.0, validator=_amount)
    """What an answer stores, from the answer until it is on the disk."""
    command_s: float = attrs.field(default=30.0, validator=_amount)
    """A command's answer."""
    tool_s: float = attrs.field(default=60.0, validator=_amount)
    """A tool's answer, where its manifest asks for nothing else."""
    tool_maximum_s: float = attrs.field(default=600.0, validator=_amount)
    """The operator's maximum for what a manifest may ask for."""
    nested_call_s: float = attrs.field(default=60.0, validator=_amount)
    """A tool that an extension calls."""
    circuit_delay_s: float = attrs.field(default=5.0, validator=_amount)
    """From taking an instance out of service, as it failed too often, to asking it again; doubled each time it fails then."""
    circuit_delay_max_s: float = attrs.field(default=300.0, validator=_amount)
    """What that doubling ends at."""
    reload_total_s: float = attrs.field(default=15.0, validator=_amount)
    """A whole reload, the time in which it waits for open runs not counted."""
    reload_grace_s: float = attrs.field(default=5.0, validator=_amount)
    """A call in flight whose extension is reloaded."""
    stall_s: float = attrs.field(default=5.0, validator=_amount)
    """An extension that takes no byte of what waits for it for so long is stopped as unresponsive."""
    stop_grace_s: float = attrs.field(default=2.0, validator=_amount)
    """From `shutdown` and the end of its stdin until SIGTERM."""
    term_grace_s: float = attrs.field(default=1.0, validator=_amount)
    """From SIGTERM until SIGKILL."""
    stop_total_s: float = attrs.field(default=5.0, validator=_amount)
    """All processes together, from the first `shutdown` to the last reaped."""


@attrs.frozen(kw_only=True)
class Limits:
    """What may wait, be sent, nested or kept: bytes and counts."""

    frame_bytes: int = attrs.field(default=4 * 1024 * 1024, validator=_count)
    """One frame in either direction, without its line feed; at least `LEAST_FRAME_BYTES`."""
    oversize_stop_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=_count)
    """A line this long is no mistake any more: the extension is stopped."""
    event_body_bytes: int = attrs.field(default=256 * 1024, validator=_count)
    """Text and base64 of one event's result; what is over is cut and marked `truncated`."""
    event_blocks: int = attrs.field(default=128, validator=_count)
    """Content blocks of one event's result."""
    system_prompt_bytes: int = attrs.field(default=1024 * 1024, validator=_count)
    """A system prompt, encoded."""
    tool_result_bytes: int = attrs.field(default=1024 * 1024, validator=_count)
    """Text of one result of an extension's tool, where its manifest asks for nothing else; what is over is cut, marked, and
    kept in a file. Images are never cut: `frame_bytes` bounds them."""
    tool_result_maximum_bytes: int = attrs.field(default=4 * 1024 * 1024, validator=_count)
    """The operator's maximum for what a manifest may ask for."""
    kept_results: int = attrs.field(default=32, validator=_count)
    """Files with full texts of results, of all extensions together; the oldest go."""
    nested_result_bytes: int = attrs.field(default=256 * 1024, validator=_count)
    """The result of a tool that an extension called."""
    nested_depth: int = attrs.field(default=4, validator=_count)
    """Tools in a chain of calls, the model's own call included."""
    outbox_frames: int = attrs.field(default=256, validator=_count)
    """Frames waiting for one extension."""
    outbox_bytes: int = attrs.field(default=16 * 1024 * 1024, validator=_count)
    """Bytes waiting for one extension, the partly written frame included."""
    pending_calls: int = attrs.field(default=256, validator=_count)
    """Calls of one extension that await their answer."""
    waiting_work: int = attrs.field(default=64, validator=_count)
    """Requests of one extension that the host works on (its own tool calls)."""
    circuit_failures: int = attrs.field(default=3, validator=_count)
    """Failures in a row that take an instance out of service."""
    registrations: int = attrs.field(default=1024, validator=_count)
    """Registrations one extension may hold."""
    registration_bytes: int = attrs.field(default=16 * 1024 * 1024, validator=_count)
    """What one extension sends to be registered by frames of zot (what is refused counts), and what else of it waits to be
    registered: together, as JSON."""
    panels: int = attrs.field(default=16, validator=_count)
    """Panels one extension may have open."""
    pump_slice_s: float = attrs.field(default=0.002, validator=_amount)
    """How long input is handled before the agent's own tasks get a turn."""
    inbound_bytes_per_s: int = attrs.field(default=64 * 1024 * 1024, validator=_count)
    """Input of one extension per second; above, it waits for the next second."""
    inbound_busy_share: float = attrs.field(default=0.5, validator=_amount)
    """Share of a second that handling one extension's frames may take; above, it waits for the next second."""
    json_depth: int = attrs.field(default=128, validator=_count)
    """Nesting of a frame."""
    log_bytes: int = attrs.field(default=5 * 1024 * 1024, validator=_count)
    """One log file of an extension; then it is rotated."""
    log_files: int = attrs.field(default=3, validator=_count)
    """Log files kept per extension, the current one included."""
    stderr_tail_bytes: int = attrs.field(default=8 * 1024, validator=_count)
    """The end of stderr that is kept in memory for error messages."""
    diagnostics: int = attrs.field(default=1000, validator=_count)
    """Diagnostics kept in memory."""
    decisions: int = attrs.field(default=1000, validator=_count)
    """Verdicts kept in memory."""

    @frame_bytes.validator
    def _check_frame(self, _attribute: attrs.Attribute[Any], value: int) -> None:
        if value < LEAST_FRAME_BYTES:
            raise ConfigError(f"frame_bytes must be at least {LEAST_FRAME_BYTES}, not {value!r}")

    @inbound_busy_share.validator
    def _check_share(self, _attribute: attrs.Attribute[Any], value: float) -> None:
        if value > 1:
            raise ConfigError(f"inbound_busy_share must be at most 1, not {value!r}")


ENV_ALLOWED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TMPDIR", "TERM", "TZ",
)  # fmt: skip
"""Names passed on to every extension, with LC_* and XDG_*; all else must be declared (`exthost.env_from`)."""


def default_data_dir() -> Path:
    """The user's data directory: `$EXTHOST_HOME` if set, else what the platform says."""
    if home := os.environ.get("EXTHOST_HOME"):
        return Path(home)
    import platformdirs  # noqa: PLC0415 - only where no directory is given; the import of the package stays light

    return Path(platformdirs.user_data_dir("exthost", appauthor=False))


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path, if the system can be given it.

    Raises:
      ConfigError: It holds NUL, or half of a surrogate pair that stands for no byte.
    """
    found = Path(path)
    if not _is_of_the_system(str(found)):
        raise ConfigError(f"{str(found)!r} can be no path: it holds NUL, or half of a surrogate pair")
    return found


def _absolute(path: str | os.PathLike[str]) -> Path:
    return checked_path(path).absolute()


def _paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    return tuple(map(checked_path, paths))


def _paths_if_given(paths: Iterable[str | os.PathLike[str]] | None) -> tuple[Path, ...] | None:
    return None if paths is None else _paths(paths)


def _patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    if isinstance(patterns, str):
        raise ConfigError(f"mask must be several patterns, not the text {patterns!r}", hint="write (pattern,)")
    checked = tuple(patterns)
    for index, pattern in enumerate(checked):
        try:
            check_pattern(pattern)
        except ValueError as exc:
            raise ConfigError(f"mask[{index}] {pattern!r} {exc}") from None
    return checked


@attrs.frozen(kw_only=True)
class HostConfig:
    """Everything an embedder can set. Immutable; `attrs.evolve` makes a changed copy."""

    deadlines: Deadlines = attrs.field(factory=Deadlines)
    """How long the host waits."""
    limits: Limits = attrs.field(factory=Limits)
    """What may wait, be sent or kept."""
    data_dir: Path = attrs.field(factory=default_data_dir, converter=_absolute)
    """Trust store, logs and the user's own extensions (`extensions/`) live here."""
    extensions: tuple[Path, ...] = attrs.field(default=(), converter=_paths)
    """Directories of single extensions, first in the catalogue, in this order; always trusted."""
    project_roots: tuple[Path, ...] = attrs.field(default=(Path(".exthost/extensions"),), converter=_paths)
    """Roots of project-local extensions, relative to a session's cwd (`.zot/extensions` can be named)."""
    user_roots: tuple[Path, ...] | None = attrs.field(default=None, converter=_paths_if_given)
    """Roots of the user's extensions; None means `<data_dir>/extensions`."""
    trust: Callable[[object], bool] | None = None
    """Asked about a project-local extension the store does not know (a `packages.Candidate`); None means no."""
    env: Mapping[str, str] = attrs.field(factory=dict, validator=_environment)
    """Set in every extension's environment, over the allow-list and under its manifest's own."""
    inherit_env: bool = False
    """Pass the host's whole environment on, secrets included. Off for a reason."""
    text_stream: str = attrs.field(default="hold", validator=_stream)
    """Whether assistant text waits for those who may hide or replace it (`hold`), or is shown as it streams (`show`)."""
    mask: tuple[str, ...] = attrs.field(default=DEFAULT_MASK, converter=_patterns)
    """Regular expressions of secrets, for explanations and the decision log. One found in a key hides the value under it; in
    a text it hides what it matches. `(*DEFAULT_MASK, "...")` adds to the default (`trio_exthost.mask`)."""
    seed: int | None = None
    """Of the jitter of restarts; None: of the operating system."""
    host_name: str = attrs.field(default="trio-exthost", validator=_text)
    """Shown to extensions in `hello_ack`."""
    host_version: str = attrs.field(default="", validator=_text)
    """Sent as `zot_version`; empty means this package's version."""
