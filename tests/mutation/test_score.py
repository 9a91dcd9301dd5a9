"""What the mutation score is counted from: the draw, what is only of a text, the interval, the list of explained survivors."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parent))  # the tool is run as a script: its modules lie side by side

import mutants
import score


def mutant(number: int, *, file: str = "wire/lines.py", was: str = "a") -> mutants.Mutant:
    return mutants.Mutant(
        name=f"m{number}",
        path=f"trio_exthost/{file}",
        function="f",
        was=was,
        becomes=f"b{number}",
        of_text=False,
    )


@given(st.permutations(range(30)), st.integers(0, 40), st.integers(0, 3), st.integers(0, 29))
def test_a_sample_is_the_same_whatever_else_there_is(order: list[int], size: int, seed: int, gone: int) -> None:
    drawn = mutants.sample(map(mutant, range(30)), size, seed)
    assert len(drawn) == min(size, 30)
    assert mutants.sample(map(mutant, order), size, seed) == drawn
    without = mutants.sample((mutant(each) for each in order if each != gone), size, seed)
    assert [each for each in drawn if each.name != f"m{gone}"] == without[: len(drawn) - (mutant(gone) in drawn)]


def test_another_seed_draws_others() -> None:
    assert mutants.sample(map(mutant, range(30)), 10, 1) != mutants.sample(map(mutant, range(30)), 10, 2)


@pytest.mark.parametrize(
    ("was", "becomes", "of_text"),
    [
        ("raise E('no such tool', code='gone')", "raise E('XXno such toolXX', code='gone')", True),
        ("raise E('no such tool', code='gone')", "raise E(None, code='gone')", True),
        ("raise E('no such tool', 'gone')", "raise E('gone')", True),
        ("x = f'{name}: not here'", "x = f'{name}XX: not hereXX'", True),
        ("raise E('no such tool', code='gone')", "raise E('no such tool', code='GONE')", False),
        ("raise E('no such tool', code='gone')", "raise E('no such tool')", False),
        ("raise E('no such tool', 'gone')", "raise E('no such tool')", False),
        ("x = 'type'", "x = 'XXtypeXX'", False),
        ("x = f'{name}:{other}'", "x = f'{name}XX:XX{other}'", False),
        ("return a < 1", "return a <= 1", False),
    ],
)
def test_only_a_text_for_people_has_a_space_in_its_wording(was: str, becomes: str, of_text: bool) -> None:
    assert mutants._of_text(ast.parse(was), ast.parse(becomes)) is of_text


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (190, 200, 0.9104, 0.9726)],
)
def test_the_interval_is_that_of_the_tables(hits: int, of: int, low: float, high: float) -> None:
    assert score.wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


def entry(each: mutants.Mutant, kind: str = "equivalent") -> dict[str, str]:
    file, function, was, becomes = score.key_of(each)
    return {"file": file, "function": function, "was": was, "becomes": becomes, "kind": kind, "why": "."}


def test_an_entry_of_no_mutant_is_stale_and_those_of_other_layers_are_not_looked_at() -> None:
    entries = [entry(mutant(1)), entry(mutant(2)), entry(mutant(1, was="c")), entry(mutant(3, file="state/tree.py"))]
    assert score.stale(entries, "wire", [mutant(1), mutant(4)]) == entries[1:3]


def test_the_report_counts_by_kind_and_prints_what_is_not_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [mutant(each) for each in range(10)]
    monkeypatch.setattr(score, "explained", lambda: [entry(chosen[0]), entry(chosen[1], "text"), entry(chosen[9])])
    score.report("wire", chosen, chosen[:3], 1)
    score.check_entries("wire", chosen, chosen, chosen[:3])
    told = capsys.readouterr().out
    assert told.count("[[mutant]]") == 1
    assert "becomes = '''b2'''" in told
    counts = "{'equivalent': 1, 'text': 1, 'unexplained': 1}"
    assert f"10 tried, 7 killed (1 by not ending), survived: {counts}; score 77.8%" in told
    assert told.endswith("explained.toml: an entry is of one that is killed: wire/lines.py, f: a -> b9\n")


def test_every_explained_mutant_has_a_kind_and_a_reason_and_is_told_once() -> None:
    entries = score.explained()
    assert {each["kind"] for each in entries} <= {"equivalent", "performance", "text", "typing"}
    assert all(each["why"].strip() for each in entries)
    assert len({score.key(each) for each in entries}) == len(entries)
