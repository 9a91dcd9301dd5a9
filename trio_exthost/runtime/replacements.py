"""What an answer puts in the place of what a point is about, and what may stand there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from trio_exthost.errors import MalformedReply
from trio_exthost.hooks import WHOLE, InterceptPoint
from trio_exthost.policy import Answer
from trio_exthost.wire import from_extension

if TYPE_CHECKING:
    from trio_exthost.runtime.instance import Instance


def check_size(answer: Answer, point: InterceptPoint, payload: Mapping[str, Any], member: Instance) -> None:
    """Refuse a replacement about which the next could not be asked: it would not fit into a frame.

    Raises:
      MalformedReply: It is larger than fits, and than what it takes the place of.
    """
    if not answer.replaces:
        return
    room = member.limits.frame_bytes // 16 * 15  # the rest is for what stands around it
    size = len(msgspec.json.encode(answer.replacement))
    if size <= room:
        return
    before = payload if point.value_key == WHOLE else payload.get(point.value_key or "")
    if size > len(msgspec.json.encode(before)):
        raise MalformedReply(
            f"{point.event}: with its answer there would be {size} bytes, of {room} that fit", extension=member.name
        )


def answer_from(frame: from_extension.EventInterceptResponse, point: InterceptPoint, member: Instance) -> Answer:
    """The answer of a frame to an interception.

    Raises:
      MalformedReply: It replaces the value by something that cannot stand there.
    """
    if (frame.block and point.can_block) or point.answer_key is None:
        return Answer(block=frame.block and point.can_block, reason=frame.reason)
    replacement = getattr(frame, point.answer_key)
    if replacement is None or (not replacement and not point.empty_replaces):
        return Answer(reason=frame.reason)
    if not isinstance(replacement, point.kind):
        raise MalformedReply(
            f"gave {point.answer_key} that is no {point.kind.__name__}: {replacement!r:.80}", extension=member.name
        )
    limit = member.limits.system_prompt_bytes
    if point.event == "before_agent_start" and len(str(replacement).encode()) > limit:
        raise MalformedReply(f"gave a system prompt of more than {limit} bytes", extension=member.name)
    return Answer(reason=frame.reason, replaces=True, replacement=replacement)
