"""Any bytes as a policy file. What must hold: `PolicyError` and nothing else; what is taken can be written and read again."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.choices import Choices
from fuzz.hostile import spoiled
from fuzz.scratch import scratch

from trio_exthost.errors import PolicyError
from trio_exthost.policy.policy_file import load_policy, parse_policy
from trio_exthost.policy.policy_text import format_policy

TABLES = (
    "defaults", "defaults.tool_call", "defaults.assistant_message", "defaults.turn_start", "defaults.before_agent_start",
    "defaults.input", "extensions", "extensions.guard", "extensions.guard.tool_call", 'extensions."a b"', "conflicts",
    "conflicts.prefer", "nothing", "extensions.guard.", "[extensions]", "", 'extensions."\\ud800"', "extensions.''",
)  # fmt: skip
KEYS = (
    "headless_ask", "on_failure", "deadline_s", "stream", "required", "guards", "grant", "on_absent", "restart",
    "restart_budget", "restart_window_s", "restart_delay_s", "restart_delay_max_s", "bash", '"tool:bash"', '""', "a.b.c",
    "gaurds", "tool_call", "guard", "prefer", "1", "'x\\'", '"\\u0000"',
)  # fmt: skip
VALUES = (
    '"allow"', '"block"', '"hold"', '"show"', '"never"', '"on_crash"', '"refuse"', '"restore"', "true", "false", "0", "1",
    "-1", "0.5", "5", "86400", "86401", "nan", "inf", "-inf", "1e999", "9" * 400, "9" * 5000, "0x" + "f" * 5000, "0b1", "1_000",
    "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "9999-99-99", '""', '"\\u0000"', '"\\ud800"', '"\\U0010FFFF"', '"""x"""',
    "'''x'''", "[]", '["tool_call"]', '["tool:*"]', '["tool:bash", "turn_start"]', '["tools.override:bash"]', '["session.write"]',
    "[1]", "[[]]", "{}", "{a=1}", '{required=true, guards=["tool_call"]}', "[" * 5000, "[" * 900 + "]" * 900,
    "{a=" * 900 + "1" + "}" * 900, '"' + "x" * 5000 + '"', "", "=", '"unended',
)  # fmt: skip
DICTIONARY = tuple(each.encode() for each in (*TABLES, *KEYS, *VALUES))
MESSAGE = 60_000
"""Characters of an error at most: fifty mistakes, each with a path and a hint."""
_FILE = scratch() / "policy.toml"


def seeds() -> Iterator[bytes]:
    yield b'\x00[defaults]\nheadless_ask = "block"\n[defaults.tool_call]\non_failure = "block"\ndeadline_s = 3\n'
    yield b'\x00[extensions.guard]\nrequired = true\nguards = ["tool:bash", "turn_start"]\nrestart = "on_crash"\n'
    yield b'\x00[extensions.box]\ngrant = ["tools.override:bash"]\non_absent = "refuse"\n[conflicts.prefer]\nbash = "box"\n'
    yield from (bytes([1, number, *range(number, number + 40)]) for number in range(0, 200, 5))


def text(data: bytes) -> bytes:
    """The file: as it is, or lines of the right form with anything in them."""
    choices = Choices(data)
    if choices.byte() % 2 == 0:
        return choices.rest()
    lines = []
    while not choices.is_over:
        if choices.below(3) == 0:
            lines.append(f"[{choices.pick(TABLES)}]")
        else:
            lines.append(f"{choices.pick(KEYS)} = {choices.pick(VALUES)}")
    written = "\n".join(lines).encode() + b"\n"
    return spoiled(written, choices) if choices.one_in(4) else written


def fuzz_one(data: bytes) -> None:
    _FILE.write_bytes(text(data))
    try:
        policy = load_policy(_FILE)
    except PolicyError as exc:
        message = str(exc)
        message.encode()
        assert len(message) <= MESSAGE, f"a message of {len(message)} characters"
        assert all(each.isprintable() for each in message.split("\n")), f"a message that cannot be shown: {message!r}"
        return
    assert parse_policy(format_policy(policy)) == policy
