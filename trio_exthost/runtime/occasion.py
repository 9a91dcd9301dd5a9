"""What a chain is asked about, and at which points there are chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from trio_exthost.effects import Schema, compile_schema
from trio_exthost.errors import PayloadError
from trio_exthost.hooks import INTERCEPT_POINTS, LIFE_POINTS, WHOLE, Batch, Event, HookClass, HookEvent, InterceptPoint
from trio_exthost.runtime.views import HookMember, Member

if TYPE_CHECKING:
    from trio_exthost.runtime.run import Run

POINTS: Mapping[str, InterceptPoint] = MappingProxyType(
    {
        point.event.value: (
            InterceptPoint(point.event.value, True)
            if point.default_class is HookClass.GATE
            else InterceptPoint(point.event.value, False, WHOLE, None, True, dict)
        )
        for point in LIFE_POINTS.values()
        if point.default_class in (HookClass.GATE, HookClass.TRANSFORM)
    }
    | dict(INTERCEPT_POINTS)
)
"""The points at which extensions are asked, by name: zot's interceptions, and the gates and transforms of the hook contract.

At `tool_call` both are asked, in one chain."""


@attrs.frozen(kw_only=True, eq=False)
class Occasion:
    """What is asked about, and where it happens."""

    event: str
    """The point: one of `POINTS`."""
    payload: Mapping[str, Any]
    """The request's keys, in zot's words where the point has an interception, else as the point's payload schema says."""
    run: Run | None = None
    """The run it happens in."""
    run_id: str = ""
    """Its id, for the record, where there is no run; that of the payload if not given."""
    origin: str = ""
    """The extension that caused it; it is not asked about itself."""
    prompt: tuple[str | None, str] | None = None
    """An extension and its reason: a person is to be asked where nobody refuses."""
    is_dry: bool = False
    """Whether it is only tried: nothing is committed, and nothing is recorded."""
    message_id: str = ""
    """The model's message it is about, if any."""
    tool_call_id: str = ""
    """The tool call it is about, if any."""
    about: Mapping[str, Any] = attrs.field(factory=dict)
    """More keys that hooks are shown, beside those of the request."""
    max_tokens: int | None = None
    """The model's limit, for `before_model_request`."""
    first: Sequence[HookMember] = ()
    """Who is asked before everybody else: request policies."""
    stop: Callable[[], bool] = lambda: False
    """Whether nobody more need be asked; looked at after each answer."""
    check: Callable[[HookMember, Batch], None] = lambda _member, _batch: None
    """Shown each hook's actions when they come; raises `MalformedReply` where they cannot be taken."""
    took: Callable[[Batch], None] = lambda _batch: None
    """Told them once they count, before the next is asked: an answer may still be refused as a whole."""

    @property
    def id_of_run(self) -> str:
        """The run it happens in, for the record."""
        return self.run.id if self.run is not None else self.run_id or str(self.payload.get("agent_run_id", ""))


def shown_to_hooks(occasion: Occasion, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload as hooks see it: at `tool_call` not in zot's words."""
    if occasion.event == Event.TOOL_CALL:
        call = {"id": payload.get("tool_id", ""), "name": payload.get("tool_name", "")}
        return {"tool_call": call, "args": payload.get("tool_args", {}), **occasion.about}
    return {**payload, **occasion.about}


@cache
def _schema_of(event: HookEvent) -> Schema:
    """Compiled when the first hook is asked there: most points never are."""
    return compile_schema(LIFE_POINTS[event].payload_schema)


def check_payload(occasion: Occasion, members: Sequence[Member]) -> None:
    """Refuse a payload that hooks should be asked about and that is not as the point's schema says.

    Raises:
      PayloadError: Says where; nobody was asked. It is the embedder's, and no hook's failure.
    """
    event = next((each.hook.event for each in members if isinstance(each, HookMember)), None)
    if event is not None and (fault := _schema_of(event).explain(shown_to_hooks(occasion, occasion.payload))):
        raise PayloadError(
            f"the payload of {occasion.event} is not as its schema says: {fault}", hint="docs/hooks.md has it"
        )
