"""What each setting of a policy may be: the checks that a file and a program share.

A reader takes a value as it was written and gives it back as the policy keeps it, or raises `PolicyError` with `where`
relative to that value: empty, or `[1]` for an item of a list.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import date, time
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from trio_exthost.effects.permissions import PERMISSION_FAMILIES, PERMISSIONS, is_permission
from trio_exthost.errors import PolicyError
from trio_exthost.policy.settings import EVERY_TOOL, POINTS, TOOL_PREFIX, HeadlessAsk, OnAbsent, RestartMode, Stream
from trio_exthost.policy.verdict import OnFailure

E = TypeVar("E", bound=enum.Enum)

SECONDS_MAXIMUM = 86_400
"""The longest wait that can be set: a day."""
RESTARTS_MAXIMUM = 1000
"""The largest restart budget."""
NAME_CHARACTERS = 128
"""The longest name of an extension, tool or command."""
MISTAKES = 50
"""How many mistakes the text of one error tells; `PolicyError.problems` has all."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NOUNS: Mapping[type, str] = MappingProxyType(
    {bool: "true or false", int: "a number", float: "a number", str: "text", dict: "a table", list: "a list",
     date: "a date", time: "a time"}
)  # fmt: skip


# --- words ---------------------------------------------------------------------------------------------------------


def toml_text(text: str) -> str:
    """The text in quotes, as TOML and JSON both read it; what is not printable as an escape."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def key_path(at: str, key: str) -> str:
    """The path of a key in the table at `at`, as one would write it: `extensions.sandbox`, `conflicts.prefer."a b"`."""
    shown = key if _BARE_KEY.fullmatch(key) else toml_text(key)
    return f"{at}.{shown}" if at else shown


def noun(value: object) -> str:
    """What kind of value this is, in words."""
    return next((word for kind, word in _NOUNS.items() if isinstance(value, kind)), f"a {type(value).__name__}")


def shown(text: str) -> str:
    """A text that somebody got wrong, in quotes, at most `NAME_CHARACTERS` of it."""
    return toml_text(text[:NAME_CHARACTERS])


def did_you_mean(word: str, known: Collection[str], listed: Collection[str] | None = None) -> str:
    """A hint that names the nearest known word; else all of them, or those `listed`."""
    import difflib  # noqa: PLC0415 - only for a mistake

    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known if listed is None else listed)}"


# --- problems ------------------------------------------------------------------------------------------------------


def moved(error: PolicyError, at: str) -> list[PolicyError]:
    """The error's problems, told from the table or key at `at` rather than from where they were found."""
    return [
        PolicyError(
            each.reason,
            where=at + ("." if at and each.where and not each.where.startswith("[") else "") + each.where,
            hint=each.hint,
        )
        for each in error.problems
    ]


def together(problems: list[PolicyError], path: str = "") -> PolicyError:
    """These problems of the file `path`, at least one, as one error; its text tells the first `MISTAKES`."""
    placed = tuple(PolicyError(each.reason, path=path, where=each.where, hint=each.hint) for each in problems)
    if len(placed) == 1:
        return placed[0]
    lines = "".join(f"\n  {each}" for each in problems[:MISTAKES])
    if len(placed) > MISTAKES:
        lines += f"\n  and {len(placed) - MISTAKES} more"
    return PolicyError(f"{len(placed)} mistakes{lines}", path=path, problems=placed)


def raise_all(problems: list[PolicyError], path: str = "") -> None:
    """Raise the problems of the file `path` as one error, if there are any."""
    if problems:
        raise together(problems, path)


# --- readers -------------------------------------------------------------------------------------------------------


def read_point(point: str) -> bool:
    """Whether anything can be refused at the point.

    Raises:
      PolicyError: There is no such point.
    """
    if point not in POINTS:
        raise PolicyError(f"{shown(point)} is no point", hint=did_you_mean(point, POINTS))
    return POINTS[point]


def read_name(value: object) -> str:
    """A name of an extension, tool or command."""
    if not isinstance(value, str):
        raise PolicyError(f"must be a name, not {noun(value)}")
    if not _is_name(value):
        raise PolicyError(
            f"{shown(value)} is no name", hint=f"1 to {NAME_CHARACTERS} printable characters, no space at the ends"
        )
    return value


def _is_name(text: str) -> bool:
    return text.isprintable() and text == text.strip() and 0 < len(text) <= NAME_CHARACTERS


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"must be true or false, not {noun(value)}")
    return value


