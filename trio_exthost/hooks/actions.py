"""A hook's answer: a decision and actions, checked as a whole before anything of it counts.

An action is a flat object: `{"kind": "replace_text", "text": "...", "hold": 0}`. One of `kind` and `payload` alone is read as
if the payload's keys stood beside the kind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from trio_exthost.effects.descriptors_fields import Fields, did_you_mean, noun, shown
from trio_exthost.errors import MalformedReply, RegistrationRefused
from trio_exthost.hooks.action_shapes import SHAPES
from trio_exthost.hooks.contract import DURABLE, Contract
from trio_exthost.hooks.events import HookClass
from trio_exthost.wire.effects_from_extension import Decision

MAX_ACTIONS = 64
"""Actions in one answer."""
WRITE_PERMISSION = "session.write"
"""Without it an extension stores nothing."""


@attrs.frozen
class Action:
    """One thing that a hook wants done."""

    kind: str
    """What: a word of the contract."""
    fields: Mapping[str, Any]
    """Its other keys, flat; of the values received, not copies."""


@attrs.frozen
class Batch:
    """An answer that may be applied; whether what it replaces can stand there is `fold`'s question."""

    decision: Decision | None
    """Of a gate: what it decided; None if it did not say."""
    primary: Action | None
    """What changes what the point is about, if anything."""
    common: tuple[Action, ...]
    """What it wants done besides, in the order in which it is to be done."""


def read_batch(
    contract: Contract,
    decision: Decision | None,
    actions: Sequence[Mapping[str, Any]],
    *,
    extension: str,
    what: str,
    granted: Collection[str] = (),
) -> Batch:
    """Check an answer against its contract: all of it is good, or none of it.

    Args:
      contract: Of the hook that answers.
      decision: As received; None if there was none.
      actions: As received.
      extension: Whose hook it is, for the error.
      what: What was asked, for the error.
      granted: The permissions the extension has.

    Raises:
      MalformedReply: It may not be applied. The message names the action by its index, and the place in it. `code` is
        invalid_action for a kind that has no place there, invalid_payload for what is wrong in one, permission_denied,
        resource_limit, or contract_violation for what the class may not do.
    """
    reading = _Reading(contract, extension, what, granted)
    if decision is not None and contract.hook_class is not HookClass.GATE:
        reading.fail("decision", "only a gate may decide", "contract_violation")
    if len(actions) > MAX_ACTIONS:
        reading.fail("actions", f"{len(actions)} in one answer, of {MAX_ACTIONS} allowed", "resource_limit")
    primary: Action | None = None
    common: list[Action] = []
    for index, raw in enumerate(actions):
        action = reading.action(raw, f"actions[{index}]")
        if action.kind not in contract.primary:
            common.append(action)
        elif primary is None:
            primary = action
        else:
            both = f"{primary.kind} stands before it, and an answer may hold one of {' or '.join(contract.primary)}"
            reading.fail(f"actions[{index}].kind", both, "contract_violation")
    return Batch(decision, primary, tuple(common))


class _Reading:
    """What all actions of one answer are held against."""

    def __init__(self, contract: Contract, extension: str, what: str, granted: Collection[str]) -> None:
        self._contract = contract
        self._extension = extension
        self._what = what
        self._granted = granted

    def fail(self, where: str, reason: str, code: str, hint: str = "") -> NoReturn:
        raise MalformedReply(f"{self._what}: {where}: {reason}", extension=self._extension, code=code, hint=hint)

    def action(self, raw: object, at: str) -> Action:
        if not isinstance(raw, Mapping):
            self.fail(at, f"must be an object, not {noun(raw)}", "invalid_action")
        kind = self._kind(raw, f"{at}.kind")
        nested = raw.get("payload")
        if len(raw) == 2 and isinstance(nested, Mapping):
            fields = dict(nested)
        else:
            fields = {key: value for key, value in raw.items() if key != "kind"}
        if kind == "emit_command_outcome" and "status" in fields:
            fields = {"outcome": fields}  # as flat as any other action's
        known, check = SHAPES[kind]
        try:
            check(Fields(fields, known, extension=self._extension, at=at))
        except RegistrationRefused as exc:
            self.fail(exc.field, exc.reason, exc.code, exc.hint)
        return Action(kind, fields)

    def _kind(self, raw: Mapping[str, Any], where: str) -> str:
        """The kind of an action, which must have a place in this answer."""
        kind, contract = raw.get("kind"), self._contract
        if not isinstance(kind, str):
            self.fail(where, f"must be text, not {noun(kind) if 'kind' in raw else 'nothing'}", "invalid_action")
        if kind not in SHAPES:
            near = did_you_mean(kind, sorted(contract.allowed_actions) or tuple(SHAPES))
            self.fail(where, f"there is no action {shown(kind)}", "invalid_action", near)
        if contract.hook_class is HookClass.OBSERVE:
            self.fail(where, f"{kind}: who observes may not want anything done", "contract_violation")
        if kind not in contract.allowed_actions:
            here = f"{contract.event.value} ({contract.hook_class.value})"
            hint = f"it may answer {', '.join(sorted(contract.allowed_actions))}"
            self.fail(where, f"{kind} has no place in an answer of {here}", "invalid_action", hint)
        if kind in DURABLE and WRITE_PERMISSION not in self._granted:
            hint = "name it in exthost.permissions of the manifest; it must be granted as well"
            self.fail(where, f"{kind} needs the permission {WRITE_PERMISSION}", "permission_denied", hint)
        return kind
