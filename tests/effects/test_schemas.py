"""Schemas: what is accepted, what a value is told, and that nothing is fetched."""

from __future__ import annotations

import jsonschema_rs
import pytest
from descriptor_strategies import json_values, schemas
from hypothesis import given

from trio_exthost.effects import SchemaError, compile_schema, schema_work
from trio_exthost.effects.schema_work import MAX_PATTERNS
from trio_exthost.effects.schemas import MAX_ERRORS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH
from trio_exthost.errors import RegistrationRefused

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def refused(raw, code="invalid_payload"):
    with pytest.raises(RegistrationRefused) as caught:
        compile_schema(raw, at="s", extension="guard")
    assert (caught.value.code, caught.value.extension) == (code, "guard")
    return caught.value


def nested_value(levels, key="l"):
    value = {}
    for _ in range(levels):
        value = {key: value}
    return value


# --- what is accepted ---


@given(schemas, json_values)
def test_matching_is_what_the_standard_says(raw, value):
    schema = compile_schema(raw)
    assert schema.raw == raw
    assert schema.matches(value) == jsonschema_rs.Draft202012Validator(raw).is_valid(value)
    errors = schema.errors(value)
    assert (errors == ()) == schema.matches(value)
    assert len(errors) <= MAX_ERRORS
    assert schema.explain(value) == "; ".join(str(error) for error in errors)


def test_equal_schemas_are_equal_however_often_compiled():
    assert compile_schema({"a": [1]}) == compile_schema({"a": [1]})
    assert compile_schema({"a": [1]}) != compile_schema({"a": [2]})
    assert hash(compile_schema({})) == hash(compile_schema({}))
    assert repr(compile_schema(True)) == "Schema(raw=True)"


def test_schema_is_a_copy():
    raw = {"type": ["string"]}
    schema = compile_schema(raw)
    raw["type"].append("null")
    assert schema.raw == {"type": ["string"]}
    assert not schema.matches(None)


@pytest.mark.parametrize("raw", [None, 1, "{}", [], "true"])
def test_what_is_neither_object_nor_bool_is_no_schema(raw):
    assert refused(raw).reason.startswith("must be a JSON Schema, an object, true or false, not ")


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"type": "strin"}, "s.type"),
        ({"properties": {"a": {"items": {"minimum": "1"}}}}, "s.properties.a.items.minimum"),
        ({"allOf": [{}, {"required": "a"}]}, "s.allOf[1].required"),
        ({"allOf": 5}, "s.allOf"),
        ({"properties": [{}]}, "s.properties"),
        ({"$ref": 5}, "s.$ref"),
        ({"$id": "http://a b/"}, "s"),
        ({"const": float("inf")}, "s.const"),
        ({"enum": [1, {2: 3}]}, "s.enum[1]"),
    ],
)
def test_mistake_in_a_schema_is_told_with_its_path(raw, field):
    assert refused(raw).field == field


def test_schema_is_bounded_in_bytes_and_depth():
    full = {"description": "x" * (MAX_SCHEMA_BYTES - len('{"description":""}'))}
    assert compile_schema(full).raw == full
    assert refused({"description": full["description"] + "x"}, "resource_limit").field == "s"

    def deep(levels):
        raw = {}
        for _ in range(levels - 1):
            raw = {"not": raw}
        return raw

    assert compile_schema(deep(MAX_SCHEMA_DEPTH)).raw == deep(MAX_SCHEMA_DEPTH)
    assert refused(deep(MAX_SCHEMA_DEPTH + 1), "resource_limit").reason == "is nested deeper than 64 levels"


def test_schema_of_draft_7_is_read_as_such():
    schema = compile_schema({"$schema": DRAFT_7, "items": [{"type": "integer"}], "additionalItems": False})
    assert schema.matches([1])
    assert not schema.matches(["1"])
    assert not schema.matches([1, 1])


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-04/schema#", "http://example.com/own", 7, None])
def test_schema_of_another_dialect_is_refused(draft):
    assert refused({"$schema": draft}).field == "s.$schema"


# --- references ---


@pytest.mark.parametrize(
    "target",
    [
        {"$ref": "#/$defs/a~1b%20~0c", "$defs": {"a/b ~c": {"type": "integer"}}},
        {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "integer"}}},
        {"$ref": "#/words/own", "words": {"own": {"type": "integer"}}},
        {"$ref": "#/allOf/1", "allOf": [{}, {"type": "integer"}]},
        {"$ref": "#/$defs/no", "$defs": {"no": {"$ref": "#/$defs/int"}, "int": {"type": "integer"}}},
    ],
)
def test_reference_within_the_document_is_followed(target):
    schema = compile_schema({"properties": {"v": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "integer"}}})
    assert schema.matches({"v": 1})
    assert not schema.matches({"v": "1"})
    assert compile_schema(target).matches(1)
    assert not compile_schema(target).matches("1")


def test_dynamic_reference_is_followed():
    schema = compile_schema({"$dynamicAnchor": "n", "type": "object", "properties": {"l": {"$dynamicRef": "#n"}}})
    assert schema.matches(nested_value(3))
    assert not schema.matches({"l": {"l": 5}})


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize("uri", ["http://example.com/s", "file:///etc/hostname", "other.json", "/x", "urn:a:b", ""])
def test_reference_to_another_document_is_refused(keyword, uri):
    error = refused({"properties": {"a": {keyword: uri}}})
    assert error.field == f"s.properties.a.{keyword}"
    assert "nothing is fetched" in error.reason


