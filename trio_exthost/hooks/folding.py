"""What a point is about, after a hook's answer: the value that the next hook sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from trio_exthost.errors import MalformedReply, RegistrationRefused
from trio_exthost.hooks.actions import Action, Batch
from trio_exthost.hooks.contract import PRIMARY
from trio_exthost.hooks.events import HookEvent
from trio_exthost.hooks.request_rules import check_request, own_keys

_Change: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def fold(
    event: HookEvent,
    payload: Mapping[str, Any],
    batch: Batch,
    *,
    base: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    extension: str,
    what: str,
) -> Mapping[str, Any]:
    """The payload after the primary action of an answer; the same object where the answer leaves it as it is.

    Nothing that is given is changed. The result shares its values with what is given.

    Args:
      event: The point.
      payload: As the hooks before it left it; of the point's schema, and so is the result.
      batch: The answer, from `read_batch`.
      base: The payload before anybody was asked, which `replace_model_request` is held against; None: it is `payload`.
      max_tokens: The model's limit, for `replace_model_request`; None: unknown.
      extension: Whose hook it is, for the error.
      what: What was asked, for the error.

    Raises:
      MalformedReply: What it wants put there cannot stand there; the message names the place. The value stays `payload`.
        `code` is invalid_payload, or invalid_action for an action that has no place at this point.
    """

    def refuse(where: str, reason: str, code: str, hint: str = "") -> NoReturn:
        raise MalformedReply(f"{what}: {where}: {reason}", extension=extension, code=code, hint=hint)

    action = batch.primary
    if action is None:
        return payload
    if action.kind not in PRIMARY.get(event, ()):
        refuse(action.kind, f"has no place in an answer of {event.value}", "invalid_action")
    if action.kind == "emit_command_outcome":
        return payload
    if action.kind == "replace_model_request":
        before = (payload if base is None else base).get("request", {})
        try:
            check_request(action.fields["request"], before, max_tokens=max_tokens, extension=extension)
        except RegistrationRefused as exc:
            refuse(exc.field, exc.reason, exc.code, exc.hint)
        return {**payload, "request": {**own_keys(before), **action.fields["request"]}}
    if action.kind == "replace_message":
        _check_role(payload, action, refuse)
    return _CHANGES[action.kind](payload, action.fields)


def _check_role(payload: Mapping[str, Any], action: Action, refuse: Callable[[str, str, str], NoReturn]) -> None:
    before, after = payload["message"]["role"], action.fields["message"]["role"]
    if after != before:
        refuse("message.role", f"must stay {before}, not become {after!r:.80}", "invalid_payload")


def _replaced(key: str, source: str | None = None) -> _Change:
    """Put one key of the action in the place of one of the payload."""
    return lambda payload, fields: {**payload, key: fields[source or key]}


def _run_context(payload: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(payload)
    if "system_prompt" in fields:
        changed["system_prompt"] = fields["system_prompt"]
    if "messages" in fields:
        changed["messages"] = [*payload.get("messages", ()), *fields["messages"]]
    return changed


def _tool_result(payload: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    is_error = fields.get("is_error")
    changed = {**payload, "result": fields["result"]}
    if is_error is not None:
        changed["is_error"] = is_error
    return changed


_CHANGES: Mapping[str, _Change] = MappingProxyType(
    {
        "replace_input": _replaced("message"),
        "patch_run_context": _run_context,
        "replace_context": _replaced("messages"),
        "replace_provider_headers": _replaced("request"),
        "replace_provider_payload": _replaced("request"),
        "replace_text": _replaced("text"),
        "replace_message": _replaced("message"),
        "replace_arguments": _replaced("args", "arguments"),
        "replace_tool_result": _tool_result,
    }
)
