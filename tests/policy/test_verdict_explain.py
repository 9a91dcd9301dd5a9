"""What a person reads of a verdict."""

import pytest

from trio_exthost.policy import OnFailure, Outcome, Step, StepKind, Verdict
from trio_exthost.policy.shown import SHOWN


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
            "  redact rewrote x: 1 -> 2: a key (1.2 ms)",
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


def test_step_says_which_rule_decided_and_where_it_is_written():
    where = "extensions.sandbox.required"
    step = Step(
        "sandbox", StepKind.NOT_RUNNING, 0, "is not running", policy=OnFailure.BLOCK, rule="required_guard", where=where
    )
    assert step.explain() == (
        "sandbox not running: is not running [policy: block; required_guard: extensions.sandbox.required] (0.0 ms)"
    )
    assert Step("a", StepKind.ALLOWED, rule="cannot_block").explain() == "a allowed [cannot_block] (0.0 ms)"
    assert Step("a", StepKind.TIMED_OUT, policy=OnFailure.ALLOW).explain() == "a timed out [policy: allow] (0.0 ms)"


def test_verdict_says_its_code_and_the_way_out():
    verdict = Verdict(
        "tool_call", Outcome.BLOCK, {}, {}, "the guard is not there", "sandbox", code="guard_absent", hint="start it"
    )
    assert (
        verdict.explain() == "tool_call: block by sandbox [guard_absent]: the guard is not there\n  way out: start it"
    )


def test_secrets_are_masked_in_values_reasons_and_hints():
    step = Step(
        "redact", StepKind.REWROTE, 0, "API_KEY=abc there", {"token": "abc", "x": "--token abc"}, {"token": "abcd"}
    )
    verdict = Verdict("tool_call", Outcome.BLOCK, {}, {}, "password: abc", "g", (step,), hint="token=abc")
    assert "abc" not in verdict.explain()
    assert "abc" in verdict.explain(mask=())
    assert "API_KEY=*** there" in verdict.explain(mask=("abcd?",))
    assert step.diff(()).explain() == 'token: "abc" -> "abcd"; x: removed "--token abc"'
    assert Step("a", StepKind.ALLOWED, before=1, after=2).diff().changes == ()
