"""One instance takes over from another, in one step: all records of the old one for all that the new one has registered.

Nothing in here waits. Before the step the old one is told and asked, after it the new one; there is no third state. What of
the new one's registrations cannot be accepted is refused alone, as when it is loaded; but where a guard that the policy
requires, or a tool whose name it keeps for this extension, would get lost by that, nothing happens and the old one goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import msgspec

from trio_exthost.effects import EffectKind, Registration, Scope, ScopeBinding
from trio_exthost.errors import LedgerError, LoadError, RegistrationRefused
from trio_exthost.hooks import Event, HookClass
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.places import check_place
from trio_exthost.runtime.registration import ZOT_REGISTRATIONS, RegistrationFrame
from trio_exthost.runtime.replacing import refusals
from trio_exthost.wire import effects_from_extension as inbound
from trio_exthost.wire import effects_to_extension as outbound
from trio_exthost.wire.words import DisposalCause

if TYPE_CHECKING:
    from trio_exthost.runtime.declarations import DeclarationFrame
    from trio_exthost.runtime.instance import Instance

_ONCE = (EffectKind.SUBSCRIPTION, EffectKind.INTERCEPTION)
"""Of these a second one is no mistake: sets accumulate."""


@attrs.define(eq=False)
class _Planned:
    """A registration that is about to be accepted."""

    binding: ScopeBinding
    registration: Registration
    handle: int | None = None
    """Set once it is in the ledger."""

    @property
    def number(self) -> int | None:
        """The extension's own number of it, in the effect dialect."""
        number: int | None = self.registration.value.registration_id
        return number


