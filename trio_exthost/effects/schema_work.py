"""How much work a JSON Schema can make: a bound that is known before the work is done.

Checking a value applies schemas to its parts. A schema of a few hundred bytes can apply itself to one part any number of
times (`allOf` of two references to a schema that is an `allOf` of two references ...), and no clock stops the checker. So
the schema is made a graph once. What applies at the same place (`allOf`, `$ref`, `if` ...) is counted together; what
applies one level further down (`properties`, `items` ...) leads to the count of that level. The bound for a value is the
most schemas that can apply on the way from its top to one of its ends, times the number of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Never, TypeAlias
from urllib.parse import unquote

import attrs

MAX_SUBSCHEMAS = 5000
"""Schemas within one schema."""
MAX_PATTERNS = 32
"""Regular expressions of one schema."""
MAX_APPLIED = 10_000
"""Schemas that one schema applies to the same part of a value, what it refers to included."""

_MAX_STEPS = 100_000  # of the analysis itself: well under a second
_SATURATED = 10**15
_LOOK_AHEAD = 16  # levels; few schemas without recursion are deeper
_COMPARED = 6
"""What comparing a value with one of an enum weighs, against a plain check: 270 ns at worst."""
_DIVIDED = 300
"""What `multipleOf` weighs: 15 us at worst, for 1e300 and 1e-300."""
_AGAIN = 3  # unevaluated... goes through its neighbours once more, to learn what they evaluated

_ONE_HERE = ("not", "if", "then", "else")
_LIST_HERE = ("allOf", "anyOf", "oneOf")
_MAP_HERE = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ONE_IN_OBJECT = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ONE_IN_ARRAY = ("items", "additionalItems", "contains", "unevaluatedItems")
_MAP_APART = ("$defs", "definitions")

Path: TypeAlias = tuple[str | int, ...]
Fail: TypeAlias = Callable[[Path, str, str], Never]
_Group: TypeAlias = "tuple[str, str | int | None]"
"""Object or array, and the one member it is about; None for any member."""


@attrs.define(eq=False)
class _Node:
    """One schema: what it applies at the same place, and what it applies to members."""

    path: Path
    weight: int = 1
    again: int = 1
    here: list[int] = attrs.field(factory=list)
    below: list[tuple[_Group, int]] = attrs.field(factory=list)
    references: list[tuple[str, str]] = attrs.field(factory=list)


@attrs.frozen
class _Entry:
    """A schema that applies to a member, with all that applies together with it."""

    weight: int
    below: dict[_Group, dict[int, int]]


class SchemaWork:
    """The bound for one schema. It only ever learns about greater depths, so one schema can serve all its values."""

    def __init__(self, schema: dict[str, Any], fail: Fail) -> None:
        """Analyse a schema, all references of which must be of its own document.

        Args:
          schema: A copy that nobody changes; it is not kept.
          fail: Raises the refusal, for a path in the schema, a reason and a code.
        """
        self._fail = fail
        self._nodes: dict[int, _Node] = {}
        self._anchors: dict[str, tuple[dict[str, Any], Path]] = {}
        self._patterns = 0
        self._steps = 0
        self._read(schema)
        self._entries: dict[int, _Entry] = {}
        self._flatten(id(schema))
        self._top = id(schema)
        self._levels = [{key: entry.weight for key, entry in self._entries.items()}]
        self._is_settled = False
        self.ceiling: int | None = self.most(_LOOK_AHEAD) if self._settles(_LOOK_AHEAD) else None
        """What `most` never exceeds; None where deeper values can make ever more work."""

    def most(self, depth: int) -> int:
        """Schemas that can apply on the way from the top of a value to one of its ends, `depth` levels below."""
        self._settles(depth)
        return self._levels[min(depth, len(self._levels) - 1)][self._top]

    def _settles(self, depth: int) -> bool:
        """Count up to this depth; whether it makes no difference any more."""
        while not self._is_settled and len(self._levels) <= depth:
            level = self._next(self._levels[-1])
            self._is_settled = level == self._levels[-1]
            if not self._is_settled:
                self._levels.append(level)
        return self._is_settled

    # --- reading ---

    def _read(self, schema: dict[str, Any]) -> None:
        waiting: list[tuple[Any, Path]] = [(schema, ())]
        referring: list[_Node] = []
        while waiting or referring:
            while waiting:
                each, path = waiting.pop()
                if isinstance(each, dict) and id(each) not in self._nodes:
                    node = self._node(each, path)
                    waiting.extend(_subschemas(each, path))
                    if node.references:
                        referring.append(node)
            while referring:
                node = referring.pop()
                for keyword, reference in node.references:
                    target, path = self._target(schema, reference, (*node.path, keyword))
                    if isinstance(target, dict):
                        node.here.append(id(target))
                        waiting.append((target, path))

    def _node(self, schema: dict[str, Any], path: Path) -> _Node:
        node = self._nodes[id(schema)] = _Node(path)
        if len(self._nodes) > MAX_SUBSCHEMAS:
            self._fail((), f"holds more than {MAX_SUBSCHEMAS} schemas", "resource_limit")
        for keyword in ("$id", "$schema"):
            if path and keyword in schema:
                self._fail((*path, keyword), "is allowed at the top only: a schema is one document", "invalid_payload")
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                self._anchors.setdefault(anchor, (schema, path))
        named = schema.get("patternProperties")
        self._patterns += ("pattern" in schema) + (len(named) if isinstance(named, dict) else 0)
        if self._patterns > MAX_PATTERNS:
            self._fail((), f"holds more than {MAX_PATTERNS} regular expressions", "resource_limit")
        enum = schema.get("enum")
        if isinstance(enum, list) and not all(isinstance(each, str) for each in enum):
            node.weight += _COMPARED * len(
                enum
            )  # compared one by one: a float with each of many ints; texts are looked up
        if "multipleOf" in schema:
            node.weight += _DIVIDED
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            node.again = _AGAIN
        node.references = [(word, schema[word]) for word in _REFERENCES if isinstance(schema.get(word), str)]
        node.here = [id(child) for _, child in _here(schema) if isinstance(child, dict)]
        node.below = [(group, id(child)) for group, _, child in _below(schema) if isinstance(child, dict)]
        return node

    def _target(self, root: dict[str, Any], reference: str, at: Path) -> tuple[Any, Path]:
        """What an in-document reference means, and where it is."""
        if not reference.startswith("#"):
            reason = f"{reference!r:.100} is outside of this schema, and nothing is fetched: refer to #/$defs/<name>"
            self._fail(at, reason, "invalid_payload")
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            if fragment not in self._anchors:
                self._fail(at, f"there is no anchor {fragment!r:.100} in this schema", "invalid_payload")
            return self._anchors[fragment]
        target: Any = root
        path: Path = ()
        for step in fragment.split("/")[1:]:
            word = step.replace("~1", "/").replace("~0", "~")
            key: str | int = int(word) if isinstance(target, list) and re.fullmatch("[0-9]{1,9}", word) else word
            try:
                target = target[key]
            except (LookupError, TypeError):
                self._fail(at, f"there is nothing at {reference!r:.100} in this schema", "invalid_payload")
            path = (*path, key)
        return target, path

    # --- counting ---

    def _flatten(self, top: int) -> None:
        waiting = [top]
        while waiting:
            key = waiting.pop()
            if key not in self._entries:
                entry = self._entries[key] = self._entry(key)
                waiting.extend(child for members in entry.below.values() for child in members)

    def _entry(self, top: int) -> _Entry:
        """All that applies at one place because one schema does, with how often."""
        times = dict.fromkeys(order := self._ordered(top), 0)
        times[top] = 1
        weight = 0
        below: dict[_Group, dict[int, int]] = {}
        for key in order:
            node, often = self._nodes[key], times[key]
            weight += often * node.weight
            for child in node.here:
                times[child] = min(times[child] + often * node.again, _SATURATED)
            for group, child in node.below:
                members = below.setdefault(group, {})
                members[child] = min(members.get(child, 0) + often, _SATURATED)
            self._step(1 + len(node.here) + len(node.below))
        if weight > MAX_APPLIED:
            reason = f"applies more than {MAX_APPLIED} schemas to one value: fewer references to references"
            self._fail(self._nodes[top].path, reason, "resource_limit")
        return _Entry(weight, below)

    def _ordered(self, top: int) -> list[int]:
        """What applies at the same place as `top`, each after all that bring it there."""
        done: dict[int, None] = {}
        begun = {top}
        stack: list[tuple[int, Iterator[int]]] = [(top, iter(self._nodes[top].here))]
        while stack:
            key, children = stack[-1]
            self._step(1)
            child = next(children, None)
            if child is None:
                stack.pop()
                begun.discard(key)
                done[key] = None
            elif child in begun:
                reason = "refers back to itself for the same value, so checking would never end"
                self._fail(self._nodes[child].path, reason, "invalid_payload")
            elif child not in done:
                begun.add(child)
                stack.append((child, iter(self._nodes[child].here)))
        return list(reversed(done))

    def _step(self, count: int) -> None:
        self._steps += count
        if self._steps > _MAX_STEPS:
            self._fail((), "is too intricate: fewer references to references", "resource_limit")

    def _next(self, level: dict[int, int]) -> dict[int, int]:
        """The counts for one level more."""
        return {key: min(entry.weight + _worst(entry.below, level), _SATURATED) for key, entry in self._entries.items()}


def _worst(below: dict[_Group, dict[int, int]], level: dict[int, int]) -> int:
    """The most that can apply to one member: one of a name, and what applies to all; of an object, or of an array."""
    named = {"object": 0, "array": 0}
    every = {"object": 0, "array": 0}
    for (container, name), members in below.items():
        count = sum(often * level[child] for child, often in members.items())
        if name is None:
            every[container] = count
        else:
            named[container] = max(named[container], count)
    return max(named[each] + every[each] for each in named)


def _here(schema: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """What a schema applies to the same value, references apart."""
    yield from (((word,), schema[word]) for word in _ONE_HERE if word in schema)
    for word in (*_LIST_HERE, *_MAP_HERE):
        yield from (((word, key), child) for key, child in _members(schema.get(word)))


def _below(schema: dict[str, Any]) -> Iterator[tuple[_Group, Path, Any]]:
    """What a schema applies to members of the value."""
    for key, child in _members(schema.get("properties")):
        yield ("object", key), ("properties", key), child
    for key, child in _members(schema.get("patternProperties")):
        yield ("object", None), ("patternProperties", key), child
    for word in ("prefixItems", "items"):
        if isinstance(schema.get(word), list):
            yield from ((("array", key), (word, key), child) for key, child in _members(schema[word]))
    yield from ((("object", None), (word,), schema[word]) for word in _ONE_IN_OBJECT if word in schema)
    yield from ((("array", None), (word,), schema[word]) for word in _ONE_IN_ARRAY if word in schema)


def _subschemas(schema: dict[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    """Every schema directly in a schema."""
    yield from ((child, (*path, *steps)) for steps, child in _here(schema))
    yield from ((child, (*path, *steps)) for _, steps, child in _below(schema))
    for word in _MAP_APART:
        yield from ((child, (*path, word, key)) for key, child in _members(schema.get(word)))


def _members(value: Any) -> list[tuple[str | int, Any]]:
    """Keys and values of an object, or of an array; none of anything else."""
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []
