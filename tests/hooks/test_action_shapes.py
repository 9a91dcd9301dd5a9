"""What each kind of action must hold, and how it is refused where it does not."""

from __future__ import annotations

import math

import pytest
from hook_samples import ACTIONS, OPTIONAL, USER, action, answers, contract, read, refused

from trio_exthost.hooks import Action, HookClass, HookEvent

TRANSFORM = contract(HookEvent.MESSAGE_END, HookClass.TRANSFORM)
REGISTER = contract(HookEvent.EXTENSION_LOAD, HookClass.REGISTER)

WRONG = [
    ("replace_input", {"message": "hello"}, "message: must be an object, not text"),
    ("replace_input", {"message": {"content": "x"}}, "message.role: is missing"),
    ("replace_input", {"message": {"role": "user"}}, "message.content: is missing"),
    (
        "replace_input",
        {"message": {"role": 1, "content": "x"}},
        "message.role: must be text that is not empty, not a nu",
    ),
    (
        "replace_input",
        {"message": {"role": "", "content": "x"}},
        "message.role: must be text that is not empty, not emp",
    ),
    (
        "replace_input",
        {"message": {"role": "user", "content": 1}},
        "message.content: must be text or an array, not a n",
    ),
    (
        "emit_command_outcome",
        {"outcome": {"status": "maybe"}},
        "outcome: is no outcome of a command: $.status: 'maybe'",
    ),
    ("emit_command_outcome", {"outcome": 3}, "outcome: is no outcome of a command"),
    ("patch_run_context", {"system_prompt": 1}, "system_prompt: must be text, not a number"),
    ("patch_run_context", {"messages": [USER, {}]}, "messages[1].role: is missing"),
    ("patch_run_context", {"options": {}}, "options: is not known here"),
    ("replace_context", {"messages": {}}, "messages: must be an array, not an object"),
    ("replace_context", {"messages": ["x"]}, "messages[0]: must be an object, not text"),
    ("replace_model_request", {"request": []}, "request: must be an object, not an array"),
    ("replace_provider_headers", {"request": None}, "request: must be an object, not null"),
    ("replace_provider_payload", {"request": "x"}, "request: must be an object, not text"),
    ("replace_text", {"text": None}, "text: must be text, not null"),
    ("replace_text", {"text": "abc", "hold": 4}, "hold: must be from 0 to 3, not 4"),
    ("replace_text", {"hold": -1}, "hold: must be from 0 to"),
    ("replace_text", {"hold": True}, "hold: must be a whole number"),
    ("replace_text", {"text": "\ud800"}, "text: holds half of a surrogate pair"),
    ("replace_message", {"message": None}, "message: must be an object, not null"),
    ("replace_arguments", {"arguments": "ls"}, "arguments: must be an object, not text"),
    ("replace_tool_result", {"result": "x"}, "result: must be an object, not text"),
    ("replace_tool_result", {"result": {}}, "result.content: must be an array, not nothing"),
    ("replace_tool_result", {"result": {"content": "x"}}, "result.content: must be an array, not text"),
    ("replace_tool_result", {"is_error": 1}, "is_error: must be true or false, not a number"),
    ("set_state", {"key": ""}, "key: must be 1 to 256 characters"),
    ("set_state", {"key": "k" * 257}, "key: must be 1 to 256 characters"),
    ("set_state", {"key": "a\nb"}, "key: must be 1 to 256 characters, none of control"),
    ("set_state", {"if_revision": -1}, "if_revision: must be from 0 to"),
    ("set_state", {"if_revision": "1"}, "if_revision: must be a whole number"),
    ("add_state", {"by": True}, "by: must be a number, not true or false"),
    ("add_state", {"by": "1"}, "by: must be a number, not text"),
    ("add_state", {"by": math.inf}, "by: must be finite, not inf"),
    ("delete_state", {"value": 1}, "value: is not known here"),
    ("append_custom_event", {"event_id": "\x85"}, "event_id: must be 1 to 256 characters"),
    ("append_custom_event", {"custom_type": "-a"}, "custom_type: must be 1 to 128 of"),
    ("append_custom_event", {"custom_type": "a."}, "custom_type: must be 1 to 128 of"),
    ("append_custom_event", {"custom_type": "a" * 129}, "custom_type: must be 1 to 128 of"),
    ("append_model_context", {"placement": "footer"}, "placement: must be one of system_prompt_section, message"),
    ("append_model_context", {"content": {}}, "content: must be text, not an object"),
    ("append_model_context", {"placement": "message"}, "content: must be an object, not text"),
    ("enqueue_follow_up", {"follow_up_id": "  "}, "follow_up_id: must be 1 to 128 characters"),
    ("enqueue_follow_up", {"follow_up_id": "f" * 129}, "follow_up_id: must be 1 to 128 characters"),
    ("enqueue_follow_up", {"message": {"content": "x"}}, "message.role: is missing"),
    ("enqueue_follow_up", {"message": "x"}, "message: must be an object, not text"),
    ("enqueue_follow_up", {"message": {"role": "system", "content": "x"}}, "message.role: must be user, not 'system'"),
    ("emit_diagnostic", {"code": " "}, "code: must not be blank"),
    ("emit_diagnostic", {"severity": "fatal"}, "severity: must be one of info, warning, error"),
    ("emit_diagnostic", {"message": "\n"}, "message: must not be blank"),
    ("emit_diagnostic", {"message": "é" * 8193}, "message: must have at most 16384 bytes, not 16386"),
    ("emit_diagnostic", {"details": []}, "details: must be an object, not an array"),
    ("emit_diagnostic", {"redacted_fields": [1]}, "redacted_fields[0]: must be text, not a number"),
    ("register_effect", {"registration_id": 0}, "registration_id: must be from 1 to"),
    ("register_effect", {"effect": {"kind": "toool", "descriptor": {}}}, "effect.kind: must be one of"),
    (
        "register_effect",
        {"effect": {"kind": "tool", "descriptor": 1}},
        "effect.descriptor: must be an object, not a nu",
    ),
    ("register_effect", {"effect": {"kind": "tool"}}, "effect.descriptor: is missing"),
    (
        "register_effect",
        {"effect": {"kind": "tool", "descriptor": {}, "binding": {"scope": "session", "id": "s"}}},
        "effect.binding.scope: must be one of",
    ),
    ("dispose_effect", {"registration_id": "1"}, "registration_id: must be a whole number"),
]
KEYS = [(kind, key) for kind, fields in ACTIONS.items() for key in fields]
NULLABLE = [("patch_run_context", "system_prompt"), ("replace_tool_result", "is_error"), ("set_state", "if_revision")]


