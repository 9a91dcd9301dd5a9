"""What happens in a chaos run, as far as a seed can say: who the extensions are and what each is up to; and how to run it again.

The clock, the processes and the order in which the machine runs them are real, so two runs of one seed are not the same to
the millisecond; what everybody wants to do, and in which order, is.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from typing import Any

import attrs

from trio_exthost import Deadlines, ExtensionPolicy, Limits, OnFailure, PointPolicy, Policy

FAMILIES = ("stall", "die", "flood", "answer", "close", "leave", "register", "store", "ask")
"""Kinds of mischief; what each does is in `program.py`."""
SPEAKS_EFFECTS = {"register", "store"}
"""Those that need the effect dialect."""
WITNESS, WARDEN = "witness", "warden"
"""The bystander that does everything right; and a required guard that does not always."""
GUESTS = tuple(f"guest{number}" for number in range(8))
SANDBOX = GUESTS[0]
"""One of the eight, which overrides the agent's `bash` and never gives it up by itself."""
SESSIONS = ("left", "right")

DEADLINES = Deadlines(
    hello_s=1.5,
    ready_cap_s=1.5,
    intercept_s=0.5,
    transform_s=0.4,
    chain_s=3.0,
    life_cycle_s=0.4,
    command_s=0.7,
    tool_s=0.7,
    tool_maximum_s=1.5,
    nested_call_s=1.0,
    circuit_delay_s=0.3,
    circuit_delay_max_s=1.0,
    reload_total_s=3.0,
    reload_grace_s=0.4,
    stall_s=0.8,
    stop_grace_s=0.3,
    term_grace_s=0.2,
    stop_total_s=3.0,
)
LIMITS = Limits(frame_bytes=256 * 1024, oversize_stop_bytes=4 * 2**20, log_bytes=256 * 1024, diagnostics=300)
STEP_S = 4.0
"""How much longer than its deadline anything may take on a busy machine."""


@attrs.frozen
class Guest:
    """An extension."""

    name: str
    families: tuple[str, ...]
    """What it is up to."""
    effects: bool
    """Whether it speaks the effect dialect."""
    priority: int
    """In its manifest."""

    @property
    def section(self) -> dict[str, Any]:
        """Its manifest's `exthost`."""
        section: dict[str, Any] = {"priority": self.priority}
        if self.name in (WITNESS, WARDEN):
            section["startup_timeout_s"] = 20  # a busy machine must not make a bad one of the good one
        if self.effects:
            section["permissions"] = ["tools.register", "commands.register", "session.write", "client.contribute"]
            section["state_schema"] = 1
        return section


@attrs.frozen
class Plan:
    """One run."""

    seed: int
    seconds: float
    """Of real time, in which everybody does what they like."""
    guests: tuple[Guest, ...]
    is_abrupt: bool
    """Whether everything is cancelled in the middle of it rather than coming to rest first."""

    @property
    def policy(self) -> Policy:
        """What the operator says: two guards are required, one may override `bash`, who crashes comes back."""
        again: Mapping[str, Any] = {
            "restart": "on_crash",
            "restart_budget": 1000,
            "restart_delay_s": 0.05,
            "restart_delay_max_s": 0.4,
        }
        guard = {"required": True, "guards": ["tool:*"]}
        extensions = {WARDEN: ExtensionPolicy(**guard, **again)}
        patient = PointPolicy(deadline_s=DEADLINES.chain_s)
        extensions[WITNESS] = ExtensionPolicy(**guard, points={"tool_call": patient})
        lenient = {"tool_call": PointPolicy(on_failure=OnFailure.ALLOW)}
        for number, each in enumerate(guest for guest in self.guests if guest.name in GUESTS):
            grant = ["tools.override:bash"] if each.name == SANDBOX else []
            extensions[each.name] = ExtensionPolicy(grant=grant, points=lenient if number % 2 else {}, **again)
        return Policy(extensions=extensions)


def chance(*who: object) -> random.Random:
    """Everybody throws dice of their own, so that one who is late changes nothing for the others."""
    return random.Random("/".join(map(str, who)))


def make_plan(seed: int, seconds: float) -> Plan:
    """Who takes part: each kind of mischief has somebody that is mainly after it."""
    dice = chance(seed, "plan")
    mains = list(FAMILIES[: len(GUESTS)])
    dice.shuffle(mains)
    guests = []
    for name, main in zip(GUESTS, mains, strict=True):
        families = {main, *dice.sample(FAMILIES, 2)}
        effects = dice.random() < 0.2 or name == SANDBOX or bool(families & SPEAKS_EFFECTS)
        guests.append(Guest(name, tuple(sorted(families)), effects, dice.choice([-1, 0, 1])))
    guests += [Guest(WITNESS, (), True, 100), Guest(WARDEN, ("die", "stall"), False, 90 if seed % 2 else -90)]
    dice.shuffle(guests)
    return Plan(seed, seconds, tuple(guests), is_abrupt=seed % 4 == 3)


def seeds_to_run() -> list[int]:
    """`EXTHOST_CHAOS_SEED` (1) and those that follow it, `EXTHOST_CHAOS_SEEDS` (2) in all."""
    first = int(os.environ.get("EXTHOST_CHAOS_SEED", "1"))
    return list(range(first, first + int(os.environ.get("EXTHOST_CHAOS_SEEDS", "2"))))


def seconds_to_run() -> float:
    """`EXTHOST_CHAOS_SECONDS` (6): how long each of them lasts."""
    return float(os.environ.get("EXTHOST_CHAOS_SECONDS", "6"))


def how_to_run_again(plan: Plan) -> str:
    """The command that does all of this once more."""
    settings = f"EXTHOST_CHAOS_SEED={plan.seed} EXTHOST_CHAOS_SEEDS=1 EXTHOST_CHAOS_SECONDS={plan.seconds:g}"
    return f"seed {plan.seed}; again: {settings} python -m pytest tests/chaos"
