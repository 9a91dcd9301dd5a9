"""Neither a schema nor a value can hang the host: the work of checking is bounded before it is done."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trio_exthost.effects import compile_schema
from trio_exthost.effects.schema_work import MAX_APPLIED, MAX_SUBSCHEMAS, SchemaWork
from trio_exthost.effects.schemas import MAX_WORK
from trio_exthost.errors import RegistrationRefused


def refused(raw, code="invalid_payload"):
    with pytest.raises(RegistrationRefused) as caught:
        compile_schema(raw, at="s", extension="guard")
    assert (caught.value.code, caught.value.extension) == (code, "guard")
    return caught.value


def doubling(levels):
    """Applies its last schema 2 ** levels times to the same value."""
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "string"}}}


def nested_value(levels, key="l"):
    value = {}
    for _ in range(levels):
        value = {key: value}
    return value


UNION = {
    "$ref": "#/$defs/e",
    "$defs": {
        "e": {
            "anyOf": [
                {"properties": {"kind": {"const": kind}, "l": {"$ref": "#/$defs/e"}}, "required": ["kind"]}
                for kind in "ab"
            ]
        }
    },
}
"""Both members lead on into the same part: what is applied doubles with every level of the value."""


def test_schema_that_applies_too_much_to_one_value_is_refused():
    levels = MAX_APPLIED.bit_length() - 4  # a reference and an allOf at each level
    assert compile_schema(doubling(levels)).matches("x")
    assert f"more than {MAX_APPLIED}" in refused(doubling(levels + 3), "resource_limit").reason
    assert refused(doubling(300), "resource_limit").field == "s"


def test_schema_with_too_many_schemas_is_refused():
    assert compile_schema({"$defs": {str(n): {} for n in range(MAX_SUBSCHEMAS - 1)}})
    reason = refused({"$defs": {str(n): {} for n in range(MAX_SUBSCHEMAS)}}, "resource_limit").reason
    assert reason == f"holds more than {MAX_SUBSCHEMAS} schemas"


def test_schema_that_takes_too_long_to_analyse_is_refused():
    chain = {f"c{n}": {"$ref": f"#/$defs/c{n + 1}"} for n in range(500)}
    raw = {"properties": {f"p{n}": {"$ref": "#/$defs/c0"} for n in range(300)}, "$defs": {**chain, "c500": {}}}
    assert refused(raw, "resource_limit").reason.startswith("is too intricate")


def test_value_that_would_make_too_much_work_is_refused_by_itself():
    schema = compile_schema(UNION)
    assert "not valid under any" in schema.explain(nested_value(3))
    assert schema.explain(nested_value(10)) == "$: does not match, and is too large to say where (#)"
    assert schema.explain(nested_value(60)).startswith("$: is too large, or nested too deeply, to be checked")
    assert not schema.matches(nested_value(60))
    assert schema.work.most(60) > MAX_WORK


def test_many_wrong_parts_are_told_without_a_place():
    schema = compile_schema({"items": {"type": "string"}})
    assert schema.explain([1] * 100_000) == "$: does not match, and is too large to say where (#)"
    assert schema.explain([["x" * 100_000]] * 2000) == "$: does not match, and is too large to say where (#)"
    assert schema.explain([{"x" * 100_000: 1}] * 2000) == "$: does not match, and is too large to say where (#)"
    assert schema.matches(["x"] * 100_000)


def test_recursive_data_may_be_as_deep_as_a_frame():
    raw = {
        "$ref": "#/$defs/j",
        "$defs": {
            "j": {
                "anyOf": [
                    {"type": ["string", "number", "boolean", "null"]},
                    {"type": "array", "items": {"$ref": "#/$defs/j"}},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/j"}},
                ]
            }
        },
    }
    assert compile_schema(raw).matches(nested_value(120))
    tree = {"type": "object", "properties": {side: {"$ref": "#"} for side in "lr"}, "additionalProperties": False}
    assert compile_schema(tree).matches(nested_value(120))
    assert compile_schema(tree).work.ceiling is None


# The bound against a naive count: every schema applied to every part, nothing cut short.

KEYS = "ab"
small = st.deferred(
    lambda: st.one_of(
        st.just({}),
        st.booleans(),
        st.sampled_from([{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]),
        st.builds(lambda word, each: {word: each}, st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"]), listed),
        st.builds(lambda word, each: {word: each}, st.sampled_from(["not", "if", "items", "contains", "additionalProperties"]), small),
        st.builds(lambda word, each: {word: each}, st.sampled_from(["properties", "dependentSchemas"]), mapped),
        st.builds(lambda one, other: {**as_object(one), **as_object(other)}, small, small),
    )
)  # fmt: skip
listed = st.lists(small, min_size=1, max_size=3)
mapped = st.dictionaries(st.sampled_from(KEYS), small, max_size=2)
values = st.recursive(
    st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


def as_object(schema):
    return {} if isinstance(schema, bool) else schema


def applied(schema, value, defs):
    """How many schemas that are objects are applied to the value and its parts."""
    if isinstance(schema, bool):
        return 0

    def each(pairs):
        return sum(applied(child, part, defs) for child, part in pairs)

    total = 1
    if "$ref" in schema:
        total += applied(defs[schema["$ref"][-1]], value, defs)
    for word in ("allOf", "anyOf", "oneOf"):
        total += each((child, value) for child in schema.get(word, []))
    total += each((child, value) for child in schema.get("dependentSchemas", {}).values())
    total += each((schema[word], value) for word in ("not", "if") if word in schema)
    if isinstance(value, dict):
        named = schema.get("properties", {})
        total += each((named[key], part) for key, part in value.items() if key in named)
        total += each((schema.get("additionalProperties", True), part) for part in value.values())
    if isinstance(value, list):
        total += each(zip(schema.get("prefixItems", []), value, strict=False))
        total += each((schema.get(word, True), part) for word in ("items", "contains") for part in value)
    return total


def size_of(value):
    """Parts and levels of a value."""
    members = list(value.values() if isinstance(value, dict) else value) if isinstance(value, dict | list) else []
    sizes = [size_of(each) for each in members]
    return 1 + sum(parts for parts, _ in sizes), max((1 + depth for _, depth in sizes), default=0)


@given(small, small, small, values)
def test_work_is_never_more_than_its_bound(top, x, y, value):
    raw = {"$defs": {"x": x, "y": y}, **as_object(top)}
    try:
        schema = compile_schema(raw)
    except RegistrationRefused as error:
        assume("refers back to itself" not in error.reason)
        raise
    parts, depth = size_of(value)
    bound = schema.work.most(depth)
    assert applied(raw, value, raw["$defs"]) <= parts * bound
    assert bound <= (schema.work.ceiling or bound)
    assert schema.work.most(depth + 1) >= bound
    assert json.loads(json.dumps(schema.raw)) == raw


@pytest.mark.parametrize(
    ("raw", "depth", "bound"),
    [
        ({"enum": ["a", "b", "c"]}, 0, 1),
        ({"enum": [1, 2, 3]}, 0, 19),  # a float is compared with each
        ({"multipleOf": 2}, 0, 301),
        ({"enum": [1, {}, []]}, 0, 19),  # itself, and three comparisons
        ({"allOf": [{}]}, 0, 2),
        ({"allOf": [{}], "unevaluatedProperties": False}, 0, 4),  # what is evaluated is learnt by going there again
        ({"properties": {"a": {}}, "additionalProperties": {}}, 1, 3),  # one member may get both
        ({"properties": {"a": {"allOf": [{}]}, "b": {}}}, 1, 3),  # no member gets both
        ({"items": {"allOf": [{}]}, "properties": {"a": {}}}, 1, 3),  # no value has both
        ({"prefixItems": [{}, {}], "contains": {}}, 1, 3),
        ({"$ref": "#/$defs/p", "allOf": [{"$ref": "#/$defs/p"}], "$defs": {"p": {"items": {}}}}, 1, 6),
        (
            {"patternProperties": {"additionalProperties": {}}, "$ref": "#/patternProperties"},
            1,
            4,
        ),  # one schema, two ways
        ({"properties": {"a": {"properties": {"a": {}}}}}, 9, 3),
        ({"properties": {"a": {"$ref": "#"}}}, 9, 19),
    ],
)
def test_bound_is_exact_where_everything_applies(raw, depth, bound):
    assert SchemaWork(raw, None).most(depth) == bound
