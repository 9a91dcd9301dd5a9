"""What each kind of action must hold, key by key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from trio_exthost.effects import read_command_answer
from trio_exthost.effects.descriptors_fields import Fields, noun
from trio_exthost.wire.words import BindingScope, RegistrationKind

MAX_REGISTRATION_ID = 2**63 - 1
"""No extension counts further."""
MAX_REVISION = 2**63 - 1
"""No state has been changed more often."""

_SEVERITIES = ("info", "warning", "error")
_PLACEMENTS = ("system_prompt_section", "message")
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,256}")
_CUSTOM_TYPE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_MAX_ITEMS = 2**31  # a frame's size is the limit

Reader: TypeAlias = Callable[[Fields], None]


def check_object(fields: Fields, key: str) -> dict[str, Any]:
    """The value of a key that must be there, which must be an object of any keys."""
    return _object(fields, fields.value(key), fields.at(key))


def check_message(fields: Fields, value: object, where: str) -> Mapping[str, Any]:
    """A message: an object with a role, and a text or an array for its content."""
    message = _object(fields, value, where)
    for key in ("role", "content"):
        if key not in message:
            fields.fail(f"{where}.{key}", "is missing")
    role, content = message["role"], message["content"]
    if not isinstance(role, str) or not role:
        fields.fail(f"{where}.role", f"must be text that is not empty, not {noun(role) if role else 'empty text'}")
    if not isinstance(content, str | list):
        fields.fail(f"{where}.content", f"must be text or an array, not {noun(content)}")
    return message


def check_message_list(fields: Fields, key: str) -> None:
    """An array of messages."""
    for where, value in fields.items(key, 0, _MAX_ITEMS):
        check_message(fields, value, where)


def _object(fields: Fields, value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        fields.fail(where, f"must be an object, not {noun(value)}")
    return value


def _message(fields: Fields) -> None:
    check_message(fields, fields.value("message"), fields.at("message"))


def _outcome(fields: Fields) -> None:
    try:
        read_command_answer(fields.value("outcome"))
    except ValueError as exc:
        fields.fail(fields.at("outcome"), f"is no outcome of a command: {exc}")


def _run_context(fields: Fields) -> None:
    if fields.has("system_prompt") and fields.value("system_prompt") is not None:
        fields.string("system_prompt")
    if fields.has("messages"):
        check_message_list(fields, "messages")


def _messages(fields: Fields) -> None:
    check_message_list(fields, "messages")


def _request(fields: Fields) -> None:
    check_object(fields, "request")


def _tool_result(fields: Fields) -> None:
    result, where = check_object(fields, "result"), fields.at("result")
    if not isinstance(result.get("content"), list):
        what = noun(result["content"]) if "content" in result else "nothing"
        fields.fail(f"{where}.content", f"must be an array, not {what}")
    if fields.has("is_error") and fields.value("is_error") is not None:
        fields.flag("is_error")


def _text(fields: Fields) -> None:
    fields.whole("hold", 0, len(fields.string("text")), default=0)


def _arguments(fields: Fields) -> None:
    check_object(fields, "arguments")


def _id(fields: Fields, key: str) -> None:
    fields.matching(key, lambda text: _ID.fullmatch(text) is not None, "1 to 256 characters, none of control")


def _revision(fields: Fields) -> None:
    if fields.has("if_revision") and fields.value("if_revision") is not None:
        fields.whole("if_revision", 0, MAX_REVISION)


def _set_state(fields: Fields) -> None:
    _id(fields, "key")
    fields.value("value")
    _revision(fields)


def _add_state(fields: Fields) -> None:
    _id(fields, "key")
    check_number(fields, "by")


def check_number(fields: Fields, key: str) -> None:
    """A finite number."""
    value = fields.value(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields.fail(fields.at(key), f"must be a number, not {noun(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        fields.fail(fields.at(key), f"must be finite, not {value}")


def _delete_state(fields: Fields) -> None:
    _id(fields, "key")
    _revision(fields)


def _custom_event(fields: Fields) -> None:
    _id(fields, "event_id")
    wanted = "1 to 128 of A-Z a-z 0-9 . - _, a letter or digit at both ends"
    fields.matching("custom_type", lambda text: _CUSTOM_TYPE.fullmatch(text) is not None, wanted)
    fields.value("payload")


def _model_context(fields: Fields) -> None:
    _id(fields, "context_id")
    if fields.choice("placement", _PLACEMENTS) == "message":
        check_object(fields, "content")
    else:
        fields.string("content")


def _follow_up(fields: Fields) -> None:
    fields.matching(
        "follow_up_id", lambda text: 1 <= len(text.strip()) <= 128, "1 to 128 characters, without blanks around them"
    )
    message = check_message(fields, fields.value("message"), fields.at("message"))
    if message["role"] != "user":
        fields.fail(f"{fields.at('message')}.role", f"must be user, not {message['role']!r:.80}")


def _diagnostic(fields: Fields) -> None:
    fields.text("code")
    fields.choice("severity", _SEVERITIES)
    fields.text("message")
    if fields.has("details"):
        check_object(fields, "details")
    if fields.has("redacted_fields"):
        for where, value in fields.items("redacted_fields", 0, _MAX_ITEMS):
            if not isinstance(value, str):
                fields.fail(where, f"must be text, not {noun(value)}")


def _register(fields: Fields) -> None:
    _registration_id(fields)
    effect = fields.within("effect", ("kind", "descriptor", "binding"))
    effect.choice("kind", tuple(RegistrationKind))
    check_object(effect, "descriptor")
    if effect.has("binding"):
        binding = effect.within("binding", ("scope", "id"))
        binding.choice("scope", tuple(BindingScope))
        binding.string("id")


def _registration_id(fields: Fields) -> None:
    fields.whole("registration_id", 1, MAX_REGISTRATION_ID)


SHAPES: Mapping[str, tuple[tuple[str, ...], Reader]] = MappingProxyType(
    {
        "replace_input": (("message",), _message),
        "emit_command_outcome": (("outcome",), _outcome),
        "patch_run_context": (("system_prompt", "messages"), _run_context),
        "replace_context": (("messages",), _messages),
        "replace_model_request": (("request",), _request),
        "replace_provider_headers": (("request",), _request),
        "replace_provider_payload": (("request",), _request),
        "replace_text": (("text", "hold"), _text),
        "replace_message": (("message",), _message),
        "replace_arguments": (("arguments",), _arguments),
        "replace_tool_result": (("result", "is_error"), _tool_result),
        "set_state": (("key", "value", "if_revision"), _set_state),
        "add_state": (("key", "by"), _add_state),
        "delete_state": (("key", "if_revision"), _delete_state),
        "append_custom_event": (("event_id", "custom_type", "payload"), _custom_event),
        "append_model_context": (("context_id", "placement", "content"), _model_context),
        "enqueue_follow_up": (("follow_up_id", "message"), _follow_up),
        "emit_diagnostic": (("code", "severity", "message", "details", "redacted_fields"), _diagnostic),
        "register_effect": (("registration_id", "effect"), _register),
        "dispose_effect": (("registration_id",), _registration_id),
    }
)
"""Each kind of action: the keys it may have beside `kind`, and what checks them."""
