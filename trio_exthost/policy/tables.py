"""What follows from a policy as tables made once: who guards what, which names are kept for whom, who wins a name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from trio_exthost.effects import EffectKind
from trio_exthost.effects.permissions import OVERRIDE
from trio_exthost.errors import PolicyError
from trio_exthost.policy.checks import key_path, moved, read_name
from trio_exthost.policy.extension_policy import ExtensionPolicy
from trio_exthost.policy.rules import Rule, Ruling
from trio_exthost.policy.settings import COMMAND_PREFIX, EVERY_TOOL, TOOL_POINT, TOOL_PREFIX, OnAbsent


@attrs.frozen
class Guardians:
    """Who guards what; a question costs one look-up, or two for a tool that nobody names."""

    _by_subject: Mapping[str, tuple[str, ...]] = attrs.field(alias="by_subject")

    def of(self, subject: str) -> tuple[str, ...]:
        """Who guards a tool (`tool:<name>`, `tool:*`) or a point, in the order of the policy."""
        found = self._by_subject.get(subject)
        if found is None and subject.startswith(TOOL_PREFIX):
            found = self._by_subject.get(EVERY_TOOL)
        return found or ()


def guardians_of(extensions: Mapping[str, ExtensionPolicy]) -> Guardians:
    """The table of these extensions. Who guards every tool guards each that is named, too."""
    guarded = {
        name: {EVERY_TOOL if each == TOOL_POINT else each for each in extension.guards}
        for name, extension in extensions.items()
    }
    subjects = {subject for each in guarded.values() for subject in each}
    return Guardians(
        {
            subject: tuple(
                name
                for name, each in guarded.items()
                if subject in each or (subject.startswith(TOOL_PREFIX) and EVERY_TOOL in each)
            )
            for subject in subjects
        }
    )


def reserved_by(extensions: Mapping[str, ExtensionPolicy]) -> Mapping[str, tuple[str, ...]]:
    """Names kept for those who may override them by name, where one of them leaves nothing behind when it is absent."""
    names = {
        name
        for extension in extensions.values()
        if extension.on_absent is not OnAbsent.RESTORE
        for name in extension.may_override_by_name
    }
    return MappingProxyType(
        {
            name: tuple(
                extension
                for extension, said in extensions.items()
                if name in said.may_override_by_name or OVERRIDE in said.grant
            )
            for name in sorted(names)
        }
    )


@attrs.frozen
class Winners:
    """Who gets a name that several want, and what is wrong with what was said about that."""

    _by_name: Mapping[tuple[EffectKind, str], Ruling[str]] = attrs.field(alias="by_name")
    problems: tuple[PolicyError, ...]
    """Mistakes, told with their keys."""

    def of(self, kind: EffectKind, name: str) -> Ruling[str] | None:
        """The winner of a tool's or command's name, if one is said."""
        return self._by_name.get((kind, _as_called(kind, name)))


def winners_of(prefer: Mapping[str, str]) -> Winners:
    """The table of these preferences: what is said about one kind comes before what is said about a name alone."""
    by_name: dict[tuple[EffectKind, str], Ruling[str]] = {}
    problems: list[PolicyError] = []
    for is_of_kind in (False, True):
        said: dict[tuple[EffectKind, str], Ruling[str]] = {}
        for key, winner in prefer.items():
            where = key_path("conflicts.prefer", str(key))
            kinds, written = _kinds(key)
            if (len(kinds) == 1) is not is_of_kind:
                continue
            try:
                name = read_name(written)
                read_name(winner)
            except PolicyError as exc:
                problems += moved(exc, where)
                continue
            for kind in kinds:
                place, ruling = (kind, _as_called(kind, name)), Ruling(winner, Rule.CONFLICTS, where)
                before = said.setdefault(place, ruling)
                if before.value != winner:
                    hint = "commands are compared without regard to case"
                    problems.append(PolicyError(f"{before.where} says another winner", where=where, hint=hint))
        by_name.update(said)
    return Winners(by_name, tuple(problems))


def _kinds(key: object) -> tuple[tuple[EffectKind, ...], object]:
    """What a key of `prefer` is about: the kinds, and the name, which is still to be checked."""
    for prefix, kind in ((TOOL_PREFIX, EffectKind.TOOL), (COMMAND_PREFIX, EffectKind.COMMAND)):
        if isinstance(key, str) and key.startswith(prefix):
            return (kind,), key.removeprefix(prefix)
    return (EffectKind.TOOL, EffectKind.COMMAND), key


def _as_called(kind: EffectKind, name: str) -> str:
    return name.casefold() if kind is EffectKind.COMMAND else name
