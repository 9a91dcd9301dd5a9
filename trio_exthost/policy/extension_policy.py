"""What the operator says about one point, and about one extension: settings, each `None` or empty where nothing is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from trio_exthost.effects.permissions import OVERRIDE
from trio_exthost.errors import PolicyError
from trio_exthost.policy.checks import did_you_mean, moved, noun, raise_all, read_point, read_setting
from trio_exthost.policy.settings import POINTS, STREAM_POINT, HeadlessAsk, OnAbsent, RestartMode, Stream
from trio_exthost.policy.verdict import OnFailure


def _read(name: str, value: object) -> Any:
    return None if value is None else read_setting(name, value)


def _check(_instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    _read(attribute.name, value)


def _on_failure(value: OnFailure | str | None) -> OnFailure | None:
    word: OnFailure | None = _read("on_failure", value)
    return word


def _stream(value: Stream | str | None) -> Stream | None:
    word: Stream | None = _read("stream", value)
    return word


def _on_absent(value: OnAbsent | str | None) -> OnAbsent | None:
    word: OnAbsent | None = _read("on_absent", value)
    return word


def _restart(value: RestartMode | str | None) -> RestartMode | None:
    word: RestartMode | None = _read("restart", value)
    return word


def read_headless_ask(value: HeadlessAsk | str | None) -> HeadlessAsk | None:
    """`headless_ask` as it was written; None where nothing is said."""
    word: HeadlessAsk | None = _read("headless_ask", value)
    return word


def _guards(value: Iterable[str]) -> frozenset[str]:
    words: frozenset[str] = read_setting("guards", value)
    return words


def _grant(value: Iterable[str]) -> frozenset[str]:
    words: frozenset[str] = read_setting("grant", value)
    return words


@attrs.frozen(kw_only=True)
class PointPolicy:
    """What is said about one point: for all extensions, or for one. Words may be given as text.

    Raises:
      PolicyError: A value is not one of those a setting can have.
    """

    on_failure: OnFailure | None = attrs.field(default=None, converter=_on_failure)
    """What counts when a member gives no usable answer."""
    deadline_s: float | None = attrs.field(default=None, validator=_check)
    """Seconds one member has for its answer: above 0, at most a day. The limit of the whole chain still cuts it."""
    stream: Stream | None = attrs.field(default=None, converter=_stream)
    """What happens to assistant text meanwhile; for `assistant_message` only, and only for all extensions."""

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing."""
        return self == _SILENT


_SILENT = PointPolicy()


def read_points(points: Mapping[str, PointPolicy]) -> Mapping[str, PointPolicy]:
    """A copy that cannot be changed, without those that say nothing.

    Raises:
      PolicyError: A name is no text, or what it stands for no `PointPolicy`.
    """
    given: Mapping[Any, object] = points
    for name, point in given.items():
        if not isinstance(name, str):
            raise PolicyError(f"a point must be text, not {noun(name)}", hint=did_you_mean("", POINTS))
        if not isinstance(point, PointPolicy):
            raise PolicyError(f"must be a PointPolicy, not {noun(point)}", where=name)
    return MappingProxyType({name: point for name, point in points.items() if not point.is_silent})


def wrong_points(points: Mapping[str, PointPolicy], *, for_all: bool) -> list[PolicyError]:
    """What is said about points that do not exist, or that such a thing cannot be said about."""
    problems: list[PolicyError] = []
    for name, point in points.items():
        try:
            can_block = read_point(name)
        except PolicyError as exc:
            problems += moved(exc, name)
            continue
        if point.on_failure is OnFailure.BLOCK and not can_block:
            why = f"nothing can be refused at {name}: without an answer the value stays as it is"
            problems.append(PolicyError(why, where=f"{name}.on_failure"))
        if point.stream is not None and not (for_all and name == STREAM_POINT):
            hint = f"set it in [defaults.{STREAM_POINT}]"
            problems.append(PolicyError("cannot be set here", where=f"{name}.stream", hint=hint))
    return problems


@attrs.frozen(kw_only=True)
class RestartPolicy:
    """When a crashed extension is started again. The parts are what `RestartWindow` takes."""

    mode: RestartMode = RestartMode.NEVER
    """Whether it is at all."""
    budget: int = 5
    """Restarts within the window; then it stays as it is until a person acts."""
    window_s: float = 60.0
    """Seconds that the window looks back."""
    delay_s: float = 1.0
    """Seconds before the first restart; each further one in the window doubles them."""
    delay_max_s: float = 30.0
    """Seconds the doubling ends at."""

    def __str__(self) -> str:
        """In words: `never`, or `on_crash, at most 5 times in 60 s, after 1 to 30 s`."""
        if self.mode is RestartMode.NEVER:
            return self.mode.value
        span = f"after {self.delay_s:g} to {self.delay_max_s:g} s"
        return f"{self.mode.value}, at most {self.budget} times in {self.window_s:g} s, {span}"


