"""Valid raw descriptors of every kind, and changes to them that may or may not be valid."""

from __future__ import annotations

import copy
import string

import pytest
import strategies
from hypothesis import strategies as st

from trio_exthost.effects import PERMISSIONS, Registrant, Scope, read_descriptor
from trio_exthost.errors import RegistrationRefused

EXTENSION = "guard"
NAME_CHARACTERS = string.ascii_letters + string.digits + "._-"
EVERYTHING = Registrant(
    extension_id=EXTENSION,
    scope=Scope.PROCESS,
    granted=[*PERMISSIONS, "secrets.read:key"],
    override_grants=["tools.override"],
    state_schema=2,
)

ANY_OBJECT = {"type": "object"}
MODEL = {"id": "m-1", "name": "M", "context_window": 1000, "max_tokens": 10}
NOTE = {"kind": "notification", "level": "info", "title": "Hm", "body": "So"}
BASE: dict[str, dict[str, object]] = {
    "tool": {"name": "look", "label": "Look", "description": "Looks.", "input_schema": ANY_OBJECT},
    "command": {"name": "deploy", "description": "Deploys.", "argument_schema": ANY_OBJECT},
    "provider": {
        "provider_id": "own",
        "base_url": "https://models.example/v1",
        "format": "openai_responses",
        "models": [MODEL],
    },
    "prompt_section": {"section_id": "style", "text": "Be brief."},
    "request_policy": {"policy_id": "trim"},
    "contribution": {"contribution_id": "note", "contribution": NOTE},
    "migration": {},
}
"""The least that each kind must say."""


def read(kind, **changes):
    """The descriptor of the least raw one with these changes; `...` takes a key out."""
    raw = {key: value for key, value in (BASE[kind] | changes).items() if value is not Ellipsis}
    return read_descriptor(kind, raw, registrant=EVERYTHING).descriptor


def refused(kind, code="invalid_payload", **changes):
    """The refusal of the same."""
    with pytest.raises(RegistrationRefused) as caught:
        read(kind, **changes)
    error = caught.value
    assert error.code == code
    assert error.extension == EXTENSION
    return error


names = st.text(NAME_CHARACTERS, min_size=1, max_size=128)
command_names = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?\Z")
texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20).filter(str.strip)
scopes = st.sampled_from(["process", "session", "run", "request"])
priorities = st.integers(-1_000_000, 1_000_000)
integers = st.integers(-(2**63), 2**64 - 1)
scalars = st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | strategies.text
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strategies.text, inner, max_size=3),
    max_leaves=8,
)
json_containers = st.lists(json_values, max_size=3) | st.dictionaries(strategies.text, json_values, max_size=3)

object_schemas = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "object"},
            {"type": ["string", "null"], "maxLength": 5, "pattern": "^[a-z]+$"},
            {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}},
            {"enum": [1, {"$ref": "http://data.example/"}]},
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "minimum": 0.5},
        ]
    ),
    lambda inner: (
        st.builds(lambda word, each: {word: [without_dialect(each)]}, st.sampled_from(["allOf", "anyOf"]), inner)
        | st.builds(lambda key, each: {"properties": {key: without_dialect(each)}}, strategies.text, inner)
    ),
    max_leaves=4,
)
schemas = st.booleans() | object_schemas


def without_dialect(schema):
    """`$schema` is for the top, and references are to the top."""
    return {} if "$schema" in schema or "$defs" in schema else schema


def objects(required, optional=None):
    """JSON objects with these keys."""
    return st.fixed_dictionaries(required, optional=optional or {})


predicates = objects(
    {},
    {
        "providers": st.lists(texts, max_size=3),
        "models": st.lists(texts, max_size=3),
        "requires_interactive_client": st.booleans(),
    },
)


