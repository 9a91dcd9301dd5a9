"""Strict reading of one descriptor, key by key; each mistake is a refusal with its path and the way out."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Never, TypeVar

from trio_exthost.effects.permissions import is_name
from trio_exthost.errors import RegistrationRefused

MAX_TEXT_BYTES = 16 * 1024
"""A text of a descriptor, in UTF-8."""
MAX_PRIORITY = 1_000_000
"""A priority is from minus this to this."""
MAX_DATA_BYTES = 256 * 1024
"""JSON that a descriptor carries as data, encoded."""
MAX_DATA_DEPTH = 64
"""Levels of objects and arrays in such data; a scalar has none."""

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_COMMAND = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_NOUNS = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}
_SHOWN_CHARACTERS = 80
_INTEGERS = range(-(2**63), 2**64)

T = TypeVar("T")


def noun(value: object) -> str:
    """What kind of JSON value this is, in words."""
    return next((word for kind, word in _NOUNS.items() if isinstance(value, kind)), "a number")


def shown(text: str) -> str:
    """A text as JSON, one of great length only begun."""
    return json.dumps(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def key_path(at: str, key: str) -> str:
    """The path of a key of the object at `at`; that of the whole descriptor is empty."""
    if len(key) > _SHOWN_CHARACTERS or not _PLAIN_KEY.fullmatch(key):
        return f"{at}[{shown(key)}]"
    return f"{at}.{key}" if at else key


def item_path(at: str, steps: Collection[str | int]) -> str:
    """The path that leads from `at` by these keys and indexes."""
    for step in steps:
        at = key_path(at, step) if isinstance(step, str) else f"{at}[{step}]"
    return at


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint that names the nearest known word, else all of them."""
    near = difflib.get_close_matches(word[:_SHOWN_CHARACTERS].lower(), list(known), n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


class Fields:
    """One object of a descriptor. A key that is absent gives the default; null is a value, and a wrong one."""

    def __init__(self, raw: object, known: Collection[str], *, extension: str, at: str = "") -> None:
        """Take an object, of which only these keys may be there.

        Raises:
          RegistrationRefused: It is no object, or has another key.
        """
        self.extension = extension
        self._at = at
        if not isinstance(raw, dict):
            self.fail(at or "descriptor", f"must be an object, not {noun(raw)}")
        self._values: Mapping[str, Any] = raw
        for key in raw:
            if not isinstance(key, str):
                self.fail(at or "descriptor", "must be an object with text for keys")
            if key not in known:
                self.fail(self.at(key), "is not known here", hint=did_you_mean(key, known))

    def fail(self, where: str, reason: str, *, code: str = "invalid_payload", hint: str = "") -> Never:
        """Refuse, for the field at `where`."""
        raise RegistrationRefused(reason, code=code, field=where, extension=self.extension, hint=hint)

    def at(self, key: str) -> str:
        """The path of one of this object's keys."""
        return key_path(self._at, key)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._values

    def value(self, key: str) -> Any:
        """The raw value of a key that must be there."""
        if key not in self._values:
            self.fail(self.at(key), "is missing")
        return self._values[key]

    def within(self, key: str, known: Collection[str]) -> Fields:
        """The object under a key that must be there."""
        return Fields(self.value(key), known, extension=self.extension, at=self.at(key))

    def text(self, key: str) -> str:
        """Text that says something, at most `MAX_TEXT_BYTES`."""
        return self._text(self.value(key), self.at(key))

    def optional_text(self, key: str) -> str | None:
        """The same, or None if the key is absent."""
        return self.text(key) if self.has(key) else None

    def name(self, key: str) -> str:
        """A name: 1-128 of A-Z a-z 0-9 . - and _."""
        return self.matching(key, is_name, "1 to 128 of A-Z a-z 0-9 . - _")

    def command_name(self, key: str) -> str:
        """A command's name: 1-64 of a-z 0-9 and - (not at the ends)."""
        wanted = "1 to 64 of a-z 0-9 and - (not at the ends)"
        return self.matching(key, lambda text: _COMMAND.fullmatch(text) is not None, wanted)

    def matching(self, key: str, rule: Callable[[str], bool], wanted: str) -> str:
        """Text that follows a rule."""
        text = self.string(key)
        if not rule(text):
            self.fail(self.at(key), f"must be {wanted}, not {shown(text)}")
        return text

    def string(self, key: str) -> str:
        """Any text."""
        return self._string(self.value(key), self.at(key))

    def choice(self, key: str, words: Collection[str], default: str | None = None) -> str:
        """One of these words."""
        if default is not None and not self.has(key):
            return default
        return self._word(self.value(key), self.at(key), words)

    def flag(self, key: str) -> bool:
        """True or false; false by default."""
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            self.fail(self.at(key), f"must be true or false, not {noun(value)}")
        return value

    def whole(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number from `least` to `most`."""
        if default is not None and not self.has(key):
            return default
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(self.at(key), f"must be a whole number, not {value if isinstance(value, float) else noun(value)}")
        if not least <= value <= most:
            self.fail(self.at(key), f"must be from {least} to {most}, not {_short(value)}")
        return value

    def priority(self) -> int:
        """`priority`: 0 by default."""
        return self.whole("priority", -MAX_PRIORITY, MAX_PRIORITY, default=0)

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        """An array of at most `most` texts that say something; empty by default."""
        return tuple(self._text(value, where) for where, value in self.items(key, 0, most)) if self.has(key) else ()

    def words(self, key: str, words: Collection[str]) -> tuple[str, ...]:
        """An array of at least one of these words, none of them twice."""
        found: list[str] = []
        for where, value in self.items(key, 1, len(words)):
            word = self._word(value, where, words)
            if word in found:
                self.fail(where, f"{shown(word)} stands twice")
            found.append(word)
        return tuple(found)

    def objects(self, key: str, least: int, most: int, known: Collection[str]) -> Iterator[Fields]:
        """An array of objects."""
        for where, value in self.items(key, least, most):
            yield Fields(value, known, extension=self.extension, at=where)

    def items(self, key: str, least: int, most: int) -> list[tuple[str, Any]]:
        """The items of an array, each with its path."""
        value, where = self.value(key), self.at(key)
        if not isinstance(value, list):
            self.fail(where, f"must be an array, not {noun(value)}")
        if not least <= len(value) <= most:
            self.fail(where, f"must have {least} to {most} items, not {len(value)}")
        return [(f"{where}[{index}]", item) for index, item in enumerate(value)]

    def data(self, key: str) -> Any:
        """An object or an array of JSON, as a copy of its own."""
        value, where = self.value(key), self.at(key)
        if not isinstance(value, dict | list):
            self.fail(where, f"must be an object or an array, not {noun(value)}")
        return copied_json(value, where, extension=self.extension, max_bytes=MAX_DATA_BYTES, max_depth=MAX_DATA_DEPTH)

    def _text(self, value: object, where: str) -> str:
        text = self._string(value, where)
        if not text.strip():
            self.fail(where, "must not be blank")
        if (size := len(text.encode())) > MAX_TEXT_BYTES:
            self.fail(where, f"must have at most {MAX_TEXT_BYTES} bytes, not {size}")
        return text

    def _string(self, value: object, where: str) -> str:
        if not isinstance(value, str):
            self.fail(where, f"must be text, not {noun(value)}")
        if not _is_encodable(value):
            self.fail(where, "holds half of a surrogate pair, which no text may")
        return value

    def _word(self, value: object, where: str, words: Collection[str]) -> str:
        word = self._string(value, where)
        if word not in words:
            self.fail(where, f"must be one of {', '.join(words)}, not {shown(word)}", hint=_near(word, words))
        return word


def copied_json(value: object, at: str, *, extension: str | None, max_bytes: int, max_depth: int) -> Any:
    """A copy of a JSON value that shares nothing with it.

    Args:
      value: What was received.
      at: Its path, for the refusal.
      extension: Whose it is, for the refusal.
      max_bytes: Encoded, without white space.
      max_depth: Levels of objects and arrays.

    Raises:
      RegistrationRefused: It is larger or deeper than that (`resource_limit`), or no JSON (`invalid_payload`).
    """

    def fail(where: str, reason: str, code: str = "invalid_payload") -> Never:
        raise RegistrationRefused(reason, code=code, field=where, extension=extension)

    parts = 0

    def copy(each: Any, steps: list[str | int]) -> Any:
        # Where it is, is written only for a refusal, and what is certainly too large is not gone through to its end: of a
        # wide frame either would take seconds.
        nonlocal parts
        parts += 1
        if 2 * parts - 1 > max_bytes:  # a part has at least one character, and what separates it from the next
            fail(at, f"must have at most {max_bytes} bytes; so many parts take more", "resource_limit")
        if isinstance(each, dict | list) and len(steps) == max_depth:
            fail(at, f"is nested deeper than {max_depth} levels", "resource_limit")
        if isinstance(each, dict):
            if not all(isinstance(key, str) and _is_encodable(key) for key in each):
                fail(item_path(at, steps), "must have text for keys")
            return {key: copy(child, [*steps, key]) for key, child in each.items()}
        if isinstance(each, list):
            return [copy(child, [*steps, index]) for index, child in enumerate(each)]
        if not _is_scalar(each):
            fail(item_path(at, steps), "is not a value of JSON")
        return each

    result = copy(value, [])
    if (size := len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())) > max_bytes:
        fail(at, f"must have at most {max_bytes} bytes, not {size}", "resource_limit")
    return result


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return _is_encodable(value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and value in _INTEGERS)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _near(word: str, words: Collection[str]) -> str:
    hint = did_you_mean(word, words)
    return hint if hint.startswith("did") else ""


def _short(value: int) -> str:
    """A whole number; one of many digits only by its size, for writing it out may not be allowed."""
    return str(value) if value.bit_length() <= 64 else f"one of {value.bit_length()} bits"
