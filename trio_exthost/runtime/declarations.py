"""What one instance declares in the effect dialect: register, update, dispose, and what it is told of each.

A registration goes by the extension's own number, unique for the life of the instance. Which numbers were ever used is
kept as intervals: programs that count keep one, and one that does not is refused before they are many.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import (
    MAX_EFFECTS,
    REGISTRABLE,
    Change,
    ChangeAction,
    DisposeCause,
    EffectKind,
    KindTable,
    Realm,
    Registration,
    Scope,
    ScopeBinding,
    read_descriptor,
)
from trio_exthost.errors import LedgerError, RegistrationRefused
from trio_exthost.hooks import hook_rules
from trio_exthost.runtime.guards import overrides_tool
from trio_exthost.runtime.offers import offered
from trio_exthost.runtime.places import check_place
from trio_exthost.runtime.views import Entry
from trio_exthost.wire import effects_from_extension as inbound
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.words import BindingScope, DisposalCause, RegistrationKind, RejectionCode

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance

DeclarationFrame = inbound.Register | inbound.Update | inbound.Dispose


MAX_HOOKS = 256
"""Hooks one instance may hold at the same time."""
MAX_INTERVALS = 4096
"""Intervals of used numbers that are kept for one instance."""


class UsedNumbers:
    """A set of numbers that only grows, kept as disjoint intervals in order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        """Hold none."""
        self._starts: list[int] = []
        self._ends: list[int] = []  # the last number of each interval

    @property
    def intervals(self) -> int:
        """How many intervals it takes."""
        return len(self._starts)

    def __contains__(self, number: int) -> bool:
        """Whether it was added."""
        place = bisect_right(self._starts, number) - 1
        return place >= 0 and number <= self._ends[place]

    def add(self, number: int) -> None:
        """Add one that is not in there."""
        place = bisect_right(self._starts, number)
        joins_before = place > 0 and self._ends[place - 1] == number - 1
        joins_after = place < len(self._starts) and self._starts[place] == number + 1
        if joins_before and joins_after:
            self._ends[place - 1] = self._ends.pop(place)
            del self._starts[place]
        elif joins_before:
            self._ends[place - 1] = number
        elif joins_after:
            self._starts[place] = number
        else:
            self._starts.insert(place, number)
            self._ends.insert(place, number)