_BUILT_IN = RestartPolicy()


@attrs.frozen(kw_only=True)
class ExtensionPolicy:
    """What is said about one extension. Words may be given as text, lists in any order.

    Raises:
      PolicyError: A value is not one of those a setting can have, or two settings do not go together.
    """

    required: bool = attrs.field(default=False, validator=_check)
    """What it `guards` is refused while it is not there to be asked."""
    guards: frozenset[str] = attrs.field(default=(), converter=_guards)
    """What it guards: `tool:<name>`, `tool:*`, or a point at which something can be refused."""
    grant: frozenset[str] = attrs.field(default=(), converter=_grant)
    """Permission words it is granted, `tools.override:<name>` among them."""
    on_absent: OnAbsent | None = attrs.field(default=None, converter=_on_absent)
    """What the tools that it may override by name stand for while it is not there; `refuse` where nothing is said."""
    restart: RestartMode | None = attrs.field(default=None, converter=_restart)
    """When it is started again; what its manifest says where nothing is said."""
    restart_budget: int | None = attrs.field(default=None, validator=_check)
    """Restarts within the window: 1 to 1000."""
    restart_window_s: float | None = attrs.field(default=None, validator=_check)
    """Seconds that the budget counts back: above 0, at most a day."""
    restart_delay_s: float | None = attrs.field(default=None, validator=_check)
    """Seconds before the first restart: 0 to a day."""
    restart_delay_max_s: float | None = attrs.field(default=None, validator=_check)
    """Seconds at which the doubling of the delay ends: 0 to a day."""
    headless_ask: HeadlessAsk | None = attrs.field(default=None, converter=read_headless_ask)
    """What counts when it wants a person asked and there is no client."""
    points: Mapping[str, PointPolicy] = attrs.field(factory=dict, converter=read_points, hash=False)
    """What is said about it at single points."""

    def __attrs_post_init__(self) -> None:
        """Refuse what does not go together: it would look as if it were in force."""
        problems = wrong_points(self.points, for_all=False)
        if self.guards and not self.required:
            hint = "set required = true, or take guards out"
            problems.append(PolicyError("only an extension that is required guards", where="guards", hint=hint))
        if self.required and not self.guards:
            hint = 'say what is refused while it is not there, such as guards = ["tool:*"]'
            problems.append(PolicyError("has no effect without guards", where="required", hint=hint))
        if self.on_absent is not None and not self.may_override_by_name:
            hint = f'it goes with grant = ["{OVERRIDE}:<name>"]'
            problems.append(PolicyError("there is no tool that this is about", where="on_absent", hint=hint))
        restart = self.restart_policy(RestartMode.NEVER)
        if restart.delay_s > restart.delay_max_s:
            hint = f"restart_delay_max_s is {restart.delay_max_s:g}" + (
                "" if self.restart_delay_max_s is not None else " unless set"
            )
            where = "restart_delay_s" if self.restart_delay_s is not None else "restart_delay_max_s"
            message = f"the first delay, {restart.delay_s:g} s, is longer than the longest"
            problems.append(PolicyError(message, where=where, hint=hint))
        raise_all(problems)

    @property
    def may_override_by_name(self) -> frozenset[str]:
        """Names of tools and commands that it is granted one by one."""
        return frozenset(name for word in self.grant if (name := word.partition(f"{OVERRIDE}:")[2]))

    def restart_policy(self, declared: RestartMode) -> RestartPolicy:
        """Its restarts in full; `declared` is what its manifest says, which counts where nothing is said here."""
        return RestartPolicy(
            mode=declared if self.restart is None else self.restart,
            budget=_BUILT_IN.budget if self.restart_budget is None else self.restart_budget,
            window_s=_BUILT_IN.window_s if self.restart_window_s is None else self.restart_window_s,
            delay_s=_BUILT_IN.delay_s if self.restart_delay_s is None else self.restart_delay_s,
            delay_max_s=_BUILT_IN.delay_max_s if self.restart_delay_max_s is None else self.restart_delay_max_s,
        )
