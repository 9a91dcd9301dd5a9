"""JSON Schema of tools, commands and forms: checked when it is registered, compiled once, and never a way to hang.

The rules are those of JSON Schema 2020-12; a `$schema` of draft 7 or 2019-09 is honoured. Nothing is ever fetched:
references lead into the same document. Regular expressions run on an engine whose time grows with the length of the text
only, which has no look-around and no back-references. `format` is a note to the reader, as the standard has it.
"""

from __future__ import annotations

from typing import Any, Never

import attrs

from trio_exthost.effects.descriptors_fields import copied_json, item_path, noun
from trio_exthost.effects.schema_work import Path, SchemaWork
from trio_exthost.errors import RegistrationRefused

MAX_SCHEMA_BYTES = 128 * 1024
"""A schema, encoded without white space."""
MAX_SCHEMA_DEPTH = 64
"""Levels of objects and arrays in a schema."""
MAX_REGEX_BYTES = 1024 * 1024
"""One regular expression, compiled."""
MAX_WORK = 20_000_000
"""Schemas that may be applied to check one value, all its parts together; at most about a second."""
MAX_ERRORS = 8
"""Errors that are told of one value."""

_TOLD_WORK = 50_000  # every failure is an object with a copy of the part it is about ...
_TOLD_BYTES = 64 * 1024 * 1024  # ... and all are made before the first can be had
_SHOWN_CHARACTERS = 200
_CHEAP = 50  # so few schemas per part need no look at the value
_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
}


@attrs.frozen
class SchemaError:
    """One way in which a value does not match."""

    path: str
    """Where in the value: `$.files[2].name`."""
    schema_path: str
    """Where in the schema, as a JSON pointer: `#/properties/files/items`."""
    message: str
    """What is wrong; long values are cut in the middle."""

    def __str__(self) -> str:
        """All of it in a line."""
        return f"{self.path}: {self.message} ({self.schema_path})"


@attrs.frozen
class Schema:
    """A schema that was checked and compiled; `compile_schema` makes it."""

    raw: dict[str, Any] | bool = attrs.field(hash=False)
    """As JSON. A copy of its own that all readers share: not to be changed."""
    validator: Any = attrs.field(eq=False, repr=False)
    """The compiled form."""
    work: SchemaWork | None = attrs.field(eq=False, repr=False)
    """What checking a value can cost; None for a schema that is true or false."""

    def matches(self, value: object) -> bool:
        """Whether a JSON value matches. One that would cost more than `MAX_WORK` does not."""
        return self._fault(value) is None

    def errors(self, value: object, *, most: int = MAX_ERRORS) -> tuple[SchemaError, ...]:
        """Why a JSON value does not match; empty if it does.

        Args:
          value: As decoded: objects, arrays, texts, numbers, true, false and null.
          most: Errors told, at most; different ones, the first ones found. Of a value that is so large that finding them
            could take long, one error only, without a place.
        """
        fault = self._fault(value)
        if fault is not _SOMEWHERE:
            return () if fault is None else (fault,)
        parts, size, each = _size_of(value, self.work)
        if parts * each > _TOLD_WORK or parts * each * size > _TOLD_BYTES:
            return (_SOMEWHERE,)
        try:
            found = list(self.validator.iter_errors(value))
        except ValueError as exc:  # an error holds a copy of its part, so parts are read that no rule looks into
            return (_not_checked(exc),)
        errors = (
            SchemaError(item_path("$", error.instance_path), _pointer(error.schema_path), _cut(error.message))
            for error in found
        )
        return tuple(dict.fromkeys(errors))[:most]

    def explain(self, value: object, *, most: int = MAX_ERRORS) -> str:
        """The errors as one text, `; ` between them; empty if the value matches."""
        return "; ".join(map(str, self.errors(value, most=most)))

    def _fault(self, value: object) -> SchemaError | None:
        """None if the value matches; why it cannot be checked; or that it fails somewhere."""
        if self.work is not None and (self.work.ceiling is None or self.work.ceiling > _CHEAP):
            parts, _, each = _size_of(value, self.work)
            if parts * each > MAX_WORK:
                return SchemaError("$", "#", "is too large, or nested too deeply, to be checked against this schema")
        try:
            return None if self.validator.is_valid(value) else _SOMEWHERE
        except ValueError as exc:
            return _not_checked(exc)


