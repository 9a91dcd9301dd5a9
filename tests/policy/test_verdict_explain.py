"""What a person reads of a verdict."""

import pytest

from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
from trio_exthost.policy.verdict import SHOWN


def test_verdict_is_explained_in_a_head_and_a_line_per_step():
    steps = (
        Step("redact", StepKind.REWROTE, 0.0012, "a key", {"x": 1}, {"x": 2}),
        Step("slow", StepKind.TIMED_OUT, 5.0, "gave no answer within 5 s", policy=OnFailure.ALLOW),
        Step("me", StepKind.OWN_CALL),
        Step("redact", StepKind.ALLOWED, 0.001, is_again=True, rewrite_ignored=True),
        Step("guard", StepKind.BLOCKED, 0.002, "no pushes"),
    )
    assert Verdict("tool_call", Outcome.BLOCK, {}, {}, "no pushes", "guard", steps).explain() == "\n".join(
        [
            "tool_call: block by guard: no pushes",
            "  redact rewrote: {'x': 1} -> {'x': 2}: a key (1.2 ms)",
            "  slow timed out: gave no answer within 5 s [policy: allow] (5000.0 ms)",
            "  me own call (0.0 ms)",
            "  redact allowed (asked again about the final value) [rewrite ignored] (1.0 ms)",
            "  guard blocked: no pushes (2.0 ms)",
        ]
    )


def test_verdict_that_wants_a_person_asked_neither_allows_nor_blocks():
    verdict = Verdict("tool_call", Outcome.ASK, {}, {})
    assert (verdict.allowed, verdict.blocked, verdict.explain()) == (False, False, "tool_call: ask")


@pytest.mark.parametrize("nasty", ["\x1b[2J", "\r", "\n", "\x00", "\x9b31m", "\u202e", "\u2028", "\ud800"])
def test_characters_that_steer_a_terminal_are_shown_as_escapes(nasty):
    step = Step(f"n{nasty}", StepKind.REWROTE, 0, f"r{nasty}", f"b{nasty}", {"k": f"a{nasty}"})
    text = Verdict("tool_call", Outcome.BLOCK, {}, {}, f"r{nasty}", f"n{nasty}", (step,)).explain()
    assert all(line.isprintable() for line in text.split("\n"))
    assert len(text.split("\n")) == 2


def test_long_values_and_reasons_are_cut_and_say_their_length():
    text = Step("e", StepKind.REWROTE, 0, "r" * 10_000, "b" * 10_000, "\x00" * 10_000).explain()
    assert len(text) < 3 * (4 * SHOWN + 40)
    assert f"{'r' * SHOWN}... (10000 characters)" in text
