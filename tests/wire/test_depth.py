"""Nesting, told from the bytes."""

from __future__ import annotations

import json

import strategies
from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.wire.depth import is_deeper


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(strategies.json_values, st.integers(1, 6), st.booleans())
def test_the_answer_is_that_of_a_walk(value: object, limit: int, ascii_only: bool) -> None:
    assert is_deeper(json.dumps(value, ensure_ascii=ascii_only).encode(), limit) == (depth(value) > limit)


@given(st.text(alphabet='[]{}"\\a', max_size=40).map(str.encode) | st.binary(max_size=40), st.integers(1, 4))
def test_any_bytes_have_an_answer(text: bytes, limit: int) -> None:
    assert is_deeper(text, limit) in (True, False)


def test_the_limit_itself_is_allowed() -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        inner = b"1" if opening != b"[" else b""
        assert not is_deeper(opening * 128 + inner + closing * 128, 128)
        assert is_deeper(opening * 129 + inner + closing * 129, 128)


def test_brackets_in_strings_and_wide_values_do_not_count() -> None:
    assert not is_deeper(b'{"a":"' + b"[" * 500 + b'\\"' + b"{" * 500 + b'"}', 128)
    assert not is_deeper(b"[" + b"[[{}],[]]," * 500 + b"0]", 128)


def test_deep_chains_of_one_kind_side_by_side_do_not_add_up() -> None:
    chain = b"[" * 100 + b"]" * 100
    assert not is_deeper(b"[" + b",".join([chain] * 20) + b"]", 128)
    assert is_deeper(b"[" + b",".join([chain] * 20) + b"]", 100)


def test_innermost_pairs_of_both_kinds_are_counted() -> None:
    assert is_deeper(b'{"a":[{"a":[]}]}', 3)
    assert not is_deeper(b'{"a":[{"a":[]}]}', 4)
