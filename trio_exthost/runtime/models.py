"""The catalogue of models that providers of extensions add to: a Protocol for the embedder's own, and one in memory."""

from __future__ import annotations

from typing import Any, Protocol

import attrs


@attrs.frozen
class ProvidedModel:
    """A model that an extension's provider offers."""

    provider: str
    """The provider's id."""
    model: str
    """The model's id, unique with its provider."""
    details: Any = None
    """What was registered of it: an `effects.Model`."""
    base_url: str = ""
    """Where its provider is reached."""
    format: str = ""
    """The provider's API, as registered."""
    credential_ref: str | None = None
    """Name of the secret that its provider needs, or None."""


class ModelCatalogue(Protocol):
    """What a session asks of the embedder's catalogue of models. Called on the host's thread, synchronously."""

    def has(self, provider: str, model: str) -> bool:
        """Whether there is such a model."""

    def register(self, model: ProvidedModel) -> None:
        """Add it. Whatever this raises refuses the whole provider; what was added of it before is taken out again."""

    def unregister(self, provider: str, model: str) -> None:
        """Take it out; it was added by `register`."""


class InMemoryModelCatalogue:
    """A catalogue in a dictionary. Starts with what it is given; those models are never taken out by an extension."""

    def __init__(self, *models: ProvidedModel) -> None:
        """Hold these."""
        self._models: dict[tuple[str, str], ProvidedModel] = {}
        for model in models:
            self.register(model)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._models)

    def has(self, provider: str, model: str) -> bool:
        """Whether there is such a model."""
        return (provider, model) in self._models

    def get(self, provider: str, model: str) -> ProvidedModel | None:
        """The model, or None."""
        return self._models.get((provider, model))

    def models(self) -> tuple[ProvidedModel, ...]:
        """All models, in the order in which they were added."""
        return tuple(self._models.values())

    def register(self, model: ProvidedModel) -> None:
        """Add it.

        Raises:
          ValueError: There is such a model.
        """
        if self.has(model.provider, model.model):
            raise ValueError(f"there is a model {model.provider}/{model.model} already")
        self._models[model.provider, model.model] = model

    def unregister(self, provider: str, model: str) -> None:
        """Take it out.

        Raises:
          KeyError: There is no such model.
        """
        del self._models[provider, model]
