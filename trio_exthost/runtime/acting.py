"""What a hook's answer does besides its primary action and what it stores; all of it was looked at before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_exthost.diagnostics import Code, Severity
from trio_exthost.hooks import DURABLE, Action, Batch
from trio_exthost.wire import effects_from_extension as inbound
from trio_exthost.wire.words import BindingScope, RegistrationKind

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance
    from trio_exthost.runtime.run import Run


def act(instance: Instance, batch: Batch, *, run: Run | None) -> None:
    """Do all common actions of a batch that was checked, in their order; what is to be stored has been by now.

    Never raises for what an extension sent.
    """
    for action in batch.common:
        if action.kind not in DURABLE:
            _ACTS[action.kind](instance, action, run)


def _follow_up(instance: Instance, action: Action, run: Run | None) -> None:
    fields = action.fields
    problem = instance.session.follow_ups.add(
        instance.name, str(fields["follow_up_id"]).strip(), fields["message"], after=run
    )
    if problem:
        instance.report(Code.SUBMIT_REFUSED, Severity.WARNING, f"follow-up {fields['follow_up_id']!r:.80}: {problem}")


def _diagnostic(instance: Instance, action: Action, _run: Run | None) -> None:
    fields = action.fields
    redacted = set(fields.get("redacted_fields", ()))
    details = {key: "***" if key in redacted else value for key, value in fields.get("details", {}).items()}
    about = f" {details}" if details else ""
    severity = Severity(fields["severity"])
    instance.report(Code.EXTENSION_SAYS, severity, f"{fields['code']}: {fields['message']}{about}")


def _register(instance: Instance, action: Action, _run: Run | None) -> None:
    effect = action.fields["effect"]
    binding = effect.get("binding")
    instance.registering.take(  # as a frame would be: not of one that is ending
        inbound.Register(
            action.fields["registration_id"],
            RegistrationKind(effect["kind"]),
            effect["descriptor"],
            inbound.Binding(BindingScope(binding["scope"]), binding["id"]) if binding is not None else None,
        )
    )


def _dispose(instance: Instance, action: Action, _run: Run | None) -> None:
    instance.registering.take(inbound.Dispose(action.fields["registration_id"]))


_ACTS = {
    "enqueue_follow_up": _follow_up,
    "emit_diagnostic": _diagnostic,
    "register_effect": _register,
    "dispose_effect": _dispose,
}
