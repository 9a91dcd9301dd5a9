"""A policy as it works out: a row per setting that is in force, with what it rests on, for a person or a program."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from trio_exthost.config import Deadlines
from trio_exthost.policy.checks import key_path
from trio_exthost.policy.extension_policy import ExtensionPolicy
from trio_exthost.policy.policy import Policy
from trio_exthost.policy.rules import MemberKind, Rule, Ruling
from trio_exthost.policy.settings import POINTS, STREAM_POINT, TOOL_POINT, TOOL_PREFIX, OnAbsent, RestartMode, Stream

Shown = str | float | bool | tuple[str, ...]


@attrs.frozen(kw_only=True)
class Declared:
    """What an extension itself says, as far as a policy has to know it."""

    blocks: bool = False
    """Its manifest tightens to `block`."""
    restart: RestartMode = attrs.field(default=RestartMode.NEVER, converter=RestartMode)
    """When its manifest wants it started again."""
    points: Mapping[str, MemberKind] = attrs.field(factory=dict, converter=MappingProxyType, hash=False)
    """Where it takes part, and how."""


@attrs.frozen
class PolicyRow:
    """One setting in force."""

    extension: str
    """Whom it is about; empty for all."""
    point: str
    """Where: a point, at `tool_call` also `tool:<name>`; a name under `prefer`; empty for everywhere."""
    setting: str
    """The setting's word in a file."""
    value: Shown
    """A word, seconds, a count, true or false, or sorted words."""
    rule: Rule
    """What decided."""
    where: str = ""
    """The key that says so; empty where none does."""


def effective_view(
    policy: Policy,
    declared: Mapping[str, Declared] = MappingProxyType({}),
    *,
    deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    text_stream: Stream | str = Stream.HOLD,
) -> tuple[PolicyRow, ...]:
    """What is in force: what holds for all, then the extensions by name, then the winners of names.

    Args:
      policy: What the operator says.
      declared: What the extensions say that are there, by name. Those that only the policy names are shown, too.
      deadlines: The host's own.
      text_stream: The host's own setting.
    """
    rows = list(_for_all(policy, deadlines, text_stream))
    for name in sorted({*policy.extensions, *declared}):
        rows += _for_extension(policy, name, declared.get(name, _SILENT), deadlines)
    for key in sorted(policy.prefer):
        where = key_path("conflicts.prefer", key)
        rows.append(PolicyRow(policy.prefer[key], key, "prefer", policy.prefer[key], Rule.CONFLICTS, where))
    return tuple(rows)


_SILENT = Declared()


def _row(extension: str, point: str, setting: str, ruling: Ruling[Any], value: Shown | None = None) -> PolicyRow:
    shown = ruling.value if value is None else value
    return PolicyRow(
        extension, point, setting, shown.value if isinstance(shown, enum.Enum) else shown, ruling.rule, ruling.where
    )


def _for_all(policy: Policy, deadlines: Deadlines, text_stream: Stream | str) -> Iterator[PolicyRow]:
    yield _row("", "", "headless_ask", policy.ask_without_client(""))
    yield _row("", STREAM_POINT, "stream", policy.stream(text_stream))
    for point in (point for point in POINTS if point in policy.defaults):
        if policy.defaults[point].on_failure is not None:
            yield _row("", point, "on_failure", policy.on_failure("", point))
        if policy.defaults[point].deadline_s is not None:
            yield _row("", point, "deadline_s", policy.deadline_s("", point, deadlines=deadlines))


def _for_extension(policy: Policy, name: str, declared: Declared, deadlines: Deadlines) -> Iterator[PolicyRow]:
    said = policy.extensions.get(name, ExtensionPolicy())
    path = key_path("extensions", name)
    for setting, value in (
        ("required", said.required),
        ("guards", tuple(sorted(said.guards))),
        ("grant", tuple(sorted(said.grant))),
    ):
        if value:
            yield PolicyRow(name, "", setting, value, Rule.EXTENSION, f"{path}.{setting}")
    if said.on_absent is not None:
        yield PolicyRow(name, "", "on_absent", said.on_absent.value, Rule.EXTENSION, f"{path}.on_absent")
    elif said.may_override_by_name:
        yield PolicyRow(name, "", "on_absent", OnAbsent.REFUSE.value, Rule.BUILT_IN)
    restart = policy.restart(name, declared.restart)
    yield _row(name, "", "restart", restart, restart.value.mode)
    if restart.value.mode is not RestartMode.NEVER:
        for part in ("budget", "window_s", "delay_s", "delay_max_s"):
            setting = f"restart_{part}"
            is_said = getattr(said, setting) is not None
            rule, where = (Rule.EXTENSION, f"{path}.{setting}") if is_said else (Rule.BUILT_IN, "")
            yield PolicyRow(name, "", setting, getattr(restart.value, part), rule, where)
    yield _row(name, "", "headless_ask", policy.ask_without_client(name))
    yield from _at_points(policy, name, declared, deadlines)


def _at_points(policy: Policy, name: str, declared: Declared, deadlines: Deadlines) -> Iterator[PolicyRow]:
    """Where it takes part, is spoken about, or guards: at points in their order, the tools it guards after `tool_call`."""
    said = policy.extensions.get(name, ExtensionPolicy())
    tools = sorted(each.removeprefix(TOOL_PREFIX) for each in said.guards if each.startswith(TOOL_PREFIX))
    named = {*declared.points, *said.points, *said.guards, *([TOOL_POINT] if tools else [])}
    for point in (point for point in POINTS if point in named):
        kind = declared.points.get(point, MemberKind.INTERCEPTOR)
        ruling = policy.on_failure(name, point, kind, manifest_blocks=declared.blocks)
        yield _row(name, point, "on_failure", ruling)
        for tool in tools if point == TOOL_POINT else []:
            if tool != "*":
                ruling = policy.on_failure(name, point, kind, tool=tool, manifest_blocks=declared.blocks)
                yield _row(name, f"{TOOL_PREFIX}{tool}", "on_failure", ruling)
        yield _row(name, point, "deadline_s", policy.deadline_s(name, point, kind, deadlines=deadlines))
