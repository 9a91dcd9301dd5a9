"""Folding against a model: any sequence of answers, valid and not, ends in the value the model says."""

from __future__ import annotations

import copy
from typing import Any

from hook_samples import ACTIONS, EXTENSION, PAYLOADS, REQUEST, SESSION_WRITE, WHAT, action, contract
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import MalformedReply
from trio_exthost.hooks import HookClass, HookEvent, fold, read_batch
from trio_exthost.hooks.contract import PRIMARY
from trio_exthost.wire.effects_from_extension import Decision
from trio_exthost.wire.words import DecisionKind

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.sampled_from(["bash", "read", "write", "sudo"])


def messages(roles: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"role": roles, "content": texts | st.lists(st.just({"type": "text"}), max_size=2)})


any_message = messages(st.sampled_from(["user", "assistant", "system"]))
objects = st.dictionaries(texts, st.integers(), max_size=2)
requests = st.lists(names, max_size=4).flatmap(
    lambda chosen: st.fixed_dictionaries(
        {
            "provider": st.sampled_from(["p", "p", "p", "q"]),
            "messages": st.lists(any_message, max_size=2),
            "visible_tools": st.just([{"name": name} for name in chosen]),
            "executable_tool_names": st.sampled_from([chosen, chosen, ["bash"]]),
        }
    ).map(lambda changes: REQUEST | changes)
)
FIELDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "replace_input": st.fixed_dictionaries({"message": any_message}),
    "emit_command_outcome": st.just(ACTIONS["emit_command_outcome"]),
    "patch_run_context": st.fixed_dictionaries(
        {}, optional={"system_prompt": st.none() | texts, "messages": st.lists(any_message, max_size=2)}
    ),
    "replace_context": st.fixed_dictionaries({"messages": st.lists(any_message, max_size=3)}),
    "replace_model_request": st.fixed_dictionaries({"request": requests}),
    "replace_provider_headers": st.fixed_dictionaries({"request": objects}),
    "replace_provider_payload": st.fixed_dictionaries({"request": objects}),
    "replace_text": st.fixed_dictionaries({"text": texts}, optional={"hold": st.integers(0, 8)}),
    "replace_message": st.fixed_dictionaries({"message": any_message}),
    "replace_arguments": st.fixed_dictionaries({"arguments": objects}),
    "replace_tool_result": st.fixed_dictionaries(
        {"result": st.fixed_dictionaries({"content": st.lists(objects, max_size=2)})},
        optional={"is_error": st.none() | st.booleans()},
    ),
}

ASKED = {
    event: contract(event, HookClass.GATE if event is HookEvent.TOOL_CALL else HookClass.TRANSFORM) for event in PRIMARY
}
SPOILERS: list[Any] = [None, {}, {"kind": "nothing"}, action("dispose_effect"), action("set_state", key="")]


@st.composite
def answers_of(draw: st.DrawFn, event: HookEvent) -> tuple[Decision | None, list[Any]]:
    """An answer: none or some primary actions, common ones, and now and then what spoils it."""
    kinds = st.sampled_from(PRIMARY[event])
    raw: list[Any] = [
        {"kind": kind} | draw(FIELDS[kind]) for kind in draw(st.lists(kinds, max_size=2 if draw(st.booleans()) else 1))
    ]
    raw += [action(kind) for kind in draw(st.lists(st.sampled_from(["set_state", "emit_diagnostic"]), max_size=2))]
    if draw(st.integers(0, 4)) == 0:
        raw.append(draw(st.sampled_from(SPOILERS)))
    decision = draw(st.sampled_from([None, None, None, Decision(DecisionKind.ALLOW)]))
    return decision, draw(st.permutations(raw))


asked = st.sampled_from(sorted(PRIMARY)).flatmap(
    lambda event: st.tuples(st.just(event), st.lists(answers_of(event), max_size=6))
)


# --- the model: one key, whether it may be there, and what it becomes ---


def model(event: HookEvent, value: dict[str, Any], decision: Decision | None, raw: list[Any]) -> dict[str, Any]:
    primary = [each for each in raw if each and each.get("kind") in PRIMARY[event]]
    is_spoilt = (
        any(each in SPOILERS for each in raw)
        or len(primary) > 1
        or (decision is not None and event is not HookEvent.TOOL_CALL)
    )
    if is_spoilt or not primary:
        return value
    (only,) = primary
    return modelled(only, value)


def modelled(only: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    match only:
        case {"kind": "emit_command_outcome"}:
            return value
        case {"kind": "patch_run_context"}:
            more = {"messages": value["messages"] + only.get("messages", [])}
            return value | more | ({"system_prompt": only["system_prompt"]} if "system_prompt" in only else {})
        case {"kind": "replace_model_request", "request": request}:
            visible = [tool["name"] for tool in request["visible_tools"]]
            executable = request["executable_tool_names"]
            is_fine = (
                request["provider"] == "p"
                and len(set(visible)) == len(visible)
                and len(set(executable)) == len(executable)
                and set(visible) == set(executable) <= {"bash", "read", "write"}
            )
            return {"request": request} if is_fine else value
        case {"kind": "replace_message", "message": message}:
            return value | {"message": message} if message["role"] == value["message"]["role"] else value
        case {"kind": "replace_text", "text": text}:
            return value | {"text": text} if only.get("hold", 0) <= len(text) else value
        case {"kind": "replace_tool_result", "result": result}:
            is_error = value["is_error"] if only.get("is_error") is None else only["is_error"]
            return value | {"result": result, "is_error": is_error}
        case {"kind": "replace_arguments", "arguments": arguments}:
            return value | {"args": arguments}
        case _:
            return value | {key: each for key, each in only.items() if key != "kind"}


@given(asked)
def test_any_sequence_of_answers_ends_in_the_models_value(case):
    event, sequence = case
    base: Any = PAYLOADS[event]
    before, given_answers = copy.deepcopy(base), copy.deepcopy(sequence)
    value = expected = base
    for decision, raw in sequence:
        expected = model(event, expected, decision, raw)
        try:
            batch = read_batch(ASKED[event], decision, raw, extension=EXTENSION, what=WHAT, granted=SESSION_WRITE)
            value = fold(event, value, batch, base=base, extension=EXTENSION, what=WHAT)
        except MalformedReply:
            pass  # the model says as well that nothing is changed
        assert value == expected
    assert (base, sequence) == (before, given_answers), "nothing that is given is changed"
