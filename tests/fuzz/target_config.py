"""Any values as the configuration of a host, and a host that runs with what was taken.

What must hold: `ConfigError` where no host could run with it; else an extension starts, is asked and stops under it, or is
told to have failed, and nothing but our own errors comes out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import trio
import trio.testing
from fuzz.choices import Choices
from fuzz.scratch import scratch
from runtime.fakes import Guest, world

from trio_exthost import ConfigError, Deadlines, HostConfig, HostError, Limits
from trio_exthost.packages import child_environment, discover
from trio_exthost.packages.manifest import Manifest

_FOLDER = scratch()
NUMBERS: tuple[Any, ...] = (
    0, 1, 2, 3, 7, 100, 4096, 2**31 - 1, 2**31, 2**32, 2**40, 2**40 + 1, 2**63, 2**64, 10**400, -1, -(10**400), 0.001, 0.5, 1.0,
    1e-300, 1e9, 1e10, 1e300, float("inf"), float("-inf"), float("nan"), True, None, "1", [], 1j,
)  # fmt: skip
TEXTS: tuple[Any, ...] = (
    "", "x", "hold", "show", "/", "a/b", "..", "~", "A=b", "\x00", "a\x00b", "\n", "é", "😀", "\ud800", "\udc80", "(a+)+$", "a*", "(", "[",
    "a{9999999999}", "(?>a)", "\\", "^$", "x" * 5000,
)  # fmt: skip
WRONG: tuple[Any, ...] = (None, 1, [], b"x")
DICTIONARY: tuple[bytes, ...] = ()
_DEADLINES = [field.name for field in attrs.fields(Deadlines)]
_LIMITS = [field.name for field in attrs.fields(Limits)]


def seeds() -> Iterator[bytes]:
    yield b""
    for field in range(len(_LIMITS)):
        yield from (bytes([0, 1, field, number]) for number in range(12))
    for field in range(len(_DEADLINES)):
        yield from (bytes([1, field, number, 0]) for number in range(len(NUMBERS)))
    yield from (bytes([0, 0, kind, text, text]) for kind in range(8) for text in range(len(TEXTS)))


def settings(choices: Choices) -> dict[str, Any]:
    """What somebody gives a configuration; mostly of the right types."""

    def numbers(names: list[str]) -> dict[str, Any]:
        return {choices.pick(names): choices.pick(NUMBERS) for _ in range(choices.below(6))}

    def texts() -> list[Any]:
        return [choices.pick(TEXTS) for _ in range(choices.below(3))]

    given: dict[str, Any] = {"deadlines": Deadlines(**numbers(_DEADLINES)), "limits": Limits(**numbers(_LIMITS))}
    makers: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("env", lambda: {choices.pick(TEXTS): choices.pick((*TEXTS, *WRONG)) for _ in range(choices.below(3))}),
        ("mask", lambda: choices.pick((texts(), "abc", [None]))),
        ("text_stream", lambda: choices.pick((*TEXTS, *WRONG))),
        ("host_name", lambda: choices.pick((*TEXTS, *WRONG))),
        ("host_version", lambda: choices.pick((*TEXTS, *WRONG))),
        ("extensions", texts),
        ("project_roots", texts),
        ("user_roots", lambda: choices.pick((None, texts()))),
    )
    for _ in range(choices.below(4)):
        name, make = choices.pick(makers)
        given[name] = make()
    return given


def fuzz_one(data: bytes) -> None:
    try:
        given = settings(Choices(data))
        config = HostConfig(data_dir=_FOLDER, **given)
    except ConfigError as exc:
        str(exc)
        return
    discover(config, _FOLDER)
    env = child_environment({}, Manifest(name="x", exec="y"), config.env)
    for name, value in env.items():
        assert b"\0" not in os.fsencode(name) + os.fsencode(value)
    trio.run(use, given, clock=trio.testing.MockClock(autojump_threshold=0))


async def guest(guest: Guest) -> None:
    guest.greet(events=["tick"], intercept=["tool_call"])
    while (frame := await guest.frame()) is not None and frame["type"] != "shutdown":
        if frame["type"] == "event_intercept":
            guest.send(type="event_intercept_response", id=frame["id"])


async def use(given: dict[str, Any]) -> None:
    """Start, tell, ask and stop; an extension that such a configuration fails is told of, and harms nobody."""
    async with world(_FOLDER, **given) as (around, host):
        around.add("guest", guest)
        async with host.open_session("s") as session:
            await session.load_all()
            for act in (
                lambda: session.emit("tick", {"a": 1}),
                lambda: session.intercept("tool_call", {"tool_name": "x"}),
            ):
                try:
                    done = act()
                    if not isinstance(done, int):
                        await done
                except HostError as exc:
                    str(exc)
