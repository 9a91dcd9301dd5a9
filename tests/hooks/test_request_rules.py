"""What another request to the model must keep of the request before anybody was asked."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hook_samples import REQUEST, USER, action, folded, not_folded

from trio_exthost.hooks import HookEvent

EVENT = HookEvent.BEFORE_MODEL_REQUEST
PAYLOAD = {"request": REQUEST}
BASH, READ, WRITE = REQUEST["visible_tools"]


def request(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (REQUEST | changes).items() if value is not ...}


def replaced(payload: Any = PAYLOAD, *, base: Any = None, max_tokens: int | None = None, **changes: Any) -> Any:
    raw = action("replace_model_request", request=request(**changes))
    return folded(EVENT, payload, raw, base=base, max_tokens=max_tokens)["request"]


def refusal(payload: Any = PAYLOAD, *, base: Any = None, max_tokens: int | None = None, **changes: Any) -> str:
    raw = action("replace_model_request", request=request(**changes))
    error = not_folded(EVENT, payload, raw, base=base, max_tokens=max_tokens)
    assert error.code == "invalid_payload"
    return error.message.removeprefix("a hook: ")


FINE = [
    {},
    {"system_instructions": ...},
    {"system_instructions": None},
    {"system_instructions": ""},
    {"messages": []},
    {"messages": [USER, {"role": "tool", "content": [], "tool_call_id": "c1"}]},
    {"visible_tools": [], "executable_tool_names": []},
    {"visible_tools": [WRITE, BASH], "executable_tool_names": ["bash", "write"]},
    {"visible_tools": [{"name": "bash", "parameters": False, "cache": 1}], "executable_tool_names": ["bash"]},
    {"generation_options": {}},
    {"generation_options": {"temperature": 0, "max_tokens": 10**9, "thinking_budgets": {}}},
    {"generation_options": {"reasoning": {"effort": "low"}, "thinking_budgets": {"low": 1, "any word": 2}}},
]


@pytest.mark.parametrize("changes", FINE)
def test_request_may_be_another(changes):
    assert replaced(**changes) == request(**changes)


WRONG = [
    ({"surprise": 1}, "request.surprise: is not known here"),
    ({"provider": "q"}, 'request.provider: must stay "p", not become "q"'),
    ({"model": "n"}, 'request.model: must stay "m", not become "n"'),
    ({"provider": ...}, "request.provider: is missing"),
    ({"model": 1}, "request.model: must be text, not a number"),
    ({"system_instructions": 1}, "request.system_instructions: must be text, not a number"),
    ({"messages": ...}, "request.messages: is missing"),
    ({"messages": [USER, {"role": "user"}]}, "request.messages[1].content: is missing"),
    ({"visible_tools": ...}, "request.visible_tools: is missing"),
    ({"visible_tools": ["bash"]}, "request.visible_tools[0]: must be an object, not text"),
    ({"visible_tools": [{}]}, "request.visible_tools[0].name: is missing"),
    ({"visible_tools": [{"name": " "}]}, "request.visible_tools[0].name: must not be blank"),
    ({"visible_tools": [BASH, READ, BASH]}, 'request.visible_tools[2].name: "bash" stands twice'),
    ({"visible_tools": [{"name": "sudo"}]}, 'request.visible_tools[0].name: the request had no tool "sudo" there'),
    (
        {"visible_tools": [BASH | {"description": 1}]},
        "request.visible_tools[0].description: must be text, not a number",
    ),
    ({"visible_tools": [BASH | {"parameters": "x"}]}, "request.visible_tools[0].parameters: must be a JSON Schema"),
    ({"visible_tools": [BASH, READ]}, "request.visible_tools: must name the tools of executable_tool_names"),
    ({"executable_tool_names": ...}, "request.executable_tool_names: is missing"),
    ({"executable_tool_names": ["bash"]}, "request.executable_tool_names: must name the tools of visible_tools"),
    ({"executable_tool_names": [1]}, "request.executable_tool_names[0]: must be text, not a number"),
    ({"executable_tool_names": ["bash", "bash"]}, 'request.executable_tool_names[1]: "bash" stands twice'),
    ({"executable_tool_names": ["sudo"]}, 'request.executable_tool_names[0]: the request had no tool "sudo" there'),
    ({"generation_options": ...}, "request.generation_options: is missing"),
    ({"generation_options": {"top_k": 1}}, "request.generation_options.top_k: is not known here"),
    ({"generation_options": {"temperature": math.nan}}, "request.generation_options.temperature: must be finite"),
    ({"generation_options": {"temperature": "hot"}}, "request.generation_options.temperature: must be a number"),
    ({"generation_options": {"max_tokens": 0}}, "request.generation_options.max_tokens: must be from 1 to"),
    ({"generation_options": {"thinking_budgets": 1}}, "request.generation_options.thinking_budgets: must be an object"),
    (
        {"generation_options": {"thinking_budgets": {"low": 0}}},
        "request.generation_options.thinking_budgets.low: must be from 1 to",
    ),
]


@pytest.mark.parametrize(("changes", "says"), WRONG)
def test_request_that_may_not_stand_there_is_refused_with_the_place(changes, says):
    assert refusal(**changes).startswith(says)


def test_limit_of_the_model_holds():
    assert replaced(max_tokens=100)["generation_options"]["max_tokens"] == 100
    assert refusal(max_tokens=99).startswith("request.generation_options.max_tokens: must be from 1 to 99, not 100")


def test_tool_that_another_hook_took_away_may_come_back():
    narrowed = {"request": request(visible_tools=[READ], executable_tool_names=["read"])}
    assert replaced(narrowed, base=PAYLOAD) == REQUEST
    assert "the request had no tool" in refusal(narrowed)


def test_what_only_the_agent_knows_of_stays_and_may_be_left_out():
    base = {"request": REQUEST | {"endpoint": "https://here", "generation_options": {"top_k": 4}}}
    assert replaced(base, messages=[])["endpoint"] == "https://here"
    assert replaced(base, endpoint="https://here") == REQUEST | {"endpoint": "https://here"}
    assert refusal(base, endpoint="https://there").startswith("request.endpoint: must stay as it was")
    assert replaced(base, generation_options={"top_k": 5})["generation_options"] == {"top_k": 5}


@pytest.mark.parametrize("base", [{}, {"request": {}}])
def test_base_that_names_nothing_offers_nothing(base):
    assert refusal(base).startswith("request.provider: must stay")
