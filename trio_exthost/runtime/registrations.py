"""The registration runtime of a session: its ledger, what follows from it outside, and the questions the agent asks it.

Every change goes the same way: the ledger, then what it means outside (models in a catalogue), then one publication of
all changes of that step. A registration whose outside part fails is rolled back before anybody has seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from trio_exthost.effects import (
    Accepted,
    Change,
    ChangeAction,
    DisposeCause,
    Disposed,
    EffectKind,
    EffectLedger,
    EffectOwner,
    EffectRecord,
    Registration,
    Scope,
    ScopeBinding,
    Updated,
)
from trio_exthost.errors import HostError, LedgerError, RegistrationRefused
from trio_exthost.runtime.extension_tools import ExtensionTool
from trio_exthost.runtime.externals import Externals
from trio_exthost.runtime.merging import Merged, merge
from trio_exthost.runtime.models import InMemoryModelCatalogue, ModelCatalogue

if TYPE_CHECKING:
    from trio_exthost.effects import Contribution, PromptSection, RequestPolicy
    from trio_exthost.runtime.tools import HostTool

T = TypeVar("T")


@attrs.frozen
class AcceptedAll:
    """What `accept_all` did."""

    handles: tuple[int, ...]
    """Of those that were accepted, in their order."""
    errors: tuple[HostError, ...]
    """Why the others were not, in their order."""


class Registrations:
    """What the extensions of one session have registered. For one thread; nothing in here waits."""

    def __init__(
        self,
        *,
        models: ModelCatalogue | None = None,
        secrets: Container[str] = (),
        reserved: Callable[[str | None, str | None], Mapping[str, Collection[str]]] = lambda _run_id, _request_id: {},
        publish: Callable[[Sequence[Change]], None] = lambda _changes: None,
        on_failure: Callable[[str], None] = lambda _why: None,
    ) -> None:
        """Hold nothing.

        Args:
          models: Where models of providers are added and taken out; a catalogue of its own if not given.
          secrets: Names of the secrets that providers may refer to.
          reserved: Names of tools that only these extensions may serve now, seen from a run and a request.
          publish: Told all changes of one step, once the step is complete.
          on_failure: Told what `models` raised.
        """
        self.ledger: EffectLedger = EffectLedger()
        self.models: ModelCatalogue = models if models is not None else InMemoryModelCatalogue()
        self._reserved = reserved
        self._externals = Externals(self.models, secrets, on_failure)
        self._publish = publish

    # --- changes ---

    def accept(
        self,
        owner: EffectOwner,
        binding: ScopeBinding,
        registration: Registration,
        *,
        override_authorized: bool = False,
    ) -> Accepted:
        """Take a registration in, with what it means outside the ledger; as `EffectLedger.accept`.

        Raises:
          LedgerError: As `EffectLedger.accept`; nothing changed.
          RegistrationRefused: What it means outside could not be done; nothing changed but one handle that was used up.
        """
        accepted = self.ledger.accept(owner, binding, registration, override_authorized=override_authorized)
        try:
            self._externals.apply(accepted.record)
        except RegistrationRefused:
            self.ledger.dispose(accepted.handle)
            raise
        self._publish(accepted.changes)
        return accepted

    def accept_all(
        self,
        owner: EffectOwner,
        registrations: Iterable[tuple[ScopeBinding, Registration]],
        *,
        may_override: Callable[[Registration], bool] = lambda _registration: False,
    ) -> AcceptedAll:
        """Take in one after the other; one that cannot be is refused alone.

        Args:
          owner: Whose they are.
          registrations: Each with its binding.
          may_override: Whether the operator lets the owner override what this registration asks for.
        """
        handles: list[int] = []
        errors: list[HostError] = []
        for binding, registration in registrations:
            authorized = registration.override and may_override(registration)
            try:
                handles.append(self.accept(owner, binding, registration, override_authorized=authorized).handle)
            except (LedgerError, RegistrationRefused) as exc:
                errors.append(exc)
        return AcceptedAll(tuple(handles), tuple(errors))

    def update(self, handle: int, value: Any) -> Updated:
        """Give a record another value in place, with what that means outside the ledger.

        Raises:
          LedgerError: There is no such record; nothing changed.
          RegistrationRefused: What it means outside could not be done; nothing changed.
        """
        updated = self.ledger.update(handle, value)
        try:
            self._externals.change(updated.previous, updated.record)
        except RegistrationRefused:
            self.ledger.update(handle, updated.previous.registration.value)
            raise
        self._publish(updated.changes)
        return updated

    def replace_owner(
        self, old: EffectOwner, new: EffectOwner, registrations: Sequence[tuple[ScopeBinding, Registration]]
    ) -> tuple[int | RegistrationRefused, ...]:
        """Swap all records of an instance for those of its successor, in one step with what they mean outside.

        What the old one did outside is undone before what the new one asks for is done, so that both may add the same model.
        One publication tells it all.

        Args:
          old: Whose records go.
          new: Who takes over.
          registrations: Each with its binding, in order; every override among them is authorized.

        Returns:
          For each its handle, or why what it means outside could not be done: then it is not in the ledger.

        Raises:
          LedgerError: As `EffectLedger.replace_owner` (`replacing.refusals` tells before); nothing changed.
        """
        replaced = self.ledger.replace_owner(old, new, registrations, override_authorized=True)
        for change in replaced.changes:
            if change.action is ChangeAction.DISPOSED:
                self._externals.undo(change.record.handle)
        changes = list(replaced.changes)
        outcomes: list[int | RegistrationRefused] = []
        for handle in replaced.handles:
            try:
                self._externals.apply(self.ledger.record(handle))
            except RegistrationRefused as exc:
                outcomes.append(exc)
                changes += self.ledger.dispose(handle).changes
            else:
                outcomes.append(handle)
        if changes:
            self._publish(changes)
        return tuple(outcomes)

    def dispose(self, handle: int, cause: DisposeCause = DisposeCause.HANDLE) -> Disposed:
        """Take a record out, with what it did outside; a second time is no error. As `EffectLedger.dispose`."""
        disposed = self.ledger.dispose(handle, cause)
        self._finish(disposed.changes)
        return disposed

    def dispose_owner(self, owner: EffectOwner, cause: DisposeCause = DisposeCause.OWNER) -> tuple[Change, ...]:
        """Take out all records of an instance, newest first."""
        return self._finish(self.ledger.dispose_owner(owner, cause))

    def dispose_scope(
        self, scope: Scope, id: str | None = None, cause: DisposeCause = DisposeCause.SCOPE
    ) -> tuple[Change, ...]:
        """Take out all records of a run, a request or a wider scope, newest first; as `EffectLedger.dispose_scope`."""
        return self._finish(self.ledger.dispose_scope(scope, id, cause))

    def dispose_all(self, cause: DisposeCause = DisposeCause.SHUTDOWN) -> tuple[Change, ...]:
        """Take out everything, newest first."""
        return self._finish(self.ledger.dispose_all(cause))

    def _finish(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        for change in changes:
            if change.action is ChangeAction.DISPOSED:
                self._externals.undo(change.record.handle)
        if changes:
            self._publish(changes)
        return changes

    # --- questions ---

    @property
    def active_count(self) -> int:
        """Records held, those that another overrides included."""
        return self.ledger.active_count

    def has_request_effects(self, *, run_id: str | None = None, request_id: str | None = None) -> bool:
        """Whether anything shapes requests to the model: a prompt section or a request policy."""
        return any(
            self.ledger.active_records(kind, run_id=run_id, request_id=request_id)
            for kind in (EffectKind.PROMPT_SECTION, EffectKind.REQUEST_POLICY)
        )

    def credential_ref(self, provider_id: str) -> str | None:
        """The name of the secret that a registered provider needs; None where it needs none, or is not registered."""
        record = self.ledger.active(EffectKind.PROVIDER, provider_id)
        return record.registration.value.descriptor.credential_ref if record is not None else None

    def is_active(self, owner: EffectOwner, registration_id: int) -> bool:
        """Whether the owner holds a record under this id of its own."""
        return any(
            record.registration.value.registration_id == registration_id
            for record in self.ledger.records_for_owner(owner)
        )

    def contributions(
        self, *, run_id: str | None = None, request_id: str | None = None
    ) -> tuple[tuple[EffectRecord, Contribution], ...]:
        """What the client should show, in order of acceptance."""
        records = self.ledger.active_records(EffectKind.CONTRIBUTION, run_id=run_id, request_id=request_id)
        return tuple((record, record.registration.value.descriptor) for record in records)

    def prompt_sections(
        self,
        provider: str,
        model: str,
        interactive: bool,
        *,
        run_id: str | None = None,
        request_id: str | None = None,
    ) -> tuple[tuple[EffectRecord, PromptSection], ...]:
        """Sections of the system prompt whose predicate holds: priority descending, then order of registration."""
        return self._matching(EffectKind.PROMPT_SECTION, provider, model, interactive, run_id, request_id)

    def request_policies(
        self,
        provider: str,
        model: str,
        interactive: bool,
        *,
        run_id: str | None = None,
        request_id: str | None = None,
    ) -> tuple[tuple[EffectRecord, RequestPolicy], ...]:
        """Request policies whose predicate holds: priority descending, then order of registration."""
        return self._matching(EffectKind.REQUEST_POLICY, provider, model, interactive, run_id, request_id)

    def _matching(
        self,
        kind: EffectKind,
        provider: str,
        model: str,
        interactive: bool,
        run_id: str | None,
        request_id: str | None,
    ) -> tuple[tuple[EffectRecord, Any], ...]:
        found = [
            (record, descriptor)
            for record in self.ledger.active_records(kind, run_id=run_id, request_id=request_id)
            if (descriptor := record.registration.value.descriptor).predicate.matches(provider, model, interactive)
        ]
        found.sort(key=lambda each: (-each[1].priority, each[0].registration.sequence))
        return tuple(found)

    def merge_tools(
        self, base: Iterable[HostTool], *, run_id: str | None = None, request_id: str | None = None
    ) -> Merged[HostTool]:
        """The agent's tools and those of extensions as one list of tools; changes nothing, and is the same each time.

        Overridden tools are replaced where they stand, the others follow in order of acceptance. A tool whose name the
        agent has and that overrides nothing is a clash, and left out; so is every tool of a name that is kept for an
        extension which does not serve it.
        """
        own = [(tool.name, tool) for tool in base]
        return self.merge(own, ExtensionTool, run_id=run_id, request_id=request_id)

    def merge(
        self,
        base: Iterable[tuple[str, T]],
        offer: Callable[[EffectRecord], T],
        *,
        run_id: str | None = None,
        request_id: str | None = None,
    ) -> Merged[T]:
        """Tools of the agent and of extensions as one list; changes nothing. See `merging.merge`."""
        records = self.ledger.active_records(EffectKind.TOOL, run_id=run_id, request_id=request_id)
        return merge(base, records, offer=offer, reserved=self._reserved(run_id, request_id))
