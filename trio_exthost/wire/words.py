"""The closed sets of the effect dialect, as the wire spells them. Another word is a wrong type and refused."""

from __future__ import annotations

import enum


class RegistrationKind(enum.StrEnum):
    """What `register` can register."""

    TOOL = "tool"
    """A tool of the model's."""
    COMMAND = "command"
    """A command of the user's."""
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


class BindingScope(enum.StrEnum):
    """What a registration can be bound to."""

    RUN = "run"
    """One run: it ends with it."""
    REQUEST = "request"
    """One call of the model within a run: it ends with it."""


class DecisionKind(enum.StrEnum):
    """What a gate can answer."""

    ABSTAIN = "abstain"
    """No opinion."""
    ALLOW = "allow"
    """It may happen."""
    ASK = "ask"
    """The user decides."""
    DENY = "deny"
    """It may not happen."""
    CANCEL = "cancel"
    """It may not happen, and what it belongs to is given up."""


class AskKind(enum.StrEnum):
    """What `ask_user` can ask for."""

    CONFIRM = "confirm"
    """Yes or no: a bool."""
    SELECT = "select"
    """One of the options: that string."""
    INPUT = "input"
    """A line of text: a string."""


class AskOutcome(enum.StrEnum):
    """What became of an `ask_user`."""

    ANSWERED = "answered"
    """`value` is the answer."""
    DECLINED = "declined"
    """The user would not answer."""
    CANCELLED = "cancelled"
    """It was given up: its time was over, or the invocation it belonged to ended."""
    UNAVAILABLE = "unavailable"
    """There is nobody to ask."""


class StateSpace(enum.StrEnum):
    """Where `state_commit` writes."""

    SESSION = "session"
    """What the extension keeps for this session."""
    EXTENSION = "extension"
    """What it keeps for all sessions."""


class RejectionCode(enum.StrEnum):
    """Why a registration or its update was refused."""

    CONFLICT = "conflict"
    """The key is taken."""
    OVERRIDE_DENIED = "override_denied"
    """It asks for an override without a grant."""
    PERMISSION_DENIED = "permission_denied"
    """It needs a permission that was not granted."""
    INVALID_PAYLOAD = "invalid_payload"
    """The frame or its descriptor is not one of this kind."""
    SCOPE_MISMATCH = "scope_mismatch"
    """It reaches further than the extension may, or is bound to what is not there."""
    RESOURCE_LIMIT = "resource_limit"
    """There are too many already."""
    EVENT_NOT_DISPATCHED = "event_not_dispatched"
    """A hook for a point that this embedder does not have."""


class DisposalCause(enum.StrEnum):
    """Why a registration is over."""

    HANDLE = "handle"
    """The extension disposed of it."""
    SCOPE = "scope"
    """Its run or request ended."""
    OWNER = "owner"
    """Its instance ended."""
    FAULT = "fault"
    """Its instance failed, or its circuit opened."""
    RELOAD = "reload"
    """A successor took over."""
    SHUTDOWN = "shutdown"
    """The session ended."""


class CancelReason(enum.StrEnum):
    """Why an invocation is given up."""

    CALLER = "caller"
    """Whoever asked does not want it any more."""
    DEADLINE = "deadline"
    """Its time is over."""
    RELOAD = "reload"
    """A successor takes over."""
    SHUTDOWN = "shutdown"
    """The extension is asked to end."""