def _read_word(kind: type[E], value: object) -> E:
    if isinstance(value, kind):
        return value
    words = [each.value for each in kind]
    if not isinstance(value, str) or value not in words:
        what = shown(value) if isinstance(value, str) else noun(value)
        raise PolicyError(f"must be {' or '.join(words)}, not {what}")
    return kind(value)


def _read_seconds(value: object, *, zero: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyError(f"must be a number of seconds, not {noun(value)}")
    if not (0 < value <= SECONDS_MAXIMUM or (zero and value == 0)):
        span = "from 0 to" if zero else "above 0 and at most"
        raise PolicyError(f"must be {span} {SECONDS_MAXIMUM} seconds, not {_number(value)}")
    return float(value)


def _read_budget(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PolicyError(f"must be a whole number, not {value if isinstance(value, float) else noun(value)}")
    if not 1 <= value <= RESTARTS_MAXIMUM:
        hint = 'restart = "never" allows none' if value == 0 else ""
        raise PolicyError(f"must be from 1 to {RESTARTS_MAXIMUM}, not {_number(value)}", hint=hint)
    return value


def _number(value: object) -> str:
    """The number as it stood, but that of an endless one only the size is told: Python refuses to print it."""
    is_endless = isinstance(value, int) and abs(value) >= 10**20
    return "a number of more than 20 digits" if is_endless else str(value)


def _read_words(value: object, wrong: Callable[[str], tuple[str, str] | None]) -> frozenset[str]:
    """A list of texts, none twice; `wrong` gives what is wrong with a text, and a hint."""
    if isinstance(value, str | Mapping) or not isinstance(value, Collection):
        raise PolicyError(f"must be a list of texts, not {noun(value)}", hint="in brackets, each in quotes")
    words: set[str] = set()
    problems: list[PolicyError] = []
    for index, word in enumerate(value):
        if not isinstance(word, str):
            problems.append(PolicyError(f"must be text, not {noun(word)}", where=f"[{index}]"))
        elif word in words:
            problems.append(PolicyError(f"{shown(word)} stands twice", where=f"[{index}]"))
        elif problem := wrong(word):
            problems.append(PolicyError(problem[0], where=f"[{index}]", hint=problem[1]))
        else:
            words.add(word)
    raise_all(problems)
    return frozenset(words)


def _wrong_guard(word: str) -> tuple[str, str] | None:
    if word.startswith(TOOL_PREFIX):
        name = word.removeprefix(TOOL_PREFIX)
        if word == EVERY_TOOL or (_is_name(name) and "*" not in name):
            return None
        return f"{shown(name)} is no name of a tool", f"name one tool, or {EVERY_TOOL} for all"
    if POINTS.get(word):
        return None
    if word in POINTS:
        return f"nothing can be refused at {word}, so nothing can guard it", ""
    points = [point for point, can_block in POINTS.items() if can_block]
    return f"{shown(word)} cannot be guarded", did_you_mean(word, points, ["tool:<name>", EVERY_TOOL, *points])


def _wrong_grant(word: str) -> tuple[str, str] | None:
    if is_permission(word):
        return None
    return f"{shown(word)} is no permission", did_you_mean(word, [*PERMISSIONS, *PERMISSION_FAMILIES])


_wait = partial(_read_seconds, zero=False)
_delay = partial(_read_seconds, zero=True)

POINT_READERS: Mapping[str, Callable[[object], Any]] = MappingProxyType(
    {"on_failure": partial(_read_word, OnFailure), "deadline_s": _wait, "stream": partial(_read_word, Stream)}
)
"""The settings of one point, in the order in which they are written."""

EXTENSION_READERS: Mapping[str, Callable[[object], Any]] = MappingProxyType(
    {
        "required": _read_flag,
        "guards": partial(_read_words, wrong=_wrong_guard),
        "grant": partial(_read_words, wrong=_wrong_grant),
        "on_absent": partial(_read_word, OnAbsent),
        "restart": partial(_read_word, RestartMode),
        "restart_budget": _read_budget,
        "restart_window_s": _wait,
        "restart_delay_s": _delay,
        "restart_delay_max_s": _delay,
        "headless_ask": partial(_read_word, HeadlessAsk),
    }
)
"""The settings of one extension, in the order in which they are written."""


def read_setting(name: str, value: object) -> Any:
    """A setting of a point or an extension, as the policy keeps it.

    Raises:
      PolicyError: It is not usable; `where` is the setting's name, for an item of a list with its place.
    """
    reader = POINT_READERS.get(name) or EXTENSION_READERS[name]
    try:
        return reader(value)
    except PolicyError as exc:
        raise together(moved(exc, name)) from None