@pytest.mark.parametrize(("kind", "changes", "says"), WRONG)
def test_what_is_wrong_in_an_action_is_refused_with_its_place(kind, changes, says):
    error = refused(answers(kind), action(kind, **changes))
    assert error.code == "invalid_payload"
    assert error.message.startswith(f"a hook: actions[0].{says}")


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_keys_that_must_be_there_are_missed_and_the_others_not(kind, key):
    raw = action(kind, **{key: ...})
    if key in OPTIONAL.get(kind, ()):
        assert read(answers(kind), raw) != read(answers(kind), action(kind))
    else:
        assert refused(answers(kind), raw).message == f"a hook: actions[0].{key}: is missing"


@pytest.mark.parametrize("kind", ACTIONS)
def test_keys_that_are_not_known_are_refused(kind):
    error = refused(answers(kind), action(kind, surprise=1))
    assert (error.code, error.message) == ("invalid_payload", "a hook: actions[0].surprise: is not known here")


@pytest.mark.parametrize(("kind", "key"), NULLABLE)
def test_null_says_nothing_where_it_may_stand(kind, key):
    assert read(answers(kind), action(kind, **{key: None})) is not None


def test_context_that_is_a_message_holds_an_object():
    raw = action("append_model_context", placement="message", content=USER)
    assert read(TRANSFORM, raw).common[0].fields["content"] == USER


def test_effect_needs_no_binding():
    raw = action("register_effect", effect={"kind": "hook", "descriptor": {"event": "input"}})
    assert read(REGISTER, raw).common[0].fields["effect"]["kind"] == "hook"


def test_a_text_may_be_held_as_a_whole_and_no_further():
    assert read(answers("replace_text"), action("replace_text", text="abc", hold=3)).primary is not None
    assert read(answers("replace_text"), {"kind": "replace_text", "text": ""}).primary == Action(
        "replace_text", {"text": ""}
    )
