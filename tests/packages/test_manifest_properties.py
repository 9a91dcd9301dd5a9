"""Generated manifests: only our own error comes out, and what is valid comes back as it was."""

from __future__ import annotations

import contextlib
import json
import string

from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.errors import ManifestError
from trio_exthost.packages import PERMISSIONS, parse_manifest

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
variables = st.text(string.ascii_letters + "_", min_size=1, max_size=6)
names = st.text(string.ascii_letters + string.digits + "-._ä", min_size=1, max_size=20).filter(
    lambda n: n not in (".", "..")
)
seconds = st.floats(min_value=0, max_value=86400, exclude_min=True)
permissions = st.lists(st.sampled_from(PERMISSIONS), unique=True, max_size=6)


@st.composite
def sections(draw):
    words = draw(permissions)
    cut = draw(st.integers(0, len(words)))
    optional = {
        "dialect": st.sampled_from(["zot", "effects"]),
        "scope": st.sampled_from(["process", "session", "run", "request"]),
        "priority": st.integers(-1_000_000, 1_000_000),
        "permissions": st.just(words[:cut]),
        "optional_permissions": st.just(words[cut:]),
        "overrides": st.lists(texts.filter(bool), unique=True, max_size=3),
        "state_schema": st.integers(1, 2**32 - 1),
        "startup_timeout_s": seconds,
        "tool_timeout_s": seconds,
        "env": st.dictionaries(variables, texts, max_size=3),
        "env_from": st.lists(variables, unique=True, max_size=3),
        "on_failure": st.just("block"),
        "restart": st.sampled_from(["never", "on_crash"]),
        "adapter": st.sampled_from(["zot", "effects", "claude_hook", "mcp"]),
        "watch_ignore": st.lists(texts.filter(bool), unique=True, max_size=3),
    }
    return draw(st.fixed_dictionaries({}, optional=optional))


manifests = st.fixed_dictionaries(
    {"name": names, "exec": texts.filter(bool)},
    optional={
        "version": texts,
        "args": st.lists(texts, max_size=3),
        "language": texts,
        "description": texts,
        "enabled": st.booleans(),
        "skills": st.lists(names, max_size=3),
        "exthost": sections(),
    },
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def as_json(value):
    if isinstance(value, tuple):
        return list(value)
    return value


@given(manifests)
def test_valid_manifest_says_what_was_written(data):
    manifest, _ = parse_manifest(json.dumps(data).encode())
    for key, value in data.items():
        if key == "exthost":
            for inner, expected in value.items():
                assert as_json(getattr(manifest.exthost, inner)) == expected
        else:
            assert as_json(getattr(manifest, key)) == value


@given(manifests, st.sampled_from([b"", b"\xef\xbb\xbf"]), st.sampled_from([None, 0, 2]), st.booleans())
def test_layout_of_the_text_changes_nothing(data, mark, indent, ascii_only):
    plain = json.dumps(data).encode()
    other = mark + json.dumps(data, indent=indent, ensure_ascii=ascii_only).replace("\n", "\r\n").encode()
    assert parse_manifest(other) == parse_manifest(plain)


@given(st.binary() | st.text().map(str.encode))
def test_arbitrary_bytes_raise_only_manifest_error(data):
    with contextlib.suppress(ManifestError):
        parse_manifest(data)


@given(anything)
def test_arbitrary_json_raises_only_manifest_error(value):
    with contextlib.suppress(ManifestError):
        parse_manifest(json.dumps(value).encode())


def place_of_error(data: bytes) -> str | None:
    """Where the mistake is, or None if there is none (NaN is no JSON at all, so it has no place)."""
    try:
        parse_manifest(data)
    except ManifestError as error:
        return error.where or error.message.partition("is not JSON")[1]
    return None


@given(manifests, st.data())
def test_one_replaced_value_is_read_or_refused_with_its_place(data, draw):
    section = draw.draw(st.booleans()) and bool(data.get("exthost"))
    target = data["exthost"] if section else data
    key = draw.draw(st.sampled_from(sorted(target)))
    target[key] = draw.draw(anything)
    assert place_of_error(json.dumps(data).encode()) != ""


@given(manifests, st.data())
def test_cut_or_damaged_manifest_raises_only_manifest_error(data, draw):
    raw = bytearray(json.dumps(data).encode())
    position = draw.draw(st.integers(0, len(raw) - 1))
    raw[position : position + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=3))
    with contextlib.suppress(ManifestError):
        parse_manifest(bytes(raw))
