"""What an extension can register, and what of it can be overridden."""

from __future__ import annotations

import enum


class EffectKind(enum.StrEnum):
    """A kind of effect; keys of different kinds never collide."""

    SUBSCRIPTION = "subscription"
    """Is told about an event."""
    INTERCEPTION = "interception"
    """Is asked before something happens."""
    COMMAND = "command"
    """A command of the user's."""
    TOOL = "tool"
    """A tool of the model's."""
    PROVIDER = "provider"
    """A provider of models."""
    PROMPT_SECTION = "prompt_section"
    """A piece of the system prompt."""
    REQUEST_POLICY = "request_policy"
    """Shapes a request to the model."""
    CONTRIBUTION = "contribution"
    """Something the client shows."""
    HOOK = "hook"
    """Takes part in a life-cycle point."""
    MIGRATION = "migration"
    """Brings stored state from one schema to the next."""

    @property
    def can_be_overridden(self) -> bool:
        """Whether a record of this kind may take the place of another with the same key."""
        return self in _OVERRIDABLE


_OVERRIDABLE = frozenset({EffectKind.COMMAND, EffectKind.TOOL})
