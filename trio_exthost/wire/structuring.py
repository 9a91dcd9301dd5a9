"""From decoded JSON to frames and back: two cattrs converters with strict hooks.

The fast converter says only that something does not fit. The exact one, asked after that, says where; and it takes
null for a field that may be left out, as zot does (a nil slice of a Go program is `null` on the wire), which is why
it has the last word; only a field marked `null_counts` keeps it as a value. Both refuse what a lenient converter would
bend: a number for a string, a bool for a number, a string for a list, a word that is not of a closed set.

Imported by the first codec, not by the package: cattrs is most of what importing `wire` would cost.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from trio_exthost.wire.values import Between

Structure = Callable[[dict[str, Any]], Any]
"""Makes a frame of a decoded object (a dict), or raises."""
Unstructure = Callable[[Any], dict[str, Any]]
"""Makes a plain dict of a frame, `type` first."""
_Hook = Callable[[Any, Any], Any]

MAX_PARTS = 10_000
"""Parts (content blocks) in one list of a frame. A line of the largest size could hold 260,000 of them, and to make and
look at so many would keep the agent waiting for two seconds (measured); what a model is given has some dozens."""

_NAMES = {type(None): "null", dict: "object", list: "list"}


def _expected(wanted: str, value: object) -> TypeError:
    return TypeError(f"expected {wanted}, got {_NAMES.get(type(value), type(value).__name__)}")


def _refused(wanted: str, value: object) -> TypeError:
    """As `_expected`, for a value of the right type: it is shown."""
    return TypeError(f"expected {wanted}, got {value!r:.40}")


def _list(value: Any, item: Any) -> list[Any]:
    """The value, if it is a list that is not too long."""
    if value.__class__ is not list:
        raise _expected("list", value)
    if len(value) > MAX_PARTS and attrs.has(item):
        raise TypeError(f"expected at most {MAX_PARTS} elements, got {len(value)}")
    return value


def _exactly(kind: type, wanted: str) -> _Hook:
    def structure(value: Any, _type: Any) -> Any:
        if value.__class__ is kind:
            return value
        raise _expected(wanted, value)

    return structure


def _is_between(kind: Any) -> bool:
    return get_origin(kind) is Annotated and isinstance(kind.__metadata__[0], Between)


def _between_hook(kind: Any, _converter: cattrs.Converter) -> _Hook:
    least, most, wanted = kind.__metadata__[0]

    def structure(value: Any, _type: Any) -> Any:
        if value.__class__ is not int:
            raise _expected(wanted, value)
        if least <= value <= most:
            return value
        raise _refused(wanted, value)

    return structure


def _number(value: Any, _type: Any) -> Any:
    """What JSON calls a number; whole ones are decoded as int, and may be too large for a float."""
    if value.__class__ is float:
        return value
    if value.__class__ is not int:
        raise _expected("number", value)
    try:
        return float(value)
    except OverflowError:
        raise TypeError("expected number, got one too large for a float") from None


def _word(value: Any, kind: Any) -> enum.StrEnum:
    """A member of a closed set."""
    if value.__class__ is not str:
        raise _expected(f"one of {', '.join(kind)}", value)
    try:
        return kind(value)  # type: ignore[no-any-return]
    except ValueError:
        raise _refused(f"one of {', '.join(kind)}", value) from None


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (Mapping, dict)


def _is_frame_or_part(kind: Any) -> bool:
    return attrs.has(kind)


def _tuple_hook(kind: Any, converter: cattrs.Converter) -> _Hook:
    item = get_args(kind)[0]
    hook = converter.get_structure_hook(item)

    def structure(value: Any, _type: Any) -> Any:
        return tuple([hook(each, item) for each in _list(value, item)])

    return structure


def _exact_tuple_hook(kind: Any, converter: cattrs.Converter) -> _Hook:
    """As the fast one, but names the element; only the first, as a line may hold a million bad ones."""
    item = get_args(kind)[0]
    hook = converter.get_structure_hook(item)

    def structure(value: Any, _type: Any) -> Any:
        done = []
        for index, each in enumerate(_list(value, item)):
            try:
                done.append(hook(each, item))
            except Exception as exc:  # noqa: BLE001 - only annotated here, whatever it is
                exc.add_note(cattrs.IterableValidationNote(f"element {index}", index, item))
                raise cattrs.IterableValidationError("bad element", [exc], kind) from None
        return tuple(done)

    return structure


def _unless_null(hook: _Hook, default: Any) -> _Hook:
    def structure(value: Any, kind: Any) -> Any:
        if value is None:
            return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
        return hook(value, kind)

    return structure


def _fast_class_hook(kind: Any, converter: cattrs.Converter) -> _Hook:
    fill = make_dict_structure_fn(kind, converter)

    def structure(value: Any, _type: Any) -> Any:
        if value.__class__ is not dict:
            raise _expected("object", value)
        return fill(value, kind)

    return structure


def _exact_class_hook(kind: Any, converter: cattrs.Converter) -> _Hook:
    attrs.resolve_types(kind)
    nullable: dict[str, Any] = {
        field.name: override(struct_hook=_unless_null(converter.get_structure_hook(field.type), field.default))
        for field in attrs.fields(kind)
        if field.default is not attrs.NOTHING and not field.metadata.get("null_counts")
    }
    fill = make_dict_structure_fn(kind, converter, **nullable)

    def structure(value: Any, _type: Any) -> Any:
        if value.__class__ is not dict:
            raise _expected("object", value)
        return fill(value, kind)

    return structure


@cache
def _converter(*, exact: bool) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=exact)
    converter.register_structure_hook(str, _exactly(str, "str"))
    converter.register_structure_hook(int, _exactly(int, "int"))
    converter.register_structure_hook(bool, _exactly(bool, "bool"))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_factory(_is_between)(_between_hook)
    converter.register_structure_hook(enum.StrEnum, _word)
    converter.register_structure_hook_factory(_is_frame_or_part)(_exact_class_hook if exact else _fast_class_hook)
    converter.register_structure_hook_factory(_is_tuple)(_exact_tuple_hook if exact else _tuple_hook)
    converter.register_structure_hook_func(_is_mapping, _exactly(dict, "object"))
    return converter


def spread_field(kind: type[Any]) -> str | None:
    """The field whose mapping is merged into the top level, if the frame has one."""
    return next((field.name for field in attrs.fields(kind) if field.metadata.get("spread")), None)


def own_keys(kind: type[Any], spread: str) -> frozenset[str]:
    """Keys a spread mapping cannot set: the frame's own, and the two that say what frame it is and whose answer."""
    return frozenset({"type", "id", *(field.name for field in attrs.fields(kind))} - {spread})


