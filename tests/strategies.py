"""Hypothesis strategies for frames, JSON and byte streams."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from typing import Any, get_args

import attrs
from hypothesis import strategies as st

from trio_exthost.wire import ABSENT, from_extension, to_extension, words

IN_CLASSES = get_args(from_extension.ZotFrame)
OUT_CLASSES = get_args(to_extension.ZotFrame)
EFFECTS_IN_CLASSES = get_args(from_extension.EffectsFrame)
EFFECTS_OUT_CLASSES = get_args(to_extension.EffectsFrame)

# All of Unicode but lone surrogates, with the characters that other programs take for line ends made frequent.
text = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=("Cs",)), st.sampled_from('\u2028\u2029\x85\x0b\x0c\x1c\r\n\t"\\[]{}\x00é😀')
    ),
    max_size=12,
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
)
json_objects = st.dictionaries(text, json_values, max_size=4)

blocks = st.builds(from_extension.ContentBlock, type=text, text=text, mime_type=text, data=text, format=text)
panels = st.builds(
    from_extension.PanelSpec, id=text, title=text, lines=st.lists(text, max_size=4).map(tuple), footer=text
)
numbers = st.integers(min_value=1)


def _parts(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a class that is a part of a frame."""
    return st.deferred(lambda: frames_of(kind))


_BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "str": text,
    "bool": st.booleans(),
    "int": st.integers(),
    "str | None": st.none() | text,
    "int | None": st.none() | st.integers(),
    "Json": json_values,
    "tuple[str, ...]": st.lists(text, max_size=4).map(tuple),
    "tuple[ContentBlock, ...]": st.lists(blocks, max_size=3).map(tuple),
    "PanelSpec": panels,
    "PanelSpec | None": st.none() | panels,
    "Mapping[str, Any]": json_objects,
    "Mapping[str, Any] | None": st.none() | json_objects,
    "tuple[Mapping[str, Any], ...]": st.lists(json_objects, max_size=3).map(tuple),
    "float | None": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "RegistrationId": numbers,
    "tuple[RegistrationId, ...]": st.lists(numbers, max_size=3).map(tuple),
    "Milliseconds | None": st.none() | st.integers(0, 2**53),
    **{kind.__name__: st.sampled_from(kind) for kind in vars(words).values() if isinstance(kind, enum.EnumType)},
    **{
        name: strategy
        for kind in (
            *(from_extension.Binding, from_extension.Decision, from_extension.ErrorDetail, to_extension.DialectTerms),
            *(to_extension.Envelope, to_extension.Context, to_extension.InvocationScope),
            *(to_extension.Agent, to_extension.Model),
        )
        for name, strategy in (
            (kind.__name__, _parts(kind)),
            (f"{kind.__name__} | None", st.none() | _parts(kind)),
        )
    },
}


def _field(kind: type[Any], name: str, annotation: str, metadata: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if metadata.get("null_counts"):
        return st.just(ABSENT) | _BY_ANNOTATION[annotation]
    if not metadata.get("spread"):
        return _BY_ANNOTATION[annotation]
    own = {"type", "id", *(field.name for field in attrs.fields(kind))} - {name}
    return st.dictionaries(text.filter(lambda key: key not in own) | st.just(name), json_values, max_size=4)


def frames_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Frames (or parts of them) of this class, each field drawn by its annotation."""
    return st.builds(
        kind,
        **{
            field.name: _field(kind, field.name, kind.__annotations__[field.name], field.metadata)
            for field in attrs.fields(kind)
        },
    )


in_frames = st.one_of([frames_of(kind) for kind in IN_CLASSES])
out_frames = st.one_of([frames_of(kind) for kind in OUT_CLASSES])
effects_in_frames = st.one_of([frames_of(kind) for kind in EFFECTS_IN_CLASSES])
effects_out_frames = st.one_of([frames_of(kind) for kind in EFFECTS_OUT_CLASSES])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces, cut at these places (taken modulo its length)."""
    at = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(at)]


cuts = st.lists(st.integers(min_value=0, max_value=1 << 16), max_size=12)

# Lines and rubbish of the kind programs print, in any order.
_odd_lines = st.sampled_from(
    [b"", b"\r", b"Loading...", b"[]", b"3", b"{}", b'{"type":7}', b"\xff\xfe", b'{"v":NaN}', b"[" * 300, b"x" * 200]
)
streams = st.lists(
    st.one_of(_odd_lines, st.binary(max_size=40), st.binary(min_size=60, max_size=200)).flatmap(
        lambda line: st.sampled_from([line + b"\n", line + b"\r\n", line])
    ),
    max_size=8,
).map(b"".join)
