"""Where an effect is active, and whose it is."""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs
import msgspec

from trio_exthost.errors import MissingScopeId


class Scope(enum.IntEnum):
    """How far an effect reaches; a narrower scope ranks higher."""

    PROCESS = 0
    SESSION = 1
    RUN = 2
    REQUEST = 3

    @property
    def word(self) -> str:
        """The scope as the wire and the manifest spell it."""
        return self.name.lower()


Realm: TypeAlias = "tuple[Scope, str]"
"""The one run or request in which a bound effect is active; an unbound effect has None instead."""


@attrs.frozen
class ScopeBinding:
    """A scope, and for an effect of one run or one request the id of that run or request.

    An effect of scope RUN or REQUEST that was registered at set-up is *unbound*: it is active in every run or request
    while its owner lives. `setup` makes such a binding; every other binding to RUN or REQUEST needs an id.

    Raises:
      MissingScopeId: RUN or REQUEST without an id, or with an empty one.
      ValueError: PROCESS or SESSION with an id; a ledger belongs to one session, so there is nothing to tell apart.
    """

    scope: Scope
    """How far the effect reaches."""
    id: str | None = None
    """The run or the request; None when unbound."""
    unbound: bool = attrs.field(default=False, kw_only=True, eq=False, repr=False)
    """Says that RUN or REQUEST without an id is meant; `setup` sets it."""
    realm: Realm | None = attrs.field(init=False, eq=False, repr=False)
    """`(scope, id)`, or None when unbound: keys are unique within a realm."""
    place: Scope | Realm = attrs.field(init=False, eq=False, repr=False)
    """The realm, or the scope when unbound: what equal bindings are found under."""

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be meant, then work out the realm once."""
        bindable = self.scope >= Scope.RUN
        if self.id is not None and not bindable:
            msg = f"a binding to {self.scope.word} scope takes no id, got {self.id!r}"
            raise ValueError(msg)
        if bindable and not self.id and not (self.unbound and self.id is None):
            word = self.scope.word
            raise MissingScopeId(
                f"a binding to a {word} needs the id of that {word}, got {self.id!r}",
                hint=f"give the id, or ScopeBinding.setup(Scope.{self.scope.name}) for every {word} of the session",
            )
        realm = None if self.id is None else (self.scope, self.id)
        object.__setattr__(self, "realm", realm)
        object.__setattr__(self, "place", self.scope if realm is None else realm)

    @classmethod
    def setup(cls, scope: Scope) -> ScopeBinding:
        """The binding of what is registered at set-up: unbound, whatever the scope."""
        return _SETUP[scope]

    @classmethod
    def process(cls) -> ScopeBinding:
        """Active as long as the owner lives, declared for the whole process."""
        return _SETUP[Scope.PROCESS]

    @classmethod
    def session(cls) -> ScopeBinding:
        """Active as long as the owner lives, in its session."""
        return _SETUP[Scope.SESSION]

    @classmethod
    def run(cls, id: str | None) -> ScopeBinding:
        """Active in this run only, and ending with it.

        Raises:
          MissingScopeId: The id is None or empty.
        """
        return cls(Scope.RUN, id)

    @classmethod
    def request(cls, id: str | None) -> ScopeBinding:
        """Active in this request only, and ending with it.

        Raises:
          MissingScopeId: The id is None or empty.
        """
        return cls(Scope.REQUEST, id)

    def __str__(self) -> str:
        """As a person would say it: "session scope", "every run", "run 'r1'"."""
        if self.id is not None:
            return f"{self.scope.word} {self.id!r}"
        return f"every {self.scope.word}" if self.scope >= Scope.RUN else f"{self.scope.word} scope"


_SETUP = {scope: ScopeBinding(scope, unbound=True) for scope in Scope}


class EffectOwner(msgspec.Struct, frozen=True, cache_hash=True):
    """Who an effect belongs to: one incarnation of one extension in one session.

    Cleaning up is by incarnation, so the late end of an old process cannot remove what its successor registered.
    """

    extension_id: str
    """The extension's name."""
    session_id: str
    """The session the instance serves."""
    instance: int
    """The incarnation; a restart has another one."""