def test_reference_that_the_analysis_does_not_see_is_not_fetched_either(monkeypatch):
    monkeypatch.setattr(schema_work, "_REFERENCES", ())
    assert "nothing is fetched" in refused({"$ref": "file:///etc/hostname"}).reason


def test_reference_may_lead_to_true_or_false():
    assert not compile_schema({"$ref": "#/$defs/never", "$defs": {"never": False}}).matches(1)


def test_reference_where_nobody_looks_is_not_fetched_either():
    assert compile_schema({"const": {"$ref": "http://example.com/"}}).matches({"$ref": "http://example.com/"})


@pytest.mark.parametrize("hidden", [{"$schema": "http://example.com/s"}, {"$id": "x", "$ref": "http://example.com/s"}])
def test_part_that_claims_to_be_another_document_is_refused(hidden):
    assert refused({"$defs": {"a": hidden}}).field.startswith("s.$defs.a.$")


def test_resource_that_the_library_would_fetch_is_refused():
    error = refused({"x": {"$schema": "http://example.invalid/s", "$id": "http://example.invalid/y"}, "$ref": "#/x"})
    assert error.field == "s.x.$id"


@pytest.mark.parametrize(
    "uri", ["#/$defs/b", "#/$defs/a/0", "#/items/00", "#/items/1", "#/items/x", "#/type/x", "#nowhere"]
)
def test_reference_to_nothing_is_refused(uri):
    raw = {"$defs": {"a": {}}, "items": {}, "type": "object", "not": {"$ref": uri}}
    assert refused(raw).field == "s.not.$ref"


def test_list_is_entered_by_index_only():
    assert compile_schema({"prefixItems": [{}, {"type": "null"}], "contains": {"$ref": "#/prefixItems/1"}}).matches(
        [1, None]
    )
    assert refused({"prefixItems": [{}], "contains": {"$ref": "#/prefixItems/x"}}).field == "s.contains.$ref"


@pytest.mark.parametrize(
    "raw",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}},
    ],
)
def test_schema_that_applies_itself_to_the_same_value_is_refused(raw):
    assert "refers back to itself" in refused(raw).reason


# --- regular expressions ---


def test_expression_that_backtracks_elsewhere_is_linear_here():
    schema = compile_schema({"pattern": "^(a+)+$"})
    assert not schema.matches("a" * 100_000 + "b")
    assert schema.matches("a" * 100_000)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "(a{1000}){1000}"])
def test_expression_that_cannot_be_run_is_refused_with_the_reason(pattern):
    error = refused({"properties": {"a": {"pattern": pattern}}})
    assert error.field == "s.properties.a.pattern"
    assert "look-around" in error.reason
    assert refused({"patternProperties": {pattern: True}}).field.startswith("s.patternProperties")


def test_expressions_are_counted():
    def many(number):
        return {"patternProperties": {"^a": True}, "anyOf": [{"pattern": f"^{n}"} for n in range(number - 1)]}

    assert compile_schema(many(MAX_PATTERNS)).matches("1")
    assert "regular expressions" in refused(many(MAX_PATTERNS + 1), "resource_limit").reason


# --- what a value is told ---


def test_error_has_both_paths():
    schema = compile_schema(
        {"properties": {"a/b": {"items": {"$ref": "#/$defs/~n"}}}, "$defs": {"~n": {"type": "integer"}}}
    )
    assert schema.errors({"a/b": [1, "x"]}) == (
        SchemaError('$["a/b"][1]', "#/$defs/~0n/type", '"x" is not of type "integer"'),
    )
    assert schema.explain({"a/b": ["x"]}) == '$["a/b"][0]: "x" is not of type "integer" (#/$defs/~0n/type)'


def test_errors_are_different_ones_and_at_most_so_many():
    assert len(compile_schema({"items": {"type": "string"}}).errors(list(range(100)))) == MAX_ERRORS
    assert len(compile_schema({"items": {"type": "string"}}).errors([1, 2, 3], most=2)) == 2
    same = {"type": "string"}
    assert len(compile_schema({"$defs": {"s": same}, "allOf": [{"$ref": "#/$defs/s"}] * 3}).errors(1)) == 1


def test_long_value_in_an_error_is_cut_before_the_reason():
    (error,) = compile_schema({"type": "object"}).errors("x" * 1000)
    assert error.message.startswith('"xxx')
    assert error.message.endswith('xxx" is not of type "object"')
    assert len(error.message) <= 210


def test_nothing_matches_false():
    assert compile_schema(False).errors(1) == (SchemaError("$", "#", "False schema does not allow 1"),)


@pytest.mark.parametrize("value", [object(), {1: 2}])
def test_value_that_is_not_json_does_not_match(value):
    schema = compile_schema({"minProperties": 1})
    assert not schema.matches(value)
    assert "is not JSON" in schema.explain(value)


def test_part_that_is_not_json_is_told_with_why_also_where_no_rule_looks_into_it():
    schema = compile_schema({"const": 1})
    for value in ([object()], [{1: 2}]):
        (error,) = schema.errors(value)
        words, _, why = error.message.partition(": ")
        assert (error.path, words) == ("$", "is not JSON, or nested too deeply to be checked")
        assert why not in ("", "None")


def test_value_nested_beyond_what_can_be_checked_does_not_match():
    value = []
    for _ in range(400):
        value = [value]
    schema = compile_schema({"uniqueItems": True, "const": 1})
    assert schema.explain(value).startswith("$: is not JSON, or nested too deeply")
    assert not schema.matches(value)
    assert compile_schema({"uniqueItems": True}).matches([1, value])  # as deep as it is, no rule looks into it
