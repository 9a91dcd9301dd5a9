"""A policy from a file in TOML. Strict: a misspelt key would be a guard that is not one.

[defaults]                      headless_ask
[defaults.<point>]              on_failure, deadline_s; of assistant_message also stream
[extensions.<name>]             required, guards, grant, on_absent, restart, restart_*, headless_ask
[extensions.<name>.<point>]     on_failure, deadline_s
[conflicts.prefer]              <name of a tool or command> = <extension>
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from trio_exthost.errors import PolicyError
from trio_exthost.policy.checks import (
    EXTENSION_READERS,
    POINT_READERS,
    did_you_mean,
    key_path,
    moved,
    noun,
    raise_all,
)
from trio_exthost.policy.extension_policy import ExtensionPolicy, PointPolicy
from trio_exthost.policy.policy import Policy
from trio_exthost.policy.settings import POINTS

T = TypeVar("T")

LIMIT_BYTES = 1024 * 1024
"""The largest file that is read."""

_ASK = {"headless_ask": EXTENSION_READERS["headless_ask"]}


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read the policy in a file, UTF-8, one leading byte order mark and CRLF accepted. Blocks while it reads.

    Raises:
      PolicyError: It is not there, not readable, or not usable; says where.
    """
    file = os.fsdecode(path)
    printable = file if file.isprintable() else ascii(file)
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(LIMIT_BYTES + 1)
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        why = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise PolicyError(f"cannot be read: {why}", path=printable) from exc
    if len(data) > LIMIT_BYTES:
        raise PolicyError(f"is larger than {LIMIT_BYTES} bytes, which no policy is", path=printable)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise PolicyError("is not UTF-8", path=printable, where=f"line {line}", hint="save it as UTF-8") from None
    return parse_policy(text, file=printable)


def parse_policy(text: str, *, file: str = "") -> Policy:
    """The policy in a text, touching no file.

    Args:
      text: TOML.
      file: Named in errors.

    Raises:
      PolicyError: It is not usable. `where` is line and column of what is no TOML (or the end of it), else the path of a
        key; `problems` holds all mistakes that can be told from one another.
    """
    reading = _Reading()
    policy = reading.policy(_toml(text, file))
    raise_all(reading.problems, file)
    return policy


def _toml(text: str, file: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise PolicyError("the values are nested too deeply", path=file) from None
    except tomllib.TOMLDecodeError as exc:
        message, _, position = str(exc).rpartition(" (at ")  # "(at line 3, column 5)", or "(at end of document)"
        where = position.removesuffix(")")
        raise PolicyError(f"is no TOML: {message[:1].lower()}{message[1:]}", path=file, where=where) from None
    except ValueError:
        raise PolicyError("a number has too many digits", path=file) from None


class _Reading:
    """One pass over a file that goes on after a mistake, so that all are told at once."""

    def __init__(self) -> None:
        self.problems: list[PolicyError] = []

    def policy(self, raw: Mapping[str, object]) -> Policy:
        defaults = self.table(raw.get("defaults", {}), "defaults")
        extensions = self.table(raw.get("extensions", {}), "extensions")
        conflicts = self.table(raw.get("conflicts", {}), "conflicts")
        prefer = self.table(conflicts.get("prefer", {}), "conflicts.prefer")
        self.refuse_unknown(raw, "", ("defaults", "extensions", "conflicts"))
        self.refuse_unknown(conflicts, "conflicts", ("prefer",))
        self.refuse_unknown(defaults, "defaults", (*_ASK, *POINTS))
        read = {
            name: extension
            for name, value in extensions.items()
            if (extension := self.extension(value, key_path("extensions", name))) is not None
        }
        given: dict[str, Any] = {
            **self.settings(defaults, "defaults", _ASK),
            "defaults": self.points(defaults, "defaults"),
            "extensions": read,
            "prefer": prefer,
        }
        return self.made("", Policy, given) or Policy()

    def extension(self, value: object, at: str) -> ExtensionPolicy | None:
        table = self.table(value, at)
        known = (*EXTENSION_READERS, *POINTS)
        self.refuse_unknown(table, at, known, (*EXTENSION_READERS, "the points"))
        before = len(self.problems)
        given = self.settings(table, at, EXTENSION_READERS)
        points = self.points(table, at)
        return self.made(at, ExtensionPolicy, {**given, "points": points}) if len(self.problems) == before else None

    def points(self, table: Mapping[str, object], at: str) -> dict[str, PointPolicy]:
        result: dict[str, PointPolicy] = {}
        for name in POINTS:
            if name in table:
                where = f"{at}.{name}"
                inside = self.table(table[name], where)
                self.refuse_unknown(inside, where, tuple(POINT_READERS))
                result[name] = PointPolicy(**self.settings(inside, where, POINT_READERS))
        return result

    def settings(
        self, table: Mapping[str, object], at: str, readers: Mapping[str, Callable[[object], Any]]
    ) -> dict[str, Any]:
        """The settings among the table's keys that can be used."""
        result: dict[str, Any] = {}
        for name, reader in readers.items():
            if name in table:
                try:
                    result[name] = reader(table[name])
                except PolicyError as exc:
                    self.problems += moved(exc, f"{at}.{name}")
        return result

    def made(self, at: str, kind: Callable[..., T], given: Mapping[str, Any]) -> T | None:
        """The value, or None if what is given does not go together."""
        try:
            return kind(**given)
        except PolicyError as exc:
            self.problems += moved(exc, at)
            return None

    def table(self, value: object, at: str) -> Mapping[str, object]:
        if isinstance(value, dict):
            return value
        self.problems.append(PolicyError(f"must be a table, not {noun(value)}", where=at, hint=f"write [{at}]"))
        return {}

    def refuse_unknown(
        self, table: Mapping[str, object], at: str, known: tuple[str, ...], listed: tuple[str, ...] | None = None
    ) -> None:
        for key in table:
            if key not in known:
                where = key_path(at, key[:128])
                self.problems.append(
                    PolicyError("is not known here", where=where, hint=did_you_mean(key, known, listed))
                )