class Declarations:
    """The registrations one instance has made under numbers of its own."""

    def __init__(self, instance: Instance) -> None:
        """None yet."""
        self._instance = instance
        self._handles: dict[int, int] = {}
        self._hooks: set[int] = set()  # the numbers of those that are hooks
        self._kinds: KindTable = {**REGISTRABLE, EffectKind.HOOK: hook_rules(instance.session.points)}
        self._used = UsedNumbers()
        self.released: set[tuple[str, Realm | None]] = set()
        """Tools whose override it has disposed of by itself, each with the run or request it was for, if it was for one."""

    def __len__(self) -> int:
        """How many are in the ledger."""
        return len(self._handles)

    def knows(self, registration_id: int) -> bool:
        """Whether it has ever registered something under this number, be it gone; what was refused does not count."""
        return registration_id in self._used

    def apply(self, frame: DeclarationFrame) -> None:
        """Do what a frame asks for, and answer it."""
        if isinstance(frame, inbound.Register):
            self._register(frame)
        elif isinstance(frame, inbound.Update):
            self._update(frame)
        else:
            self._dispose(frame)

    def dispose(self, registration_id: int) -> None:
        """Take a registration of its own out of the ledger; nothing if it has gone."""
        handle = self._handles.get(registration_id)
        if handle is not None:
            self._instance.session.registrations.dispose(handle)
        else:
            self._instance.health.drop(registration_id)

    def on_change(self, change: Change) -> None:
        """A record of this instance changed: when it left the ledger, the extension is told why."""
        registration_id: int = change.record.registration.value.registration_id
        record = change.record
        if overrides_tool(record):
            if change.cause is DisposeCause.HANDLE:
                self.released.add((record.registration.key, record.binding.realm))
            elif change.action is ChangeAction.ACCEPTED:
                self.released.discard((record.registration.key, record.binding.realm))
        if change.action is ChangeAction.DISPOSED:
            self._hooks.discard(registration_id)
        if change.action is ChangeAction.DISPOSED and self._handles.pop(registration_id, None) is not None:
            assert change.cause is not None
            self._instance.post(outbound.Disposed(registration_id, DisposalCause(change.cause.value)))

    # --- frames ---

    def _register(self, frame: inbound.Register) -> None:
        number = frame.registration_id
        try:
            self.check_number(number, is_hook=frame.kind is RegistrationKind.HOOK)
            handle = self._accept(frame)
        except (RegistrationRefused, LedgerError) as exc:
            name = frame.descriptor.get("name")
            self.reject(number, f"{frame.kind} {number}" + (f" ({name!r:.80})" if isinstance(name, str) else ""), exc)
        else:
            self._instance.post(outbound.Registered(number, handle))

    def check_number(self, number: int, *, is_hook: bool) -> None:
        """Raise `RegistrationRefused` where nothing more can be registered, or not under this number."""
        if number in self._used:
            raise RegistrationRefused(
                f"{number} was used before by this instance", code="invalid_payload", field="registration_id"
            )
        if self._used.intervals >= MAX_INTERVALS:
            raise RegistrationRefused(
                "the numbers used have too many gaps: count up", code="resource_limit", field="registration_id"
            )
        if is_hook and len(self._hooks) >= MAX_HOOKS:
            raise RegistrationRefused(f"it already holds {MAX_HOOKS} hooks", code="resource_limit")
        if not is_hook and len(self._handles) - len(self._hooks) >= MAX_EFFECTS:
            raise RegistrationRefused(f"it already holds {MAX_EFFECTS} effects", code="resource_limit")

    def _accept(self, frame: inbound.Register) -> int:
        binding, registration = self.read(frame)
        session = self._instance.session
        accepted = session.registrations.accept(
            self._instance.owner, binding, registration, override_authorized=registration.override
        )
        self.hold(frame.registration_id, accepted.handle, registration.kind)
        if registration.kind is EffectKind.HOOK:
            session.guards.registered(self._instance.name, registration.value.descriptor.event.value)
        return accepted.handle

    def hold(self, number: int, handle: int, kind: EffectKind) -> None:
        """A registration is in the ledger under this handle; under 0, it is about to be."""
        if number not in self._used:
            self._used.add(number)
        self._handles[number] = handle
        if kind is EffectKind.HOOK:
            self._hooks.add(number)

    def release(self, number: int) -> None:
        """What was held under this number is not, and will not be, in the ledger."""
        self._handles.pop(number, None)
        self._hooks.discard(number)

    def read(self, frame: inbound.Register) -> tuple[ScopeBinding, Registration]:
        """What a frame registers, and where, as far as can be told without the ledger.

        Raises:
          RegistrationRefused: It may not be registered.
          LedgerError: Its name is taken, by what the ledger does not know.
        """
        session, instance = self._instance.session, self._instance
        binding = self._binding(frame.binding)
        admitted = read_descriptor(
            frame.kind, frame.descriptor, registrant=instance.registrant, binding=binding, kinds=self._kinds
        )
        is_hook = admitted.kind is EffectKind.HOOK
        registration = Registration(
            admitted.kind,
            # Many hooks of one extension may stand at one point.
            f"{admitted.key}:{frame.registration_id}" if is_hook else admitted.key,
            Entry(instance, offered(admitted.descriptor), frame.registration_id),
            session.next_sequence(),
            admitted.override,
        )
        check_place(session, instance.owner, admitted.binding, registration)
        return admitted.binding, registration

    def _binding(self, binding: inbound.Binding | None) -> ScopeBinding | None:
        """The run or request that is meant, which has to be open."""
        if binding is None:
            return None
        session = self._instance.session
        scope, is_open = {
            BindingScope.RUN: (Scope.RUN, binding.id in session.runs),
            BindingScope.REQUEST: (Scope.REQUEST, binding.id in session.requests),
        }[binding.scope]
        if not is_open:
            raise RegistrationRefused(
                f"no {binding.scope} {binding.id!r} is open", code="scope_mismatch", field="binding.id"
            )
        return ScopeBinding(scope, binding.id)

    def _update(self, frame: inbound.Update) -> None:
        number = frame.registration_id
        try:
            handle = self._replace(frame)
        except (RegistrationRefused, LedgerError) as exc:
            self.reject(number, f"update of {number}", exc)
        else:
            self._instance.post(outbound.Updated(number, handle))

    def _replace(self, frame: inbound.Update) -> int:
        number = frame.registration_id
        handle = self._handles.get(number)
        if handle is None:
            why = "was disposed of" if self.knows(number) else "was never made"
            raise RegistrationRefused(f"registration {number} {why}", code="invalid_payload", field="registration_id")
        registrations = self._instance.session.registrations
        record = registrations.ledger.record(handle)
        registrations.update(handle, self.read_update(frame, record.binding, record.registration))
        return handle

    def read_update(self, frame: inbound.Update, binding: ScopeBinding, old: Registration) -> Entry:
        """The new value of a registration.

        Raises:
          RegistrationRefused: It is no update of this one.
        """
        number = frame.registration_id
        admitted = read_descriptor(
            old.kind,
            frame.descriptor,
            registrant=self._instance.registrant,
            binding=binding if binding.realm is not None else None,
            kinds=self._kinds,
        )
        key = f"{admitted.key}:{number}" if admitted.kind is EffectKind.HOOK else admitted.key
        if key != old.key or admitted.override != old.override or admitted.binding != binding:
            raise RegistrationRefused(
                "an update keeps key, scope and override; dispose of it and register another",
                code="invalid_payload",
                field="descriptor",
            )
        return Entry(self._instance, offered(admitted.descriptor), number)

    def _dispose(self, frame: inbound.Dispose) -> None:
        if not self.knows(frame.registration_id):
            self._instance.report(
                Code.REGISTRATION_REFUSED,
                Severity.WARNING,
                f"dispose: registration {frame.registration_id} was never made",
            )
        self.dispose(frame.registration_id)

    def reject_malformed(self, number: int, message: str) -> None:
        """A register or update under this number that could not be read."""
        self._instance.post(outbound.Rejected(number, RejectionCode.INVALID_PAYLOAD, message))

    def restored(self, number: int, handle: int) -> None:
        """A registration that had gone with a fault is back, under another handle."""
        self._handles[number] = handle
        if self._instance.session.ledger.record(handle).registration.kind is EffectKind.HOOK:
            self._hooks.add(number)
        self._instance.post(outbound.Registered(number, handle))

    def reject(self, number: int, what: str, error: RegistrationRefused | LedgerError) -> None:
        """Tell the extension and the diagnostics why it was refused."""
        code, message = RejectionCode(error.code), str(error)
        self._instance.post(outbound.Rejected(number, code, message))
        self._instance.report(
            Code.REGISTRATION_REFUSED, Severity.WARNING, f"{what} is refused: {message} [{code.value}]"
        )