@st.composite
def models(draw):
    window = draw(st.integers(1, 2**32 - 1))
    return draw(
        objects(
            {"id": names, "name": texts, "context_window": st.just(window), "max_tokens": st.integers(1, window)},
            {
                "reasoning": st.booleans(),
                "input": st.lists(st.sampled_from(["text", "image"]), min_size=1, unique=True),
            },
        )
    )


contents = st.one_of(
    objects(
        {
            "kind": st.just("notification"),
            "level": st.sampled_from(["info", "success", "warning", "error"]),
            "title": texts,
            "body": texts,
        }
    ),
    objects({"kind": st.just("status_item"), "label": texts, "value": texts}, {"detail": texts}),
    objects({"kind": st.just("command"), "command": command_names}),
    objects({"kind": st.just("detail_panel"), "title": texts, "data": json_containers}),
    objects(
        {"kind": st.just("form_action"), "title": texts, "schema": object_schemas, "submit_command": command_names}
    ),
)

BY_KIND = {
    "tool": objects(
        {"name": names, "label": texts, "description": texts, "input_schema": schemas},
        {
            "result_schema": schemas,
            "permission": st.sampled_from(["allow", "prompt", "block"]),
            "scope": scopes,
            "override": st.booleans(),
        },
    ),
    "command": objects(
        {"name": command_names, "description": texts, "argument_schema": object_schemas},
        {"label": texts, "availability": predicates, "scope": scopes, "override": st.booleans()},
    ),
    "provider": objects(
        {
            "provider_id": names,
            "base_url": st.sampled_from(["https://models.example/v1", "http://127.0.0.1:8080", "http://[::1]:1/"]),
            "format": st.sampled_from(["openai_chat_completions", "openai_responses", "anthropic_messages"]),
            "models": st.lists(models(), min_size=1, max_size=3, unique_by=lambda model: model["id"]),
        },
        {"credential_ref": st.just("key"), "scope": scopes},
    ),
    "prompt_section": objects(
        {"section_id": names, "text": texts}, {"priority": priorities, "predicate": predicates, "scope": scopes}
    ),
    "request_policy": objects({"policy_id": names}, {"priority": priorities, "predicate": predicates, "scope": scopes}),
    "contribution": objects(
        {"contribution_id": names, "contribution": contents}, {"extension_id": st.just(EXTENSION), "scope": scopes}
    ),
    "migration": objects({}),
}

valid = st.sampled_from(sorted(BY_KIND)).flatmap(lambda kind: BY_KIND[kind].map(lambda raw: (kind, raw)))


def places(value, at=()):
    """Paths of everything in a JSON value, the value itself first."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in members:
        yield from places(child, (*at, key))


wild = (
    json_values
    | st.sampled_from([float("nan"), float("inf"), 10**400, -(10**400), "\ud800", "", " ", "a" * 16_385, b"x", (1,), {1: 2}, {"\ud800": 1}])
    | st.sampled_from([{"$ref": "#"}, {"$ref": "file:///etc/hostname"}, {"pattern": "(?=a)"}, {"type": "strin"}, {"$id": "::"}])
)  # fmt: skip


@st.composite
def mutated(draw):
    """A kind and a raw descriptor in which one place was replaced, removed or added to."""
    kind, raw = draw(valid)
    raw = copy.deepcopy(raw)
    path = draw(st.sampled_from(list(places(raw))))
    if not path:
        return kind, draw(wild) if draw(st.booleans()) else {**raw, draw(strategies.text): draw(wild)}
    parent = raw
    for step in path[:-1]:
        parent = parent[step]
    action = draw(st.sampled_from(["replace", "remove", "add"]))
    if action == "replace":
        parent[path[-1]] = draw(wild)
    elif action == "remove":
        del parent[path[-1]]
    elif isinstance(parent, dict):
        parent[draw(st.sampled_from(["$ref", "$id", "naem", "kind", ""]) | strategies.text)] = draw(wild)
    else:
        parent.insert(path[-1], draw(wild))
    return kind, raw
