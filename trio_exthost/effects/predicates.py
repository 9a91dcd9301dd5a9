"""Predicates: for which provider, which model and which client something applies."""

from __future__ import annotations

import attrs

from trio_exthost.effects.descriptors_fields import Fields

MAX_PREDICATE_NAMES = 256
"""Providers, or models, that one predicate can name."""

_KEYS = ("providers", "models", "requires_interactive_client")


@attrs.frozen
class Predicate:
    """All of its conditions must hold; one that names nothing holds always."""

    providers: tuple[str, ...] = ()
    """Ids of providers, exact; empty for any."""
    models: tuple[str, ...] = ()
    """Ids of models, exact; empty for any."""
    requires_interactive_client: bool = False
    """Whether there must be a client that can be asked."""

    def matches(self, provider: str, model: str, interactive: bool) -> bool:
        """Whether it holds.

        Args:
          provider: Id of the provider in use.
          model: Id of the model in use.
          interactive: Whether there is a client that can be asked.
        """
        return (
            (not self.providers or provider in self.providers)
            and (not self.models or model in self.models)
            and (interactive or not self.requires_interactive_client)
        )


ANY = Predicate()
"""The predicate that always holds."""


def read_predicate(parent: Fields, key: str) -> Predicate:
    """The predicate under a key of a descriptor; one that always holds if the key is absent.

    Raises:
      RegistrationRefused: It is not one; says where and why.
    """
    if not parent.has(key):
        return ANY
    fields = parent.within(key, _KEYS)
    return Predicate(
        providers=fields.texts("providers", MAX_PREDICATE_NAMES),
        models=fields.texts("models", MAX_PREDICATE_NAMES),
        requires_interactive_client=fields.flag("requires_interactive_client"),
    )
