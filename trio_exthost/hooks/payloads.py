"""What a hook is shown at each point: a JSON Schema (2020-12) of every payload.

The schemas say what is always there. A payload may hold more: an embedder adds what its agent knows, and a hook ignores
what it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from trio_exthost.hooks.events import HookEvent

JsonSchema: TypeAlias = dict[str, Any]

_TEXT: JsonSchema = {"type": "string"}
_FLAG: JsonSchema = {"type": "boolean"}
_OBJECT: JsonSchema = {"type": "object"}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}


def _object(required: JsonSchema, optional: JsonSchema | None = None) -> JsonSchema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _array(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


MESSAGE: JsonSchema = _object({"role": _TEXT, "content": {"type": ["string", "array"]}})
"""A message: a role, and a text or blocks of content."""

MODEL_REQUEST: JsonSchema = _object(
    {
        "provider": _TEXT,
        "model": _TEXT,
        "messages": _array(MESSAGE),
        "visible_tools": _array(
            _object({"name": _TEXT}, {"description": _TEXT, "parameters": {"type": ["object", "boolean"]}})
        ),
        "executable_tool_names": _array(_TEXT),
        "generation_options": _object(
            {},
            {
                "temperature": {"type": "number"},
                "max_tokens": {"type": "integer", "minimum": 1},
                "thinking_budgets": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
            },
        ),
    },
    {"system_instructions": {"type": ["string", "null"]}},
)
"""A request to the model: which one, what it sees, and the tools it may use."""

_TOOL_CALL = _object({"id": _TEXT, "name": _TEXT})
_TARGET: JsonSchema = {
    "oneOf": [
        _object({"kind": {"const": "branch"}, "from_entry_id": _TEXT, "to_entry_id": _TEXT}),
        _object({"kind": {"const": "session"}, "target_session_id": _TEXT}),
    ]
}
_REASON = _object({"reason": _TEXT})
_MESSAGE = _object({"message": MESSAGE})
_MODEL = _object({"provider": _TEXT, "model": _TEXT})
_OUTCOME = _object({"outcome": _object({"status": _TEXT})})
_METADATA = _object({"metadata": _OBJECT})
_RAW_REQUEST = _object({"request": _OBJECT})
_RESULT = _object({"content": {"type": "array"}})

PAYLOADS: Mapping[HookEvent, JsonSchema] = MappingProxyType(
    {
        HookEvent.EXTENSION_LOAD: _REASON,
        HookEvent.SESSION_START: _REASON,
        HookEvent.INPUT: _MESSAGE,
        HookEvent.BEFORE_SESSION_SWITCH: _object({"target": _TARGET}),
        HookEvent.SESSION_SWITCHED: _object({"target": _TARGET}),
        HookEvent.BEFORE_SESSION_FORK: _object({"branch_entry_id": _TEXT}),
        HookEvent.SESSION_FORKED: _object({"branch_entry_id": _TEXT, "target_session_id": _TEXT}),
        HookEvent.BEFORE_MODEL_SELECTION: _MODEL,
        HookEvent.MODEL_SELECTED: _MODEL,
        HookEvent.BEFORE_RUN: _object(
            {"system_prompt": {"type": ["string", "null"]}, "messages": _array(MESSAGE), "options": _OBJECT}
        ),
        HookEvent.RUN_STARTED: _METADATA,
        HookEvent.TURN_STARTED: _object({"step": _COUNT, "metadata": _OBJECT}),
        HookEvent.CONTEXT: _object({"messages": _array(MESSAGE)}),
        HookEvent.BEFORE_MODEL_REQUEST: _object({"request": MODEL_REQUEST}),
        HookEvent.BEFORE_PROVIDER_REQUEST_HEADERS: _RAW_REQUEST,
        HookEvent.BEFORE_PROVIDER_REQUEST_RAW: _RAW_REQUEST,
        HookEvent.PROVIDER_RESPONSE: _object({"response": _OBJECT}),
        HookEvent.PROVIDER_REQUEST_FAILED: _object({"failure": _OBJECT}),
        HookEvent.MESSAGE_START: _MESSAGE,
        HookEvent.MESSAGE_DELTA: _object({"message_id": _TEXT, "offset": _COUNT, "text": _TEXT, "final": _FLAG}),
        HookEvent.MESSAGE_UPDATE: _object({"message": MESSAGE, "update_kind": _TEXT}),
        HookEvent.MESSAGE_END: _MESSAGE,
        HookEvent.TOOL_CALL: _object({"tool_call": _TOOL_CALL, "args": _OBJECT}, {"assistant_message": MESSAGE}),
        HookEvent.TOOL_EXECUTION_START: _object({"tool_call": _TOOL_CALL, "tool_name": _TEXT, "args": _OBJECT}),
        HookEvent.TOOL_EXECUTION_UPDATE: _object({"tool_call": _TOOL_CALL, "tool_name": _TEXT, "update": _OBJECT}),
        HookEvent.TOOL_EXECUTION_END: _object(
            {"tool_call": _TOOL_CALL, "tool_name": _TEXT, "result": _OBJECT, "is_error": _FLAG}
        ),
        HookEvent.TOOL_RESULT: _object(
            {"tool_call": _TOOL_CALL, "args": _OBJECT, "result": _RESULT, "is_error": _FLAG}
        ),
        HookEvent.TURN_COMPLETED: _object({"message": MESSAGE, "tool_results": _array(_OBJECT)}),
        HookEvent.RUN_ENDED: _OUTCOME,
        HookEvent.RUN_ERROR: _object({"category": _TEXT, "message": _TEXT}),
        HookEvent.RUN_SETTLED: _OUTCOME,
        HookEvent.BEFORE_COMPACTION: _object({"algorithm": _TEXT, "from_hook": _FLAG}),
        HookEvent.COMPACTION_SUCCEEDED: _METADATA,
        HookEvent.COMPACTION_FAILED: _METADATA,
        HookEvent.SESSION_SHUTDOWN: _REASON,
        HookEvent.EXTENSION_UNLOAD: _REASON,
    }
)
"""The schema of each point's payload. They are shared: not to be changed."""
