"""Which rule decides in place of a member that gave no usable answer: a table, read from the top.

Two principles order it. What was said about one extension comes before what was said about a point. And nothing general
loosens a guard: only the operator, and only in words about that very extension, can make a failing guard count as consent.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

import attrs

from trio_exthost.policy.verdict import OnFailure

T = TypeVar("T")


class MemberKind(enum.StrEnum):
    """In which way an extension takes part in a chain."""

    INTERCEPTOR = "interceptor"
    """It subscribed to an interception; its author expects that a failure counts as consent."""
    GATE = "gate"
    """A gate of the hook contract: it exists to refuse."""
    TRANSFORM = "transform"
    """A transform of the hook contract: without its answer the value stays as it is."""


class Rule(enum.StrEnum):
    """What decided; the value is the name that explanations show."""

    CANNOT_BLOCK = "cannot_block"
    """Nothing can be refused at this point, so whatever anybody says, the value stays as it is."""
    EXTENSION_POINT = "extension_point"
    """The operator, about this extension at this point."""
    EXTENSION = "extension"
    """The operator, about this extension."""
    REQUIRED_GUARD = "required_guard"
    """The operator requires this extension as the guard of this."""
    MANIFEST = "manifest"
    """The extension's own manifest."""
    POINT_DEFAULT = "point_default"
    """The operator, about this point for all extensions."""
    DEFAULT = "default"
    """The operator, for everything."""
    CONFLICTS = "conflicts"
    """The operator, about a name that several want."""
    CHAIN_LIMIT = "chain_limit"
    """The host's limit for the whole chain cut a longer deadline."""
    HOST_CONFIG = "host_config"
    """The host's configuration, where the policy is silent."""
    INTERCEPTOR_DEFAULT = "interceptor_default"
    """Nobody said anything: an interceptor's failure is consent."""
    GATE_DEFAULT = "gate_default"
    """Nobody said anything: a gate's failure refuses."""
    TRANSFORM_DEFAULT = "transform_default"
    """Nobody said anything: a transform's failure keeps the value."""
    BUILT_IN = "built_in"
    """Nobody said anything: the value that is built in."""


@attrs.frozen
class Ruling(Generic[T]):
    """An answer of the policy, and what it rests on."""

    value: T
    """The answer."""
    rule: Rule
    """What decided."""
    where: str = ""
    """The key of the policy that says so (`extensions.sandbox.tool_call.on_failure`); empty where no key does."""

    def explain(self) -> str:
        """Value, rule and key, in a line: `block [extension_point: extensions.sandbox.tool_call.on_failure]`."""
        value = self.value.value if isinstance(self.value, enum.Enum) else self.value
        return f"{value} [{self.rule.value}{': ' + self.where if self.where else ''}]"


@attrs.frozen(kw_only=True)
class FailureCase:
    """All that the decision about a failure depends on. `None` is: said nothing."""

    can_block: bool
    """Whether anything can be refused at the point."""
    kind: MemberKind
    """How the member takes part."""
    extension_point: OnFailure | None = None
    """The operator about this extension at this point."""
    guards: bool = False
    """The extension is required, and guards what is being asked about."""
    manifest_blocks: bool = False
    """The manifest tightens to `block`."""
    point: OnFailure | None = None
    """The operator about this point."""


def _block_if(condition: bool) -> OnFailure | None:
    return OnFailure.BLOCK if condition else None


PRECEDENCE: tuple[tuple[Rule, Callable[[FailureCase], OnFailure | None]], ...] = (
    (Rule.CANNOT_BLOCK, lambda case: None if case.can_block else OnFailure.ALLOW),
    (Rule.EXTENSION_POINT, lambda case: case.extension_point),
    (Rule.REQUIRED_GUARD, lambda case: _block_if(case.guards)),
    (Rule.MANIFEST, lambda case: _block_if(case.manifest_blocks)),
    (Rule.POINT_DEFAULT, lambda case: case.point),
)
"""The rules about a failure, strongest first; each gives its answer, or None to leave it to the next."""

KIND_DEFAULTS: Mapping[MemberKind, tuple[Rule, OnFailure]] = MappingProxyType(
    {
        MemberKind.INTERCEPTOR: (Rule.INTERCEPTOR_DEFAULT, OnFailure.ALLOW),
        MemberKind.GATE: (Rule.GATE_DEFAULT, OnFailure.BLOCK),
        MemberKind.TRANSFORM: (Rule.TRANSFORM_DEFAULT, OnFailure.ALLOW),
    }
)
"""What counts where all rules are silent."""


def decide_failure(case: FailureCase) -> tuple[Rule, OnFailure]:
    """The strongest rule that says something, and what it says; `allow` leaves the value as it is."""
    for rule, answer in PRECEDENCE:
        if (said := answer(case)) is not None:
            return rule, said
    return KIND_DEFAULTS[case.kind]
