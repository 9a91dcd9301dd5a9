"""The smallest form of each input that once did harm."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from trio_exthost.cli.transcripts_json import NotJson, decode
from trio_exthost.effects import compile_schema
from trio_exthost.errors import ManifestError, RegistrationRefused
from trio_exthost.packages import parse_manifest

LEAST = {"name": "x", "exec": "y"}


def peak_of(act) -> int:
    """The most bytes that it had at a time."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        b'{"name":"x","exec":"y","' + b"k" * 10_000 + b'":[' + b"[]," * 10_000 + b"[]]}",
        b'{"name":"x","exec":"y","a":'
        + (b'{"' + b"k" * 100 + b'":') * 100
        + b"["
        + b"[]," * 10_000
        + b"[]]"
        + b"}" * 101,
    ],
    ids=["one long key", "many keys"],
)
def test_a_long_path_to_many_values_of_a_manifest_takes_no_memory_for_each(text: bytes) -> None:
    assert peak_of(lambda: parse_manifest(text)) < 200 * len(text)


@pytest.mark.parametrize(
    "keys",
    [
        {"exthost": {"k" * 10_000: 1}},
        {"exthost": {"env": {"=" * 10_000: "1"}}},
        {"exthost": {"dialect": "z" * 10_000}},
        {"exthost": {"permissions": ["z" * 10_000]}},
        {"exthost": {"permissions": ["a"], "optional_permissions": ["z" * 10_000]}},
        {"skills": ["../" * 10_000]},
        {"name": "z" * 10_000},
        {"exec": None, "e" * 10_000: 1},
    ],
)
def test_a_mistake_in_a_manifest_is_told_in_a_short_text(keys: dict[str, object]) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(json.dumps({**LEAST, **keys}).encode())
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("depth", [1, 100])
def test_a_key_that_stands_twice_is_told_in_a_short_text(depth: int) -> None:
    key = '"' + "k" * 10_000 + '":'
    text = ("{" + key) * depth + "{" + key + "1," + key + "2" + "}" * (depth + 1)
    with pytest.raises(ManifestError, match="stands twice") as caught:
        parse_manifest(text.encode())
    assert len(str(caught.value)) < 2000


def test_only_so_many_unknown_keys_of_a_manifest_are_compared_with_the_known_ones() -> None:
    _, warnings = parse_manifest(json.dumps({**LEAST, **{f"enabled{number}": 1 for number in range(1000)}}).encode())
    assert 0 < len(warnings) <= 100


def test_what_is_too_large_a_schema_is_refused_before_it_is_copied() -> None:
    schema = {"k" * 100_000: [0] * 100_000}
    with pytest.raises(RegistrationRefused, match="at most 131072 bytes") as caught:
        compile_schema(schema)
    assert caught.value.code == "resource_limit"

    def refuse() -> None:
        with pytest.raises(RegistrationRefused):
            compile_schema(schema)

    assert peak_of(refuse) < 20_000_000


def test_a_long_key_of_a_schema_is_told_in_a_short_text() -> None:
    with pytest.raises(RegistrationRefused, match="is not a value of JSON") as caught:
        compile_schema({"k" * 10_000: [float("nan")]})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"1e" + b"9" * 400])
def test_a_number_of_a_recording_that_is_too_large_for_a_float_is_told(number: bytes) -> None:
    with pytest.raises(NotJson, match="a number is too large"):
        decode(b'{"a":[' + number + b'],"b":"\\ud800"}')