_SOMEWHERE = SchemaError("$", "#", "does not match, and is too large to say where")


def compile_schema(raw: object, *, at: str = "schema", extension: str | None = None) -> Schema:
    """Check a schema and compile it.

    Args:
      raw: An object, true or false; it is copied.
      at: Its path, for the refusal.
      extension: Whose it is, for the refusal.

    Raises:
      RegistrationRefused: It is no schema, refers to another document, or has a regular expression that cannot be run
        (`invalid_payload`); it is too large, too deep, or could make too much work (`resource_limit`). `field` is the
        path within the schema.
    """

    def fail(path: Path, reason: str, code: str) -> Never:
        raise RegistrationRefused(reason, code=code, field=item_path(at, path), extension=extension)

    if not isinstance(raw, dict | bool):
        fail((), f"must be a JSON Schema, an object, true or false, not {noun(raw)}", "invalid_payload")
    schema = copied_json(raw, at, extension=extension, max_bytes=MAX_SCHEMA_BYTES, max_depth=MAX_SCHEMA_DEPTH)
    draft = schema.get("$schema", next(iter(_DRAFTS))) if isinstance(schema, dict) else next(iter(_DRAFTS))
    kind = _DRAFTS.get(draft.removesuffix("#")) if isinstance(draft, str) else None
    if kind is None:
        fail(("$schema",), f"must be one of {', '.join(_DRAFTS)}", "invalid_payload")
    work = SchemaWork(schema, fail) if isinstance(schema, dict) else None

    import jsonschema_rs  # noqa: PLC0415 - costs as much as all else together; who registers no schema pays nothing

    options = jsonschema_rs.RegexOptions(size_limit=MAX_REGEX_BYTES, dfa_size_limit=MAX_REGEX_BYTES)
    try:
        validator = getattr(jsonschema_rs, kind)(schema, pattern_options=options, retriever=_never_fetched)
    except jsonschema_rs.ValidationError as exc:
        fail(tuple(exc.instance_path), _wrong(exc.message), "invalid_payload")
    return Schema(schema, validator, work)


def _not_checked(exc: ValueError) -> SchemaError:
    return SchemaError("$", "#", f"is not JSON, or nested too deeply to be checked: {exc}")


def _never_fetched(uri: str) -> Never:
    raise ValueError(f"{uri} is outside of this schema, and nothing is fetched")


def _wrong(message: str) -> str:
    hint = ""
    if message.endswith('is not a "regex"'):
        hint = ": it is wrong, too large, or needs look-around or back-references, which there are none of"
    return _cut(message) + hint


def _size_of(value: object, work: SchemaWork | None) -> tuple[int, int, int]:
    """Parts of a value, about how many bytes they take, and the schemas that can apply to one part."""
    parts = size = depth = 0
    level = [value]
    while level:
        parts += len(level)
        below: list[object] = []
        for each in level:
            size += 16
            if isinstance(each, dict):
                size += sum(map(len, map(str, each)))  # a key that is no text is refused where the value is checked
                below.extend(each.values())
            elif isinstance(each, list | tuple):
                below.extend(each)
            elif isinstance(each, str):
                size += len(each)
        depth += bool(below)
        level = below
    return parts, size, work.most(depth) if work is not None else 1


def _pointer(steps: list[str | int]) -> str:
    return "".join(["#", *("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)])


def _cut(message: str) -> str:
    """A message that may hold a whole value: its beginning and its end, where the reason stands."""
    if len(message) <= _SHOWN_CHARACTERS:
        return message
    return f"{message[: _SHOWN_CHARACTERS // 3]} ... {message[-_SHOWN_CHARACTERS * 2 // 3 :]}"
