"""A payload of every point, an action of every kind, and short ways to read answers."""

from __future__ import annotations

from typing import Any

import pytest

from trio_exthost.errors import MalformedReply
from trio_exthost.hooks import Batch, Contract, HookClass, HookEvent, contract_of, fold, read_batch

EXTENSION = "guard"
WHAT = "a hook"
SESSION_WRITE = frozenset({"session.write"})

USER = {"role": "user", "content": "hello"}
ASSISTANT = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
CALL = {"id": "c1", "name": "bash"}
REQUEST: dict[str, Any] = {
    "provider": "p",
    "model": "m",
    "system_instructions": "Be brief.",
    "messages": [USER],
    "visible_tools": [
        {"name": "bash", "description": "Runs.", "parameters": {"type": "object"}},
        {"name": "read", "parameters": True},
        {"name": "write"},
    ],
    "executable_tool_names": ["bash", "read", "write"],
    "generation_options": {
        "temperature": 0.5, "max_tokens": 100, "reasoning": "high", "thinking_budgets": {"high": 10}
    },
}  # fmt: skip
REASON = {"reason": "initial"}
BRANCH = {"target": {"kind": "branch", "from_entry_id": "e1", "to_entry_id": "e2"}}
METADATA: dict[str, Any] = {"metadata": {}}

PAYLOADS: dict[HookEvent, dict[str, Any]] = {
    HookEvent.EXTENSION_LOAD: REASON,
    HookEvent.SESSION_START: REASON,
    HookEvent.INPUT: {"message": USER},
    HookEvent.BEFORE_SESSION_SWITCH: BRANCH,
    HookEvent.SESSION_SWITCHED: {"target": {"kind": "session", "target_session_id": "s2"}},
    HookEvent.BEFORE_SESSION_FORK: {"branch_entry_id": "e1"},
    HookEvent.SESSION_FORKED: {"branch_entry_id": "e1", "target_session_id": "s2"},
    HookEvent.BEFORE_MODEL_SELECTION: {"provider": "p", "model": "m"},
    HookEvent.MODEL_SELECTED: {"provider": "p", "model": "m"},
    HookEvent.BEFORE_RUN: {"system_prompt": None, "messages": [USER], "options": {}},
    HookEvent.RUN_STARTED: METADATA,
    HookEvent.TURN_STARTED: {"step": 0, "metadata": {}},
    HookEvent.CONTEXT: {"messages": [USER, ASSISTANT]},
    HookEvent.BEFORE_MODEL_REQUEST: {"request": REQUEST},
    HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS: {"request": {"headers": {}}},
    HookEvent.BEFORE_PROVIDER_REQUEST_RAW: {"request": {"body": "x"}},
    HookEvent.PROVIDER_RESPONSE: {"response": {}},
    HookEvent.PROVIDER_REQUEST_FAILED: {"failure": {}},
    HookEvent.MESSAGE_START: {"message": ASSISTANT},
    HookEvent.MESSAGE_DELTA: {"message_id": "m1", "offset": 0, "text": "secret", "final": False},
    HookEvent.MESSAGE_UPDATE: {"message": ASSISTANT, "update_kind": "text"},
    HookEvent.MESSAGE_END: {"message": ASSISTANT},
    HookEvent.TOOL_CALL: {"tool_call": CALL, "args": {"command": "ls"}},
    HookEvent.TOOL_EXECUTION_START: {"tool_call": CALL, "tool_name": "bash", "args": {}},
    HookEvent.TOOL_EXECUTION_UPDATE: {"tool_call": CALL, "tool_name": "bash", "update": {}},
    HookEvent.TOOL_EXECUTION_END: {"tool_call": CALL, "tool_name": "bash", "result": {}, "is_error": False},
    HookEvent.TOOL_RESULT: {"tool_call": CALL, "args": {}, "result": {"content": []}, "is_error": False},
    HookEvent.TURN_COMPLETED: {"message": ASSISTANT, "tool_results": [{}]},
    HookEvent.RUN_ENDED: {"outcome": {"status": "completed"}},
    HookEvent.RUN_ERROR: {"category": "provider", "message": "no"},
    HookEvent.RUN_SETTLED: {"outcome": {"status": "completed"}},
    HookEvent.BEFORE_COMPACTION: {"algorithm": "summary", "from_hook": False},
    HookEvent.COMPACTION_SUCCEEDED: METADATA,
    HookEvent.COMPACTION_FAILED: METADATA,
    HookEvent.SESSION_SHUTDOWN: REASON,
    HookEvent.EXTENSION_UNLOAD: REASON,
}

