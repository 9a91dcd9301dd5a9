"""The tree of positions: each of them is on one line or counted, whatever the shape; and it is never long."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from trio_exthost.cli.state_tree import MOST_LINES, position_lines, positions_json
from trio_exthost.state.tree import Tree

SHAPES = st.lists(st.integers(0, 30), max_size=40)
"""Of each position, how far back its parent is."""


def tree_of(shape: list[int]) -> Tree:
    tree = Tree()
    for number, back in enumerate(shape):
        parent = number - 1 - back
        tree = tree.checkout(f"p{parent}" if parent >= 0 else "").advance(f"p{number}")
    return tree


@given(SHAPES, st.integers(-1, 40))
def test_each_position_is_named_or_counted_once_and_the_marks_are_there(shape: list[int], at: int) -> None:
    tree = tree_of(shape)
    shown = tree.find(f"p{at}" if 0 <= at < len(shape) else "")
    lines = list(position_lines(tree, shown=shown))
    text = "\n".join(each.text for each in lines)
    named = re.findall(r"p\d+|\(the beginning\)", text)
    assert len(named) == len(set(named))
    assert len(named) + sum(map(int, re.findall(r"\.\.\. (\d+) more \.\.\.", text))) == len(tree.positions)
    assert text.count("[selected]") == 1
    assert text.count("[shown]") == (shown != tree.selected)
    assert sum(each.is_selected for each in lines) in (1, 2)


@given(SHAPES)
def test_lines_below_a_way_are_those_that_branch_off_at_its_end(shape: list[int]) -> None:
    tree = tree_of(shape)
    parents = {each["entry_id"]: each["after"] for each in positions_json(tree)}
    above: dict[int, str] = {}
    for line in position_lines(tree, shown=None):
        names = re.findall(r"p\d+|\(the beginning\)", line.text)
        depth = len(line.first)
        if names[0] != "(the beginning)":
            assert parents[names[0]] == above[depth - 2].replace("(the beginning)", "")
        above[depth] = names[-1]


def test_a_tree_of_many_ways_is_cut_and_says_how_many_positions_are_left_out() -> None:
    tree = Tree()
    for number in range(500):
        tree = tree.checkout("").advance(f"p{number}")
    lines = list(position_lines(tree, shown=None))
    assert len(lines) == MOST_LINES + 1
    assert lines[-1].text == f"... and {501 - MOST_LINES} more positions"
    deep = Tree()
    for number in range(100):
        deep = deep.advance(f"p{number}").checkout(deep.selected.name).advance(f"q{number}")
    assert max(len(each.first) for each in position_lines(deep, shown=None)) <= 42
