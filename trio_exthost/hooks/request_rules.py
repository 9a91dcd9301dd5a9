"""What another request to the model must keep of the request before anybody was asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from trio_exthost.effects.descriptors_fields import Fields, noun, shown
from trio_exthost.hooks.action_shapes import check_message_list, check_number

_KEYS = (
    "provider", "model", "system_instructions", "messages", "visible_tools", "executable_tool_names", "generation_options",
)  # fmt: skip
_OPTIONS = ("temperature", "max_tokens", "reasoning", "thinking_budgets")
_MOST = 2**63 - 1
_MAX_ITEMS = 2**31  # a frame's size is the limit


def check_request(
    request: object, base: Mapping[str, Any], *, max_tokens: int | None, extension: str, at: str = "request"
) -> None:
    """Refuse a request that may not take the place of `base`.

    Provider and model stay, and so does what `base` holds beside the keys of a request, where it is there. It offers no tool
    that `base` does not, and the tools that may run are those that are offered.

    Args:
      request: As received.
      base: The request before anybody was asked. Tools that it does not name cannot be offered.
      max_tokens: The model's limit; None: unknown.
      extension: Who wants it, for the refusal.
      at: Its path, for the refusal.

    Raises:
      RegistrationRefused: With the path and `invalid_payload`.
    """
    own = own_keys(base)
    fields = Fields(request, (*_KEYS, *own), extension=extension, at=at)
    for key, value in own.items():
        if fields.has(key) and fields.value(key) != value:
            fields.fail(fields.at(key), "must stay as it was: it is the agent's own", hint="it may be left out")
    for key in ("provider", "model"):
        if fields.string(key) != base.get(key):
            fields.fail(
                fields.at(key), f"must stay {shown(str(base.get(key)))}, not become {shown(fields.string(key))}"
            )
    if fields.has("system_instructions") and fields.value("system_instructions") is not None:
        fields.string("system_instructions")
    check_message_list(fields, "messages")
    _check_tools(fields, base)
    _check_options(fields, base, max_tokens)


def own_keys(base: Mapping[str, Any]) -> dict[str, Any]:
    """What a request holds beside its keys: what only the agent knows of."""
    return {key: value for key, value in base.items() if key not in _KEYS}


def _check_tools(fields: Fields, base: Mapping[str, Any]) -> None:
    visible = _check_names(fields, _visible_names(fields), {each.get("name") for each in base.get("visible_tools", ())})
    names = fields.items("executable_tool_names", 0, _MAX_ITEMS)
    executable = _check_names(fields, names, set(base.get("executable_tool_names", ())))
    for name in sorted(visible ^ executable):
        there, here = ("visible_tools", "executable_tool_names")[:: 1 if name in visible else -1]
        fields.fail(fields.at(here), f"must name the tools of {there}, and {shown(name)} is only there")


def _visible_names(fields: Fields) -> Iterator[tuple[str, Any]]:
    """The name of each tool that is offered, with its path."""
    for where, value in fields.items("visible_tools", 0, _MAX_ITEMS):
        # What else a tool has is between the agent and its model.
        tool = Fields(value, value if isinstance(value, dict) else (), extension=fields.extension, at=where)
        yield tool.at("name"), tool.text("name")
        if tool.has("description"):
            tool.string("description")
        if tool.has("parameters") and not isinstance(tool.value("parameters"), dict | bool):
            fields.fail(tool.at("parameters"), "must be a JSON Schema: an object, true or false")


def _check_names(fields: Fields, names: Iterable[tuple[str, Any]], offered: Collection[str]) -> set[str]:
    """Names of tools, none of them twice and all of them offered before."""
    seen: set[str] = set()
    for where, name in names:
        if not isinstance(name, str):
            fields.fail(where, f"must be text, not {noun(name)}")
        if name in seen:
            fields.fail(where, f"{shown(name)} stands twice")
        if name not in offered:
            fields.fail(where, f"the request had no tool {shown(name)} there", hint="tools can only be taken away")
        seen.add(name)
    return seen


def _check_options(fields: Fields, base: Mapping[str, Any], max_tokens: int | None) -> None:
    before = base.get("generation_options", {})
    known = (*_OPTIONS, *(key for key in before if key not in _OPTIONS))
    options = fields.within("generation_options", known)
    if options.has("temperature"):
        check_number(options, "temperature")
    if options.has("max_tokens"):
        options.whole("max_tokens", 1, _MOST if max_tokens is None else max_tokens)
    if options.has("thinking_budgets"):
        budgets = options.value("thinking_budgets")
        known = tuple(budgets) if isinstance(budgets, dict) else ()
        levels = options.within("thinking_budgets", known)
        for level in known:
            levels.whole(level, 1, _MOST)
