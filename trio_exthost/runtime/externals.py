"""What some registrations change outside the ledger: models in the embedder's catalogue.

Applied after the ledger has accepted the record and undone when it leaves it; one that fails half way is undone at once,
so that the record can be rolled back with nothing left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import trio

from trio_exthost.effects import EffectKind, EffectRecord
from trio_exthost.errors import RegistrationRefused
from trio_exthost.runtime.models import ModelCatalogue, ProvidedModel


class Externals:
    """Keeps the catalogue of models in step with the providers in the ledger of one session."""

    def __init__(self, catalogue: ModelCatalogue, secrets: Container[str], on_failure: Callable[[str], None]) -> None:
        """Add to this catalogue.

        Args:
          catalogue: The embedder's.
          secrets: The names of secrets there are.
          on_failure: Told what the embedder's catalogue raised, beside the refusal that an extension gets.
        """
        self._catalogue = catalogue
        self._secrets = secrets
        self._on_failure = on_failure
        self._applied: dict[int, tuple[ProvidedModel, ...]] = {}

    def __len__(self) -> int:
        """Records that have something applied."""
        return len(self._applied)

    def apply(self, record: EffectRecord) -> None:
        """Do what the record asks for outside the ledger, wholly or not at all.

        Raises:
          RegistrationRefused: It cannot be done; nothing was.
        """
        if record.registration.kind is EffectKind.PROVIDER:
            self._add(record.handle, models_of(record.registration.value.descriptor))

    def change(self, old: EffectRecord, new: EffectRecord) -> None:
        """As `undo` of the old and `apply` of the new record of one handle; where that fails, all is as it was.

        Raises:
          RegistrationRefused: The new one cannot be applied.
        """
        self.undo(old.handle)
        try:
            self.apply(new)
        except RegistrationRefused:
            self.apply(old)
            raise

    def undo(self, handle: int) -> None:
        """Undo what a record did, newest first; nothing if it did nothing."""
        self._remove(self._applied.pop(handle, ()))

    def _add(self, handle: int, models: Sequence[ProvidedModel]) -> None:
        ref = models[0].credential_ref
        if ref is not None and ref not in self._secrets:
            raise RegistrationRefused(f"there is no secret {ref!r}", code="invalid_payload", field="credential_ref")
        for index, model in enumerate(models):
            if self._catalogue.has(model.provider, model.model):
                raise _refused(
                    f"models[{index}].id", f"there is a model {model.provider}/{model.model} already in the catalogue"
                )
        added: list[ProvidedModel] = []
        try:
            for model in models:
                self._catalogue.register(model)
                added.append(model)
        except (Exception, trio.Cancelled) as exc:  # whatever it raises, nothing is left half added
            self._remove(added)
            self._on_failure(f"the catalogue of models refused {model.provider}/{model.model}: {exc!r}")
            raise _refused(  # noqa: ASYNC104 - no cancellation of trio's comes out of what is synchronous
                f"models[{len(added)}]", f"the catalogue refused {model.provider}/{model.model}: {exc}"
            ) from exc
        self._applied[handle] = tuple(models)

    def _remove(self, models: Sequence[ProvidedModel]) -> None:
        for model in reversed(models):
            try:
                self._catalogue.unregister(model.provider, model.model)
            except (Exception, trio.Cancelled) as exc:  # noqa: BLE001, ASYNC103 - the others must go all the same
                self._on_failure(f"the catalogue of models did not take out {model.provider}/{model.model}: {exc!r}")


def models_of(descriptor: Any) -> tuple[ProvidedModel, ...]:
    """The models of a provider's descriptor, in its order; at least one."""
    return tuple(
        ProvidedModel(
            descriptor.provider_id,
            model.id,
            model,
            descriptor.base_url,
            descriptor.format,
            descriptor.credential_ref,
        )
        for model in descriptor.models
    )


def _refused(field: str, reason: str) -> RegistrationRefused:
    return RegistrationRefused(reason, code="conflict", field=field)
