"""The operator's policy: what counts when an extension fails, what it may do, and what must not vanish with it.

Values only: they are told what a manifest says and what the host's configuration is, and look at nothing themselves. A
policy written in a program and the same policy read from a file are equal, and refused for the same mistakes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from types import MappingProxyType

import attrs

from trio_exthost.config import Deadlines
from trio_exthost.effects import EffectKind
from trio_exthost.effects.permissions import may_override
from trio_exthost.errors import PolicyError
from trio_exthost.policy.checks import key_path, moved, noun, raise_all, read_name, read_point, together
from trio_exthost.policy.extension_policy import (
    ExtensionPolicy,
    PointPolicy,
    RestartPolicy,
    read_headless_ask,
    read_points,
    wrong_points,
)
from trio_exthost.policy.rules import FailureCase, MemberKind, Rule, Ruling, decide_failure
from trio_exthost.policy.settings import (
    EVERY_TOOL,
    STREAM_POINT,
    TOOL_POINT,
    TOOL_PREFIX,
    HeadlessAsk,
    RestartMode,
    Stream,
)
from trio_exthost.policy.tables import Guardians, Winners, guardians_of, reserved_by, winners_of
from trio_exthost.policy.verdict import OnFailure


def _defaults(points: Mapping[str, PointPolicy]) -> Mapping[str, PointPolicy]:
    try:
        return read_points(points)
    except PolicyError as exc:
        raise together(moved(exc, "defaults")) from None


def _extensions(extensions: Mapping[str, ExtensionPolicy]) -> Mapping[str, ExtensionPolicy]:
    given: Mapping[str, object] = extensions
    for name, extension in given.items():
        if not isinstance(extension, ExtensionPolicy):
            where = key_path("extensions", str(name))
            raise PolicyError(f"must be an ExtensionPolicy, not {noun(extension)}", where=where)
    return MappingProxyType(dict(extensions))


def _frozen(names: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(names))


_NOTHING_SAID = ExtensionPolicy()
_NO_POINT = PointPolicy()


@attrs.frozen(kw_only=True)
class Policy:
    """What the operator decided. Immutable; `Policy()` says nothing, so that what is built in counts everywhere.

    Raises:
      PolicyError: Something in it is not usable; says which key, as a file would have it.
    """

    defaults: Mapping[str, PointPolicy] = attrs.field(factory=dict, converter=_defaults, hash=False)
    """What is said about points, for all extensions."""
    headless_ask: HeadlessAsk | None = attrs.field(default=None, converter=read_headless_ask)
    """What counts when an extension wants a person asked and there is no client."""
    extensions: Mapping[str, ExtensionPolicy] = attrs.field(factory=dict, converter=_extensions, hash=False)
    """What is said about single extensions, by their names."""
    prefer: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen, hash=False)
    """Who gets a name that several want: the name of a tool or command, or `tool:<name>` or `command:<name>`, to an
    extension."""
    _guardians: Guardians = attrs.field(init=False, eq=False, repr=False)
    _reserved: Mapping[str, tuple[str, ...]] = attrs.field(init=False, eq=False, repr=False)
    _winners: Winners = attrs.field(init=False, eq=False, repr=False)

    @_guardians.default
    def _make_guardians(self) -> Guardians:
        return guardians_of(self.extensions)

    @_reserved.default
    def _make_reserved(self) -> Mapping[str, tuple[str, ...]]:
        return reserved_by(self.extensions)

    @_winners.default
    def _make_winners(self) -> Winners:
        return winners_of(self.prefer)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be meant."""
        problems: list[PolicyError] = []
        for problem in wrong_points(self.defaults, for_all=True):
            problems += moved(problem, "defaults")
        for name in self.extensions:
            try:
                read_name(name)
            except PolicyError as exc:
                problems += moved(exc, key_path("extensions", str(name)))
        problems += self._winners.problems
        raise_all(problems)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Policy:
        """Read the policy in a file; see `parse_policy`. Blocks while it reads.

        Raises:
          PolicyError: It is not there, not readable, or not usable; says where.
        """
        from trio_exthost.policy.policy_file import load_policy  # noqa: PLC0415 - tomllib only for who has a file

        return load_policy(path)

    def to_toml(self) -> str:
        """The policy as the text of a file; what `parse_policy` makes of it is equal to this."""
        from trio_exthost.policy.policy_text import format_policy  # noqa: PLC0415 - as above

        return format_policy(self)

    # --- failures and deadlines ---------------------------------------------------------------------------------------

    def on_failure(
        self,
        extension: str,
        point: str,
        kind: MemberKind = MemberKind.INTERCEPTOR,
        *,
        tool: str | None = None,
        manifest_blocks: bool = False,
    ) -> Ruling[OnFailure]:
        """What counts when an extension that was asked, or should have been, gives no usable answer.

        Args:
          extension: Its name; it need not be one that the policy speaks about.
          point: Where it was asked.
          kind: How it takes part.
          tool: At `tool_call`, the tool that is to be called; None for one that only `tool:*` guards.
          manifest_blocks: Its manifest tightens to `block`.

        Returns:
          `allow` (the value stays as it is) or `block`, with the strongest rule of `PRECEDENCE` that says something.

        Raises:
          PolicyError: There is no such point.
        """
        can_block = read_point(point)
        subject = f"{TOOL_PREFIX}{tool or '*'}" if point == TOOL_POINT else point
        specific = self._said(extension).points.get(point, _NO_POINT).on_failure
        general = self.defaults.get(point, _NO_POINT).on_failure
        rule, value = decide_failure(
            FailureCase(
                can_block=can_block,
                kind=kind,
                extension_point=specific,
                guards=can_block and extension in self._guardians.of(subject),
                manifest_blocks=manifest_blocks,
                point=general,
            )
        )
        keys = {
            Rule.EXTENSION_POINT: f"{key_path('extensions', extension)}.{point}.on_failure",
            Rule.REQUIRED_GUARD: f"{key_path('extensions', extension)}.guards",
            Rule.POINT_DEFAULT: f"defaults.{point}.on_failure",
        }
        return Ruling(value, rule, keys.get(rule, ""))

    def deadline_s(
        self,
        extension: str,
        point: str,
        kind: MemberKind = MemberKind.INTERCEPTOR,
        *,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> Ruling[float]:
        """Seconds an extension has for its answer at a point; never more than `deadlines.chain_s`.

        Raises:
          PolicyError: There is no such point.
        """
        read_point(point)
        specific = self._said(extension).points.get(point, _NO_POINT).deadline_s
        general = self.defaults.get(point, _NO_POINT).deadline_s
        if specific is not None:
            key = f"{key_path('extensions', extension)}.{point}.deadline_s"
            ruling = Ruling(float(specific), Rule.EXTENSION_POINT, key)
        elif general is not None:
            ruling = Ruling(float(general), Rule.POINT_DEFAULT, f"defaults.{point}.deadline_s")
        else:
            seconds = deadlines.transform_s if kind is MemberKind.TRANSFORM else deadlines.intercept_s
            ruling = Ruling(seconds, Rule.HOST_CONFIG)
        if ruling.value > deadlines.chain_s:
            return Ruling(deadlines.chain_s, Rule.CHAIN_LIMIT, ruling.where)
        return ruling

    # --- guards -------------------------------------------------------------------------------------------------------

    def is_required(self, extension: str) -> bool:
        """Whether what the extension guards is refused while it is not there."""
        return self._said(extension).required

    def guards(self, subject: str) -> tuple[str, ...]:
        """The required extensions that guard something, in the order of the policy.

        Args:
          subject: `tool:<name>` for one call, `tool:*` or `tool_call` for who guards every tool, or another point.

        Raises:
          PolicyError: It is no tool and no point.
        """
        if not subject.startswith(TOOL_PREFIX):
            read_point(subject)
        return self._guardians.of(EVERY_TOOL if subject == TOOL_POINT else subject)

    # --- names --------------------------------------------------------------------------------------------------------

    def grants(self, extension: str) -> frozenset[str]:
        """The permission words that the operator grants the extension."""
        return self._said(extension).grant

    def may_override(self, extension: str, name: str) -> bool:
        """Whether the extension may override the tool or command of this name, as it is registered."""
        return may_override(name, self.grants(extension))

    def reserved_tools(self) -> Mapping[str, tuple[str, ...]]:
        """Names of tools that only these extensions may serve: while none of them does, calls are refused.

        A name is reserved once an extension may override it by name and nothing, or `refuse`, is said of its absence.
        """
        return self._reserved

    def winner(self, kind: EffectKind, name: str) -> Ruling[str] | None:
        """The extension that gets the name of a tool or command where several want it; None where nothing is said.

        Commands are compared without regard to case, as they are called.

        Raises:
          PolicyError: Nobody can be preferred for this kind.
        """
        if not kind.can_be_overridden:
            raise PolicyError(f"nobody can be preferred for a {kind}", hint="tools and commands have winners")
        return self._winners.of(kind, name)

    def unknown_extensions(self, known: Collection[str]) -> tuple[str, ...]:
        """Names that the policy speaks about and that are not `known`: a misspelt one guards nothing."""
        named = dict.fromkeys([*self.extensions, *self.prefer.values()])
        return tuple(name for name in named if name not in known)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def restart(self, extension: str, declared: RestartMode | str = RestartMode.NEVER) -> Ruling[RestartPolicy]:
        """When the extension is started again; the rule is the one about `mode`.

        Args:
          extension: Its name.
          declared: What its manifest says; counts where the policy says nothing.
        """
        said = self._said(extension)
        policy = said.restart_policy(RestartMode(declared))
        if said.restart is not None:
            return Ruling(policy, Rule.EXTENSION, f"{key_path('extensions', extension)}.restart")
        return Ruling(policy, Rule.MANIFEST if policy.mode is not RestartMode.NEVER else Rule.BUILT_IN)

    def ask_without_client(self, extension: str) -> Ruling[HeadlessAsk]:
        """What counts when the extension wants a person asked and there is no client (`headless_ask`)."""
        said = self._said(extension).headless_ask
        if said is not None:
            return Ruling(said, Rule.EXTENSION, f"{key_path('extensions', extension)}.headless_ask")
        if self.headless_ask is not None:
            return Ruling(self.headless_ask, Rule.DEFAULT, "defaults.headless_ask")
        return Ruling(HeadlessAsk.BLOCK, Rule.BUILT_IN)

    def stream(self, configured: Stream | str = Stream.HOLD) -> Ruling[Stream]:
        """What happens to assistant text while somebody may hide or replace it; `configured` is the host's own setting."""
        said = self.defaults.get(STREAM_POINT, _NO_POINT).stream
        if said is not None:
            return Ruling(said, Rule.POINT_DEFAULT, f"defaults.{STREAM_POINT}.stream")
        return Ruling(Stream(configured), Rule.HOST_CONFIG)

    def _said(self, extension: str) -> ExtensionPolicy:
        return self.extensions.get(extension, _NOTHING_SAID)
