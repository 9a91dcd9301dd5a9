"""The targets by name, where each begins, and the words it is made of. A target is a module `target_NAME` with `fuzz_one`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

NAMES = tuple(sorted(each.stem.removeprefix("target_") for each in Path(__file__).parent.glob("target_*.py")))


def load(name: str) -> Callable[[bytes], None]:
    """What is run on each input; it raises where something does not hold."""
    target: Callable[[bytes], None] = importlib.import_module(f"fuzz.target_{name}").fuzz_one
    return target


def seeds(name: str) -> Iterator[bytes]:
    """Inputs to begin with."""
    yield from importlib.import_module(f"fuzz.target_{name}").seeds()


def dictionary(name: str) -> list[bytes]:
    """Words to put in."""
    words: tuple[bytes, ...] = importlib.import_module(f"fuzz.target_{name}").DICTIONARY
    return sorted({word for word in words if 0 < len(word) <= 60})
