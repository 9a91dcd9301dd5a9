"""Merging the agent's own tools with those of extensions: a pure function of what is registered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import attrs

from trio_exthost.effects import EffectRecord

T = TypeVar("T")


@attrs.frozen
class Clash:
    """A tool of an extension that was left out, as the agent has one of that name and no override stands in the way."""

    name: str
    """The tool."""
    extension: str
    """Whose was left out."""
    handle: int
    """Its record, which stays in the ledger."""


@attrs.frozen
class Merged(Generic[T]):
    """The outcome of a merge."""

    tools: tuple[T, ...]
    """The agent's own in their order, overridden ones replaced where they stood; then the others in order of acceptance."""
    clashes: tuple[Clash, ...] = ()
    """What was left out, in order of acceptance."""
    reserved: tuple[str, ...] = ()
    """Names that are kept for an extension which is not there: calls of them are refused."""


def merge(
    base: Iterable[tuple[str, T]],
    records: Iterable[EffectRecord],
    *,
    offer: Callable[[EffectRecord], T],
    reserved: Mapping[str, Collection[str]],
) -> Merged[T]:
    """Merge, and change nothing.

    Args:
      base: The agent's tools by name, in its order.
      records: The tools of extensions that are in force, in order of acceptance.
      offer: Makes the agent's kind of tool of a record.
      reserved: Names that only these extensions may serve. Where no record of theirs is in force,
        nobody else's tool of that name is offered.
    """
    tools: dict[str, T] = dict(base)
    clashes: list[Clash] = []
    served: set[str] = set()
    for record in records:
        registration, extension = record.registration, record.owner.extension_id
        name = registration.key
        if name in reserved and extension not in reserved[name]:
            continue
        if name in tools and not registration.override:
            clashes.append(Clash(name, extension, record.handle))
            continue
        served.add(name)
        tools[name] = offer(record)
    absent = tuple(name for name in reserved if name not in served)
    for name in absent:
        tools.pop(name, None)
    return Merged(tuple(tools.values()), tuple(clashes), absent)
