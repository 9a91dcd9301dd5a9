"""Event bodies that fit: what observers are told is bounded, and says so where something was cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from trio_exthost.config import Limits
from trio_exthost.runtime.results import ToolResult, bounded, cut_text
from trio_exthost.wire.from_extension import ContentBlock


def result_body(result: ToolResult) -> dict[str, Any]:
    """A tool's result as an event tells it."""
    body: dict[str, Any] = {
        "content": [block_body(block) for block in result.content],
        "is_error": result.is_error,
    }
    if result.truncated:
        body["truncated"] = True
    return body


def block_body(block: ContentBlock) -> dict[str, str]:
    """A content block; empty fields are left out, as on the wire."""
    return {key: value for key, value in attrs.asdict(block).items() if value}


def permission_body(tool_id: str, tool_name: str, decision: str, source: str, reason: str) -> dict[str, str]:
    """What was decided about a tool call before it ran; a reason only where there is one."""
    body = {"tool_id": tool_id, "tool_name": tool_name, "decision": decision, "source": source}
    return {**body, "stage": "pre_execution", **({"reason": reason} if reason else {})}


def fitting(payload: Mapping[str, Any], limits: Limits) -> Mapping[str, Any]:
    """The payload with its `text` and `result` cut to the limits; the same object where there is nothing to cut."""
    changed: dict[str, Any] = {}
    text = payload.get("text")
    if isinstance(text, str) and len(text.encode("utf-8", "surrogatepass")) > limits.event_body_bytes:
        changed = {"text": cut_text(text, limits.event_body_bytes), "truncated": True}
    result = payload.get("result")
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        blocks = tuple(ContentBlock(**block) for block in result["content"])
        cut = bounded(
            ToolResult(blocks, is_error=bool(result.get("is_error"))), limits.event_body_bytes, limits.event_blocks
        )
        if cut.truncated:
            changed["result"] = result_body(cut)
    return {**payload, **changed} if changed else payload
