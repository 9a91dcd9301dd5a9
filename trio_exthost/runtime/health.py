"""The health of an instance: taken out of service after so many failures in a row, and put back by a probe.

A failure is a call without an answer in time, or with one that cannot be used. An error in an answer is an answer; a call
that its caller gave up says nothing. While it is out of service its records are out of the ledger, as if it were gone, but
what it had registered is kept, and what it sends meanwhile is staged: the probe begins with all of it back in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.effects import DisposeCause, Registration, Scope, ScopeBinding
from trio_exthost.errors import (
    CallAborted,
    CallError,
    CallTimedOut,
    LedgerError,
    MalformedReply,
    Overloaded,
    RegistrationRefused,
)
from trio_exthost.policy.circuit import Circuit, CircuitState
from trio_exthost.runtime.lifecycle import State
from trio_exthost.runtime.places import check_place

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


class Health:
    """The circuit of one instance, and what is kept of it while it is open."""

    def __init__(self, instance: Instance) -> None:
        """In good health."""
        self._instance = instance
        deadlines = instance.deadlines
        self._circuit = Circuit(
            threshold=instance.limits.circuit_failures,
            delay_s=deadlines.circuit_delay_s,
            delay_max_s=deadlines.circuit_delay_max_s,
        )
        self._is_probing = False
        self._kept: list[tuple[ScopeBinding, Registration]] = []

    @property
    def is_half_open(self) -> bool:
        """Whether its records are back and the next answer decides."""
        return self._circuit.state is CircuitState.HALF_OPEN

    @property
    def may_be_asked(self) -> bool:
        """Whether it can be given a call: always in good health, one at a time while it is half open."""
        state = self._circuit.state
        return state is CircuitState.CLOSED or (state is CircuitState.HALF_OPEN and not self._is_probing)

    @property
    def failures_in_a_row(self) -> int:
        """Calls since its last answer that got none, or none that can be used."""
        return self._circuit.failures

    def begin(self) -> int:
        """A call is issued; give what this returns to `ended`."""
        self._is_probing = self.is_half_open
        return self._circuit.epoch

    def ended(self, epoch: int, error: BaseException | None) -> None:
        """A call has ended, with an answer or this error."""
        if epoch == self._circuit.epoch:
            self._is_probing = False
        if isinstance(error, CallTimedOut | MalformedReply):
            if isinstance(error, MalformedReply):
                self._instance.notices.unusable_answer()
            if self._circuit.failed(epoch):
                self._trip(error)
        elif _is_answer(error) and self._circuit.succeeded(epoch) and not self._instance.is_ending:
            self._instance.reason = ""
            self._instance.move(State.READY)
            self._instance.report(Code.RECOVERED, Severity.INFO, "it answers again")

    def _trip(self, error: CallError) -> None:
        instance, wait_s = self._instance, self._circuit.wait_s
        if instance.is_ending or instance.nursery is None:
            return
        session = instance.session
        self._kept = [
            (record.binding, record.registration) for record in session.ledger.records_for_owner(instance.owner)
        ]
        if instance.state is State.READY:
            instance.move(State.TRIPPED)
        instance.reason = f"{self._circuit.failures} failures in a row, the last: {error.message}"
        instance.report(
            Code.TRIPPED, Severity.ERROR, f"{instance.reason}; it is out of service, and asked again in {wait_s:g} s"
        )
        session.registrations.dispose_owner(instance.owner, DisposeCause.FAULT)
        instance.nursery.start_soon(self._probe_later, wait_s, name=f"probe of {instance.name}")

    async def _probe_later(self, wait_s: float) -> None:
        await trio.sleep(wait_s)
        if not self._instance.is_ending:
            self._circuit.probe()
            self._restore()

    def _restore(self) -> None:
        """Put back one by one what it had registered, then do what it has asked for meanwhile."""
        kept, self._kept = self._kept, []
        self._instance.registrations = 0
        for binding, registration in kept:
            self._put_back(binding, registration)
        self._instance.registering.apply_staged()

    def drop(self, registration_id: int) -> None:
        """The extension takes back what is kept under this number of its own."""
        self._kept = [each for each in self._kept if each[1].value.registration_id != registration_id]

    def forget_scope(self, scope: Scope, id: str) -> None:
        """A run or request has ended, and with it what is kept for it; a later one may have its id."""
        self._kept = [each for each in self._kept if each[0].realm != (scope, id)]

    def _put_back(self, binding: ScopeBinding, registration: Registration) -> None:
        instance, number = self._instance, registration.value.registration_id
        try:
            check_place(instance.session, instance.owner, binding, registration)
            accepted = instance.session.registrations.accept(
                instance.owner, binding, registration, override_authorized=registration.override
            )
        except (LedgerError, RegistrationRefused) as exc:
            if number is not None:
                instance.declarations.reject(number, f"{registration.kind.value} {number}", exc)
            else:
                instance.session.registrar.refuse_registration(instance, registration, str(exc))
        else:
            if number is not None:
                instance.declarations.restored(number, accepted.handle)
            else:
                instance.registrations += 1


def _is_answer(error: BaseException | None) -> bool:
    """Whether a call that ended so was answered: what an answer says of itself is no matter of health."""
    return error is None or (isinstance(error, CallError) and not isinstance(error, CallAborted | Overloaded))