class Succession:
    """What a successor has staged, worked out against the ledger as it will be."""

    def __init__(self, old: Instance, new: Instance) -> None:
        """Read what the new one has staged; what is wrong in itself is rejected at once."""
        self._old = old
        self._new = new
        self._session = new.session
        self._planned: list[_Planned] = []
        self._listening: set[tuple[EffectKind, str]] = set()
        self._answers: list[Callable[[], None]] = []
        for frame in new.registering.take_staged():
            if isinstance(frame, ZOT_REGISTRATIONS):
                self._plan(frame)
            else:
                self._plan_declared(frame)
        self._refuse_what_the_ledger_would()

    # --- the plan ---

    def _plan(self, frame: RegistrationFrame) -> None:
        new, registrar = self._new, self._session.registrar
        binding = ScopeBinding.setup(Scope.SESSION)
        for registration in registrar.registrations(new, frame):
            if registration.kind in _ONCE:
                if (registration.kind, registration.key) in self._listening:
                    continue
                self._listening.add((registration.kind, registration.key))
            if new.registrations >= new.limits.registrations:
                registrar.refuse_registration(new, registration, f"it already holds {new.registrations} registrations")
                return
            try:
                check_place(self._session, new.owner, binding, registration)
            except LedgerError as exc:
                registrar.refuse_registration(new, registration, str(exc))
            else:
                new.registrations += 1
                self._planned.append(_Planned(binding, registration))

    def _plan_declared(self, frame: DeclarationFrame) -> None:
        if isinstance(frame, inbound.Register):
            self._plan_register(frame)
        elif isinstance(frame, inbound.Update):
            self._plan_update(frame)
        else:
            planned = self._find(frame.registration_id)
            if planned is None:
                self._new.declarations.apply(frame)  # says what is wrong with it
            else:
                self._planned.remove(planned)
                self._new.declarations.release(frame.registration_id)
                self._answer(outbound.Disposed(frame.registration_id, DisposalCause.HANDLE))

    def _plan_register(self, frame: inbound.Register) -> None:
        declarations, number = self._new.declarations, frame.registration_id
        try:
            declarations.check_number(number, is_hook=frame.kind == EffectKind.HOOK.value)
            binding, registration = declarations.read(frame)
        except (RegistrationRefused, LedgerError) as exc:
            declarations.reject(number, f"{frame.kind} {number}", exc)
            return
        declarations.hold(number, 0, registration.kind)
        planned = _Planned(binding, registration)
        self._planned.append(planned)

        def answer() -> None:
            if planned.handle is not None:
                self._new.post(outbound.Registered(number, planned.handle))

        self._answers.append(answer)

    def _plan_update(self, frame: inbound.Update) -> None:
        number, planned = frame.registration_id, self._find(frame.registration_id)
        if planned is None:
            self._new.declarations.apply(frame)  # says what is wrong with it
            return
        old = planned.registration
        try:
            value = self._new.declarations.read_update(frame, planned.binding, old)
        except RegistrationRefused as exc:
            self._new.declarations.reject(number, f"update of {number}", exc)
            return
        planned.registration = msgspec.structs.replace(old, value=value)

        def answer() -> None:
            if planned.handle is not None:
                self._new.post(outbound.Updated(number, planned.handle))

        self._answers.append(answer)

    def _answer(self, frame: outbound.Disposed) -> None:
        self._answers.append(lambda: self._new.post(frame))

    def _find(self, number: int) -> _Planned | None:
        return next((each for each in self._planned if each.number == number), None)

    def _refuse_what_the_ledger_would(self) -> None:
        refused = refusals(self._session.ledger, self._old.owner, self._new.owner, self._placed())
        for place, error in refused.items():
            self._refuse(self._planned[place], error)
        self._planned = [each for place, each in enumerate(self._planned) if place not in refused]

    def _placed(self) -> list[tuple[ScopeBinding, Registration]]:
        return [(each.binding, each.registration) for each in self._planned]

    def _refuse(self, planned: _Planned, error: RegistrationRefused | LedgerError) -> None:
        new, number = self._new, planned.number
        if number is None:
            new.registrations -= 1
            self._session.registrar.refuse_registration(new, planned.registration, str(error))
        else:
            new.declarations.release(number)
            new.declarations.reject(number, f"{planned.registration.kind.value} {number}", error)

    # --- what must not get lost ---

    def lost(self) -> tuple[str, ...]:
        """What the policy wants of this extension, the old one has, and the new one would not."""
        policy, name = self._session.host.policy, self._new.name
        before = [record.registration for record in self._session.ledger.records_for_owner(self._old.owner)]
        after = [each.registration for each in self._planned]
        said = policy.extensions.get(name)
        subjects = said.guards if said is not None and said.required else ()
        guarded = {Event.TOOL_CALL.value if each.startswith("tool:") else each for each in subjects}
        points = sorted(guarded & (_points(before) - _points(after)))
        kept = {tool for tool, keepers in policy.reserved_tools().items() if name in keepers}
        tools = sorted(kept & (_overridden(before) - _overridden(after)))
        return (*(f"it does not intercept {point}" for point in points), *(f"it has no tool {tool}" for tool in tools))

    # --- the step ---

    def carry_out(self) -> None:
        """The new one takes over; from the next line on, it is the one that is told, asked and called.

        Raises:
          LoadError: The policy wants something of this extension that would get lost; nothing has changed.
        """
        if lost := self.lost():
            raise LoadError(
                f"{' and '.join(lost)}, which the policy wants of it and process {self._old.pid} does",
                extension=self._new.name,
                stage="guard",
                log_path=str(self._new.log.path),
                hint="unload it and load it, if that is meant",
            )
        session, old, new = self._session, self._old, self._new
        activated = session.activated_tools(old.owner)
        old.hand_over(new)
        session.loader.take_over(old, new)
        new.move(State.READY)
        outcomes = session.registrations.replace_owner(old.owner, new.owner, self._placed())
        for planned, outcome in zip(self._planned, outcomes, strict=True):
            if isinstance(outcome, int):
                self._accepted(planned, outcome)
            else:
                self._refuse(planned, outcome)
        session.activate_tools(activated)
        session.panels.close_all_of(old)
        session.panels.show_held(new)
        for answer in self._answers:
            answer()
        new.life.begin()

    def _accepted(self, planned: _Planned, handle: int) -> None:
        planned.handle = handle
        registration, name = planned.registration, self._new.name
        if planned.number is not None:
            self._new.declarations.hold(planned.number, handle, registration.kind)
        for point in _points([registration]):
            self._session.guards.registered(name, point)


def _points(registrations: list[Registration]) -> set[str]:
    """Where these have somebody asked."""
    points: set[str] = set()
    for each in registrations:
        descriptor = each.value.descriptor
        if each.kind is EffectKind.INTERCEPTION:
            points.add(descriptor)
        elif each.kind is EffectKind.HOOK and descriptor.hook_class in (HookClass.GATE, HookClass.TRANSFORM):
            points.add(descriptor.event.value)
    return points


def _overridden(registrations: list[Registration]) -> set[str]:
    return {each.key for each in registrations if each.kind is EffectKind.TOOL and each.override}