def structure(kind: Any, *, exact: bool = False) -> Structure:
    """The function that makes a `kind` of a decoded JSON object; made once.

    With `exact` it takes null where a field may be left out, and what it raises can be given to `explain`.
    A spread field collects the keys that are no fields.
    """
    return _structure(kind, exact)


@cache
def _structure(kind: Any, exact: bool) -> Structure:
    hook = _converter(exact=exact).get_structure_hook(kind)
    spread = spread_field(kind)
    if spread is None and exact:
        return lambda value: hook(value, kind)
    if spread is None:
        fill = make_dict_structure_fn(kind, _converter(exact=False))
        return lambda value: fill(value, kind)
    own = own_keys(kind, spread)

    def gather(value: dict[str, Any]) -> Any:
        known = {key: item for key, item in value.items() if key in own}
        known[spread] = {key: item for key, item in value.items() if key not in own}
        return hook(known, kind)

    return gather


def explain(error: Exception) -> str:
    """What does not fit and where: `$.content[0].text: expected str, got int`, three of them at most."""
    found = cattrs.transform_error(error, format_exception=_describe)
    shown = [f"{path}: {what}" for what, _, path in (each.rpartition(" @ ") for each in found)]
    return "; ".join(shown[:3])


def _describe(error: BaseException, _type: type[Any] | None) -> str:
    return "required field missing" if isinstance(error, KeyError) else str(error)


@cache
def _plain(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """The function that makes a dict of an attrs value, without the fields at their default."""
    attrs.resolve_types(kind)
    overrides: dict[str, Any] = {
        field.name: override(omit_if_default=not field.metadata.get("always"), unstruct_hook=_plain_field(field.type))
        for field in attrs.fields(kind)
    }
    return make_dict_unstructure_fn(kind, _converter(exact=False), _cattrs_omit_if_default=True, **overrides)


def _plain_field(kind: Any) -> Callable[[Any], Any]:
    """Payloads pass through untouched: walking them is the encoder's work."""
    if _is_tuple(kind):
        item = get_args(kind)[0]
        if attrs.has(item):
            part = _plain(item)
            return lambda value: [part(each) for each in value]
        return list
    part_kind = next((each for each in (kind, *get_args(kind)) if attrs.has(each)), None)
    if part_kind is not None:
        part = _plain(part_kind)
        return lambda value: None if value is None else part(value)
    return lambda value: value


@cache
def unstructure(kind: Any) -> Unstructure:
    """The function that makes a plain dict of a frame: `type` first, then the fields that are not at their default.

    A spread field's mapping is merged into the top level; a key of it that the frame itself has (or `type`, or `id`)
    is left out.
    """
    fill, spread, word = _plain(kind), spread_field(kind), kind.TYPE
    if spread is None:
        return lambda frame: {"type": word, **fill(frame)}
    own = own_keys(kind, spread)

    def merge(frame: Any) -> dict[str, Any]:
        plain = fill(frame)
        payload = plain.pop(spread, {})
        return spread_over({"type": word, **plain}, payload, own)

    return merge


def spread_over(fields: dict[str, Any], payload: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """The payload's keys after the fields, except those that are the frame's own."""
    if own.isdisjoint(payload):
        return {**fields, **payload}
    return {**fields, **{key: item for key, item in payload.items() if key not in own}}
