"""Typed reading of one JSON object, each mistake with its path; and the nearest known word for a misspelt one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from typing import Never

from trio_exthost.errors import ManifestError
from trio_exthost.packages.json_text import SHOWN_CHARACTERS, key_path, shown

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ALIASES = {"timeout": "tool_timeout_s", "timeout_s": "tool_timeout_s", "timeout_ms": "tool_timeout_s"}
"""Words that people expect to exist, and what they are called here."""

_NOUNS = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}


def noun(value: object) -> str:
    """What kind of JSON value this is, in words. Values themselves stay out of messages: they may be secrets."""
    return next((word for kind, word in _NOUNS.items() if isinstance(value, kind)), "a number")


def _short(value: float) -> str:
    """A number as it stood; one of a thousand digits only begun."""
    shown = str(value)
    return shown if len(shown) <= 24 else shown[:24] + "..."


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None."""
    lowered = word[:SHOWN_CHARACTERS].lower()
    close = difflib.get_close_matches(lowered, {*known, *_ALIASES}, n=1, cutoff=0.8)
    found = _ALIASES.get(close[0], close[0]) if close else None
    return found if found in known else None


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint that names the nearest known word, else all of them."""
    found = nearest(word, known)
    return f"did you mean {found}?" if found else f"known are {', '.join(known)}"


class Fields:
    """One object of a file, read key by key. An absent key gives the default.

    `lenient` is for what other hosts read too: null counts as absent there, as it does for them.
    """

    def __init__(
        self, values: Mapping[str, object], *, path: str, at: str = "$", extension: str | None = None, lenient: bool
    ) -> None:
        self._values = values
        self._path = path
        self._at = at
        self._lenient = lenient
        self.extension = extension

    def fail(self, where: str, message: str, hint: str = "") -> Never:
        """Raise the error for the place `where`."""
        raise ManifestError(message, path=self._path, where=where, extension=self.extension, hint=hint)

    def at(self, key: str) -> str:
        """The path of one of this object's keys."""
        return key_path(self._at, key)

    def has(self, key: str) -> bool:
        """Whether the key is there and says something."""
        return key in self._values and not (self._lenient and self._values[key] is None)

    def unknown(self, known: Collection[str]) -> list[str]:
        """The keys that are not among `known`, in the order of the file."""
        return [key for key in self._values if key not in known]

    def mapping(self, key: str) -> Mapping[str, object]:
        """An object; empty by default."""
        if not self.has(key):
            return {}
        value = self._values[key]
        if not isinstance(value, dict):
            self.fail(self.at(key), f"must be an object, not {noun(value)}")
        return value

    def text(self, key: str, default: str = "") -> str:
        """Text that can be encoded."""
        return self._text(self._values[key], self.at(key)) if self.has(key) else default

    def argument(self, key: str) -> str:
        """Text that can be handed to a program; empty by default."""
        return self._argument(self._values[key], self.at(key)) if self.has(key) else ""

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._values[key] if self.has(key) else default
        if not isinstance(value, bool):
            self.fail(self.at(key), f"must be true or false, not {noun(value)}")
        return value

    def choice(self, key: str, words: tuple[str, ...]) -> str | None:
        """One of these words."""
        if not self.has(key):
            return None
        word = self._text(self._values[key], self.at(key))
        if word not in words:
            self.fail(self.at(key), f"must be one of {', '.join(words)}, not {shown(word)}")
        return word

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number from `least` to `most`."""
        if not self.has(key):
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int):
            given = json.dumps(value) if isinstance(value, float) else noun(value)
            self.fail(self.at(key), f"must be a whole number, not {given}")
        if not least <= value <= most:
            self.fail(self.at(key), f"must be from {least} to {most}, not {_short(value)}")
        return value

    def seconds(self, key: str, most: float) -> float | None:
        """A number of seconds above 0, at most `most`."""
        if not self.has(key):
            return None
        value = self._values[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(self.at(key), f"must be a number of seconds, not {noun(value)}")
        if not 0 < value <= most:
            self.fail(self.at(key), f"must be above 0 and at most {most:g} seconds, not {_short(value)}")
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of texts that can be handed to a program."""
        return tuple(self._argument(value, where) for where, value in self._items(key))

    def distinct(self, key: str) -> tuple[str, ...]:
        """An array of texts, none empty and none twice."""
        seen: dict[str, str] = {}
        for where, value in self._items(key):
            word = self._text(value, where)
            if not word:
                self.fail(where, "must not be empty")
            if word in seen:
                self.fail(where, f"{shown(word)} stands twice; first at {seen[word]}")
            seen[word] = where
        return tuple(seen)

    def environment(self, key: str) -> dict[str, str]:
        """An object of environment variables. Values never appear in messages."""
        result: dict[str, str] = {}
        for name, value in self.mapping(key).items():
            where = key_path(self.at(key), name)
            self.check_env_name(name, where)
            result[name] = self._argument(value, where)
        return result

    def check_env_name(self, name: str, where: str) -> None:
        """Refuse what cannot name an environment variable."""
        if not _ENV_NAME.fullmatch(name):
            self.fail(where, f"{shown(name)} cannot name an environment variable")

    def _items(self, key: str) -> list[tuple[str, object]]:
        if not self.has(key):
            return []
        value = self._values[key]
        if not isinstance(value, list):
            self.fail(self.at(key), f"must be an array, not {noun(value)}")
        return [(f"{self.at(key)}[{index}]", item) for index, item in enumerate(value)]

    def _text(self, value: object, where: str) -> str:
        if not isinstance(value, str):
            self.fail(where, f"must be text, not {noun(value)}")
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(where, "holds half of a surrogate pair, which no text may")
        return value

    def _argument(self, value: object, where: str) -> str:
        text = self._text(value, where)
        if "\0" in text:
            self.fail(where, "holds a NUL character, which no program can be given")
        return text