ACTIONS: dict[str, dict[str, Any]] = {
    "replace_input": {"message": USER},
    "emit_command_outcome": {"outcome": {"status": "success", "message": "done"}},
    "patch_run_context": {"system_prompt": "Be kind.", "messages": [USER]},
    "replace_context": {"messages": [USER]},
    "replace_model_request": {"request": REQUEST},
    "replace_provider_headers": {"request": {"headers": {"a": "b"}}},
    "replace_provider_payload": {"request": {"body": "y"}},
    "replace_text": {"text": "s*****", "hold": 2},
    "replace_message": {"message": ASSISTANT},
    "replace_arguments": {"arguments": {"command": "ls -l"}},
    "replace_tool_result": {"result": {"content": [{"type": "text", "text": "x"}]}, "is_error": True},
    "set_state": {"key": "k", "value": None, "if_revision": 3},
    "add_state": {"key": "k", "by": -1.5},
    "delete_state": {"key": "k", "if_revision": None},
    "append_custom_event": {"event_id": "e", "custom_type": "a.b-c_d", "payload": [1]},
    "append_model_context": {"context_id": "c", "placement": "system_prompt_section", "content": "Mind the gap."},
    "enqueue_follow_up": {"follow_up_id": " f ", "message": USER},
    "emit_diagnostic": {
        "code": "c", "severity": "info", "message": "m", "details": {"a": 1}, "redacted_fields": ["a"]
    },
    "register_effect": {
        "registration_id": 1,
        "effect": {"kind": "tool", "descriptor": {}, "binding": {"scope": "run", "id": "r1"}},
    },
    "dispose_effect": {"registration_id": 1},
}  # fmt: skip
"""Each kind with every key it may have."""

OPTIONAL: dict[str, set[str]] = {
    "patch_run_context": {"system_prompt", "messages"},
    "replace_text": {"hold"},
    "replace_tool_result": {"is_error"},
    "set_state": {"if_revision"},
    "delete_state": {"if_revision"},
    "emit_diagnostic": {"details", "redacted_fields"},
}
"""Keys of these that may be left out."""


def contract(event: HookEvent, hook_class: HookClass) -> Contract:
    """The contract, which must be there."""
    found = contract_of(event, hook_class)
    assert found is not None
    return found


def answers(kind: str) -> Contract:
    """A contract with a place for this kind of action."""
    places = [found for event in HookEvent for each in HookClass if (found := contract_of(event, each)) is not None]
    return next(each for each in places if kind in each.allowed_actions)


def action(kind: str, **changes: Any) -> dict[str, Any]:
    """The sample with these changes; `...` takes a key out."""
    return {key: value for key, value in ({"kind": kind} | ACTIONS[kind] | changes).items() if value is not Ellipsis}


def read(under: Contract, *actions: Any, decision: Any = None, granted: Any = SESSION_WRITE) -> Batch:
    """An answer of these actions."""
    return read_batch(under, decision, actions, extension=EXTENSION, what=WHAT, granted=granted)


def refused(under: Contract, *actions: Any, **more: Any) -> MalformedReply:
    """The refusal of the same."""
    with pytest.raises(MalformedReply) as caught:
        read(under, *actions, **more)
    assert caught.value.extension == EXTENSION
    assert caught.value.message.startswith(f"{WHAT}: ")
    return caught.value


def folded(event: HookEvent, payload: Any, raw: dict[str, Any], **more: Any) -> Any:
    """The payload after an answer with this action."""
    batch = read(answers(raw["kind"]), raw)
    return fold(event, payload, batch, extension=EXTENSION, what=WHAT, **more)


def not_folded(event: HookEvent, payload: Any, raw: dict[str, Any], **more: Any) -> MalformedReply:
    """The refusal of the same."""
    with pytest.raises(MalformedReply) as caught:
        folded(event, payload, raw, **more)
    assert caught.value.extension == EXTENSION
    assert caught.value.message.startswith(f"{WHAT}: ")
    return caught.value
